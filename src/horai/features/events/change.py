"""A change that arrives as an event, and its strict parser.

An event has one of two forms with the same meaning. It is a JSON document of our own,

    {"job": "publish", "key": "article:42", "executeTime": "2030-01-01T09:00:00+08:00", "payload": {…}, "version": 7}
    {"job": "publish", "key": "article:42", "cancel": true, "version": 8}

or the same document as the data of a CloudEvent (`cloudevents.py`). The parser raises `Poison` with a reason if it
cannot read an event. It never guesses, because a misread change would move a user's work.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, cast

import msgspec

from horai.core.errors import Invalid
from horai.core.jsontext import JsonError, parse_json
from horai.core.limits import BODY_LIMIT, PAYLOAD_LIMIT
from horai.core.put import check_key
from horai.features.events import cloudevents
from horai.features.events.cloudevents import Envelope, Poison

FIELDS = frozenset({"id", "job", "key", "executeTime", "payload", "version", "cancel"})
MESSAGE_ID = "nats-msg-id"
"""The header by which JetStream itself detects repeated messages."""
VERSION_LIMIT = 2**62
JOB_LIMIT = 200
ID_KEPT = 200

_RFC3339 = re.compile(r"\d{4}-\d{2}-\d{2}[Tt ]\d{2}:\d{2}:\d{2}(\.\d{1,9})?([Zz]|[+-]\d{2}:\d{2})")
_EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)
_LATEST = datetime(9000, 1, 1, tzinfo=UTC)


class Effect(StrEnum):
    """The result of a change: the decision of a put or of a cancel."""

    INSERTED = "INSERTED"
    UPDATED = "UPDATED"
    SUPERSEDED = "SUPERSEDED"
    CANCELLED = "CANCELLED"
    IGNORED = "IGNORED"


@dataclass(frozen=True, slots=True)
class Change:
    """The desired state of a key: run at `execute_time`, or be cancelled if that is None.

    `job` is None if the event does not name a job; `event_id` is None if the event has no id of its own.
    """

    job: str | None
    key: str
    execute_time: datetime | None
    payload: str | None = None
    version: int | None = None
    event_id: str | None = None
    occurred_at: datetime | None = None

    @property
    def identity(self) -> str | None:
        """The id that tells this change from others of its job; equal versions of a key are the same change."""
        if self.event_id is not None or self.version is None:
            return self.event_id
        return short_id(f"version:{self.version} of {self.key}")


def parse_change(body: bytes, headers: Mapping[str, str]) -> Change:
    """Return the change that a message describes. Raises `Poison` if the message is not a change."""
    if len(body) > BODY_LIMIT:
        raise Poison(f"the event is larger than {BODY_LIMIT} bytes")
    named = {name.lower(): value for name, value in headers.items()}
    envelope = cloudevents.open_envelope(body, named)
    document = _object(envelope.data)
    execute_time = _time(document)
    return Change(
        job=_job(document),
        key=_key(_text(document, "key", envelope.subject)),
        execute_time=execute_time,
        payload=_payload(envelope.data, is_cancel=execute_time is None),
        version=_version(document),
        event_id=_event_id(document, envelope, named.get(MESSAGE_ID)),
        occurred_at=None if envelope.time is None else _instant("time", envelope.time),
    )


def read_change(body: bytes, headers: Mapping[str, str], job: str | None) -> Change | Poison:
    """Return the change of a message, or why it cannot be read.

    `job` is the job of every message of the source; None if each message names its own.
    """
    try:
        change = parse_change(body, headers)
    except Poison as poison:
        return poison
    if job is not None and change.job not in {None, job}:
        return Poison(f"job: names {change.job!r}, and this source is for {job!r}")
    return replace(change, job=change.job or job)


def short_id(event_id: str) -> str:
    """Return an id in its stored form: ids longer than `ID_KEPT` characters become a digest that fits an index."""
    if len(event_id) <= ID_KEPT:
        return event_id
    return f"sha256:{hashlib.sha256(event_id.encode()).hexdigest()}"


def _object(data: bytes) -> dict[str, Any]:
    try:
        value = parse_json(data)
    except JsonError as error:
        raise Poison(str(error).replace("the body", "the event")) from error
    if not isinstance(value, dict):
        raise Poison("the event is not a JSON object")
    document = cast("dict[str, Any]", value)
    if unknown := sorted(set(document) - FIELDS):
        raise Poison(f"{unknown[0][:64]}: unknown field", f"Known: {', '.join(sorted(FIELDS))}.")
    return document


def _text(document: Mapping[str, Any], field: str, otherwise: str | None = None) -> str:
    value = document.get(field, otherwise)
    if value is None:
        raise Poison(f"{field}: is missing")
    if not isinstance(value, str):
        raise Poison(f"{field}: is not a string")
    return value


def _job(document: Mapping[str, Any]) -> str | None:
    if document.get("job") is None:
        return None
    job = _text(document, "job")
    if not 0 < len(job) <= JOB_LIMIT or not job.isprintable():
        raise Poison("job: is not a valid job name")
    return job


def _key(text: str) -> str:
    try:
        return check_key(text)
    except Invalid as error:
        raise Poison(error.detail) from error


def _time(document: Mapping[str, Any]) -> datetime | None:
    """Return the execute time; None to cancel.

    A missing time never means now: the sender may have misspelt the name of the field.
    """
    cancel = document.get("cancel", False)
    if not isinstance(cancel, bool):
        raise Poison("cancel: is neither true nor false")
    given = document.get("executeTime")
    if cancel and given is not None:
        raise Poison("executeTime: cannot be combined with cancel", "A change either has a time or cancels.")
    if not cancel and given is None:
        raise Poison("executeTime: is missing")
    return None if cancel else _instant("executeTime", given)


def _instant(field: str, value: object) -> datetime:
    if not isinstance(value, str) or not _RFC3339.fullmatch(value):
        raise Poison(f"{field}: is not an instant with an offset, such as 2026-11-15T09:00:00+08:00")
    try:
        instant = datetime.fromisoformat(value.upper()).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise Poison(f"{field}: is not in the calendar") from error
    if not _EARLIEST <= instant < _LATEST:
        raise Poison(f"{field}: is not between the years 1970 and 9000")
    return instant


def _version(document: Mapping[str, Any]) -> int | None:
    version = document.get("version")
    if version is None:
        return None
    if not isinstance(version, int) or isinstance(version, bool) or not 0 <= version < VERSION_LIMIT:
        raise Poison("version: is not a whole number from 0 to 2^62 - 1")
    return version


def _payload(data: bytes, *, is_cancel: bool) -> str | None:
    """Return the JSON text of the payload, unchanged; None if it is null or absent."""
    raw = bytes(msgspec.json.decode(data, type=dict[str, msgspec.Raw]).get("payload", msgspec.Raw(b"null")))
    if raw == b"null":
        return None
    if is_cancel:
        raise Poison("payload: cannot be combined with cancel", "A cancel takes no payload.")
    if len(raw) > PAYLOAD_LIMIT:
        raise Poison(f"payload: is larger than {PAYLOAD_LIMIT} bytes")
    return raw.decode("utf-8")


def _event_id(document: Mapping[str, Any], envelope: Envelope, message_id: str | None) -> str | None:
    if envelope.id is not None:
        return short_id(f"ce:{envelope.source} {envelope.id}")  # CloudEvents: source and id together are unique
    own = _text(document, "id") if document.get("id") is not None else message_id
    if own is None:
        return None
    if not own or not own.isprintable():
        raise Poison("id: is empty or not printable")
    return short_id(f"id:{own}")
