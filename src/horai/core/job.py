"""The definition of a job: validated, read from the JSON document that people write, and written back as one.

`checked` reports every fault at once, each at its field. The stored and displayed document is what the user wrote, with
the defaults filled in.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import IntEnum
from typing import Any

from horai.core.assets import PRODUCES, WHEN, read_assets
from horai.core.calls import HTTP_TIMEOUT, HttpTarget, NatsTarget, Target, WorkerTarget
from horai.core.concurrency_keys import PER_KEY, check_places
from horai.core.errors import Invalid
from horai.core.labels import LONGEST_LABELS, check_labels
from horai.core.limits import MAX_LOST_LIMIT, MAX_RETRY_LIMIT
from horai.core.masking import SEALED
from horai.core.refresh import RefreshRule, read_refresh, refresh_document
from horai.core.retention import NOT_SET, KeepTimes, read_keep_times
from horai.core.retry import Jitter, RetryPolicy
from horai.core.search_paths import read_search_paths
from horai.core.tags import TAG
from horai.core.target_checks import (
    LEAST_BATCH,
    MOST_BATCH,
    SETTLE_ON,
    SUBJECT,
    SUBJECT_LIMIT,
    check_headers,
    check_url,
)
from horai.core.timing import (
    BESIDE_BOTH,
    BESIDE_CRON,
    BESIDE_EVERY,
    INSTANT_FIELDS,
    SCHEDULE_FIELDS,
    Timing,
    read_timing,
)
from horai.core.validation import Validation
from horai.text import Hint, Wrong, mismatch
from horai.time.durations import format_duration, parse_duration
from horai.time.schedule import CronSchedule
from horai.time.work_calendar import WorkCalendar

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.\-]{0,127}")
HANDLER = re.compile(r"(?:horai:[a-z]{1,32}|[A-Za-z0-9][A-Za-z0-9_.\-]{0,127})")
"""The function that runs a job: one of a worker, or a built-in one."""
BUILTIN = "horai:"
"""The prefix of built-in handlers; no other handler can have it."""
QUEUE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.\-]{0,63}")
SECRET_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.\-]{0,63}")
DEFAULT_QUEUE = "default"
KEPT_FIELDS = (
    *(*SCHEDULE_FIELDS, *BESIDE_CRON, *BESIDE_EVERY, *BESIDE_BOTH, *LONGEST_LABELS),
    *(PER_KEY, PRODUCES, WHEN, "payloadSchema", "declaredBy"),
)
"""Fields that are stored as written, and only if written. Only code may set the last two: REST accepts neither."""
LONGEST_TIMEOUT = timedelta(hours=24)
METHODS = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE"})
TARGET_FIELDS = {
    "http": (("url", "method", "headers", "batch"), Wrong.OF_HTTP_TARGET),
    "worker": (("handler",), Wrong.OF_WORKER_TARGET),
    "nats": (("broker", "subject", "settleOn"), Wrong.OF_NATS_TARGET),
}
"""The fields that only one type of target has, and the error of a target of another type that has one."""


class Priority(IntEnum):
    """The priority of a job; smaller is served first."""

    core = 0
    high = 1
    normal = 2
    low = 3


class JobStatus(IntEnum):
    """The status of a job. A paused job creates no slots, and its waiting instances are held."""

    ACTIVE = 0
    PAUSED = 1


@dataclass(frozen=True, slots=True)
class Definition:
    """A valid job. `at` and `delay` create one instance at creation; a `timing` with a schedule creates slots.

    A job without a `priority` has the priority of its queue.
    """

    name: str
    timing: Timing
    at: datetime | None
    delay: timedelta | None
    target: Target
    queue: str
    priority: Priority | None
    retry: RetryPolicy
    timeout: timedelta | None
    tags: tuple[str, ...]
    status: JobStatus
    refresh: RefreshRule | None = None
    """Set for a job that has entities: its schedule is then that of its ticks, which another job creates."""
    is_encrypted: bool = False
    """True if payloads, results, error texts and notes are sealed. It is set at creation and never changes."""
    search_paths: tuple[str, ...] = ()
    """The fields of payloads that instances of an encrypted job are found by. They never change."""
    keep: KeepTimes = NOT_SET

    @property
    def handler(self) -> str:
        """Return the handler part of the job's lane: empty for HTTP."""
        return _handler_of(self.target)

    @property
    def own_timing(self) -> Timing:
        """Return the timing of the job's own slots: empty if its schedule is that of its ticks."""
        return self.timing if self.refresh is None else Timing()


@dataclass(frozen=True, slots=True)
class Recipe:
    """The values needed to run a job's instances; jobs with equal values share one object."""

    target: Target
    retry: RetryPolicy
    timeout: timedelta | None
    handler: str
    """The handler that a process must have to run the job; empty for HTTP."""


def checked(document: Mapping[str, Any], days: WorkCalendar | None = None) -> Definition:
    """Return the definition that `document` describes. Raise `Invalid` with every wrong field.

    `days` is the calendar that the document names. Without it the definition is valid but computes no fire.
    """
    faults = Validation()
    target, timeout = _target(document, faults)
    definition = Definition(
        name=_matching("name", document.get("name", ""), NAME, faults),
        timing=read_timing(document, faults, days),
        at=document.get("at"),
        delay=_duration(document, "delay", faults),
        target=target,
        queue=_matching("queue", document.get("queue", DEFAULT_QUEUE), QUEUE, faults),
        priority=_priority(document, faults),
        retry=read_retry(document.get("retry") or {}, faults),
        timeout=timeout,
        tags=tuple(_matching("tags", tag, TAG, faults) for tag in document.get("tags") or ()),
        status=JobStatus[document.get("status") or "ACTIVE"],
        refresh=read_refresh(document, faults),
        is_encrypted=bool(document.get("encrypted")),
        search_paths=read_search_paths(document, faults),
        keep=read_keep_times(document, faults),
    )
    check_labels(document, faults)
    check_places(document, faults)
    read_assets(document, faults)
    if definition.name.isdigit():
        faults.add("name", Wrong.ALL_DIGITS(), Hint.ADD_A_LETTER())
    faults.raise_if_any()
    return definition


def is_builtin(document: Mapping[str, Any]) -> bool:
    """Return whether Horai itself runs the job of this document: a workflow, a refresh, a reconciler."""
    target: Mapping[str, Any] = document.get("target") or {}
    return str(target.get("handler") or "").startswith(BUILTIN)


def refuse_builtin(document: Mapping[str, Any]) -> None:
    """Raise `Invalid` for a job that only Horai itself may create or change."""
    if is_builtin(document):
        raise Invalid.field(
            "target.handler",
            Wrong.OURS(),
            Hint.CHANGE_ITS_OWNER(),
        )


def read_target(document: Mapping[str, Any]) -> Target:
    """Return the target of a document. Raise `Invalid` with every wrong field."""
    faults = Validation()
    target, _ = _target(document, faults)
    faults.raise_if_any()
    return target


def recipe_of(document: Mapping[str, Any]) -> Recipe:
    """Return the recipe of a stored job. Raise `Invalid` with every wrong field."""
    faults = Validation()
    target, timeout = _target(document, faults)
    recipe = Recipe(target, read_retry(document.get("retry") or {}, faults), timeout, _handler_of(target))
    faults.raise_if_any()
    return recipe


def _handler_of(target: Target) -> str:
    return "" if isinstance(target, HttpTarget) else target.handler


def _matching(field: str, value: str, pattern: re.Pattern[str], faults: Validation) -> str:
    if not pattern.fullmatch(value):
        faults.add(field, mismatch(value, pattern))
    return value


def _priority(document: Mapping[str, Any], faults: Validation) -> Priority | None:
    word = document.get("priority")
    if word is not None and word not in Priority.__members__:
        faults.add("priority", Wrong.NOT_ONE_OF(value=word, allowed=", ".join(Priority.__members__)))
        return None
    return None if word is None else Priority[word]


def _duration(
    document: Mapping[str, Any], field: str, faults: Validation, default: timedelta | None = None
) -> timedelta | None:
    text = document.get(field)
    return default if text is None else faults.reading(field, lambda: parse_duration(text), default)


def _target(document: Mapping[str, Any], faults: Validation) -> tuple[Target, timedelta | None]:
    target: Mapping[str, Any] = document.get("target") or {"type": "worker"}
    for kind, (fields, fault) in TARGET_FIELDS.items():
        for field in fields if kind != target["type"] else ():
            if target.get(field) is not None:
                faults.add(f"target.{field}", fault())
    match target["type"]:
        case "worker":
            handler = _matching("target.handler", target.get("handler") or document.get("name", ""), HANDLER, faults)
            return WorkerTarget(handler), _timeout(document, None, faults)
        case "nats":
            return _nats(target, faults), _timeout(document, HTTP_TIMEOUT, faults)
        case _:
            return _http(target, faults), _timeout(document, HTTP_TIMEOUT, faults)


def _nats(target: Mapping[str, Any], faults: Validation) -> NatsTarget:
    broker, subject = target.get("broker") or "", target.get("subject") or ""
    settle_on = target.get("settleOn") or SETTLE_ON[0]
    if not broker:
        faults.add("target.broker", Wrong.MISSING(), Hint.ALLOW_BROKER())
    if not subject:
        faults.add("target.subject", Wrong.MISSING(), Hint.GIVE_SUBJECT())
    elif len(subject) > SUBJECT_LIMIT:
        faults.add("target.subject", Wrong.TOO_LONG(most=SUBJECT_LIMIT), Hint.GIVE_SUBJECT())
    elif not SUBJECT.fullmatch(subject):
        faults.add("target.subject", mismatch(subject, SUBJECT), Hint.GIVE_SUBJECT())
    if settle_on not in SETTLE_ON:
        faults.add("target.settleOn", Wrong.NOT_ONE_OF(value=settle_on[:20], allowed=", ".join(SETTLE_ON)))
    return NatsTarget(broker, subject, is_reported=settle_on == SETTLE_ON[1])


def _http(target: Mapping[str, Any], faults: Validation) -> HttpTarget:
    url, method = target.get("url"), target.get("method") or "POST"
    given: Mapping[str, Any] = target.get("headers") or {}
    headers = {name: value for name, value in given.items() if isinstance(value, str)}
    named = {name: value["secret"] for name, value in given.items() if not isinstance(value, str)}
    if not url:
        faults.add("target.url", Wrong.MISSING(), Hint.GIVE_TARGET())
    else:
        faults.reading("target.url", lambda: check_url(url), None)
    if method not in METHODS:
        faults.add("target.method", Wrong.NOT_ONE_OF(value=method[:20], allowed=", ".join(sorted(METHODS))))
    faults.reading("target.headers", lambda: check_headers({**headers, **dict.fromkeys(named, "")}), None)
    for secret in named.values():
        _matching("target.headers", secret, SECRET_NAME, faults)
    batch: Mapping[str, Any] | None = target.get("batch")
    size = 1 if batch is None else batch["size"]
    if batch is not None and not LEAST_BATCH <= size <= MOST_BATCH:
        faults.add("target.batch.size", Wrong.NOT_BETWEEN(low=LEAST_BATCH, high=MOST_BATCH), Hint.GIVE_BATCH())
    if batch is not None and method != "POST":
        faults.add("target.batch", Wrong.BATCH_METHOD(), Hint.GIVE_BATCH())
    return HttpTarget(url or "", method, headers, named, target.get(SEALED), batch_size=size)


def _timeout(document: Mapping[str, Any], default: timedelta | None, faults: Validation) -> timedelta | None:
    timeout = _duration(document, "timeout", faults, default)
    if timeout is not None and not timedelta(milliseconds=1) <= timeout <= LONGEST_TIMEOUT:
        faults.add("timeout", Wrong.NOT_BETWEEN(low="1ms", high="24h"))
    return timeout


def read_retry(document: Mapping[str, Any], faults: Validation, field: str = "retry") -> RetryPolicy:
    """Return the retry policy that `document` describes. Faults name the members of `field`."""
    default = RetryPolicy()
    max_retry = document.get("maxRetry")
    max_retry = default.max_retry if max_retry is None else max_retry
    if not 0 <= max_retry <= MAX_RETRY_LIMIT:
        faults.add(f"{field}.maxRetry", Wrong.NOT_BETWEEN(low=0, high=MAX_RETRY_LIMIT))
    max_lost = document.get("maxLost")
    max_lost = default.max_lost if max_lost is None else max_lost
    if not 0 <= max_lost <= MAX_LOST_LIMIT:
        faults.add(f"{field}.maxLost", Wrong.NOT_BETWEEN(low=0, high=MAX_LOST_LIMIT))
    jitter = document.get("jitter") or default.jitter.value
    if jitter not in tuple(Jitter):
        faults.add(f"{field}.jitter", Wrong.NOT_ONE_OF(value=jitter[:20], allowed=", ".join(Jitter)))
        jitter = default.jitter.value
    base = document.get("base")
    cap = document.get("cap")
    return RetryPolicy(
        max_retry,
        default.base if base is None else faults.reading(f"{field}.base", lambda: parse_duration(base), default.base),
        default.cap if cap is None else faults.reading(f"{field}.cap", lambda: parse_duration(cap), default.cap),
        Jitter(jitter),
        max_lost,
    )


def stored_retry(text: str | None) -> RetryPolicy | None:
    """Return a retry policy from the JSON text that was stored after a check; None if there is none."""
    return None if text is None else read_retry(json.loads(text), Validation())


def retry_document(policy: RetryPolicy) -> dict[str, Any]:
    """Return a retry policy as people write it."""
    return {
        "maxRetry": policy.max_retry,
        "base": format_duration(policy.base),
        "cap": format_duration(policy.cap),
        "jitter": policy.jitter.value,
        "maxLost": policy.max_lost,
    }


def target_document(target: Target) -> dict[str, Any]:
    """Return a target as people write it."""
    match target:
        case HttpTarget(url, method, headers, named, sealed, _, batch_size):
            references = {header: {"secret": secret} for header, secret in named.items()}
            document = {"type": "http", "url": url, "method": method, "headers": {**headers, **references}}
            document |= {"batch": {"size": batch_size}} if batch_size > 1 else {}
            return document if sealed is None else {**document, SEALED: sealed}
        case WorkerTarget(handler):
            return {"type": "worker", "handler": handler}
        case NatsTarget(broker, subject, is_reported):
            return {"type": "nats", "broker": broker, "subject": subject, "settleOn": SETTLE_ON[is_reported]}


def with_instants(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a stored document with its instants as datetimes, as `checked` expects them."""
    stored = [field for field in INSTANT_FIELDS if document.get(field) is not None]
    return {**document, **{field: _instant(document[field]) for field in stored}} if stored else document


def _instant(value: datetime | str) -> datetime:
    return datetime.fromisoformat(value) if isinstance(value, str) else value


def document_of(definition: Definition, written: Mapping[str, Any]) -> dict[str, Any]:
    """Return the document to store: what was `written`, with every default filled in.

    A priority that comes from the queue is not filled in.
    """
    kept = {field: written[field] for field in KEPT_FIELDS if written.get(field) is not None}
    kept |= {field: _instant(kept[field]).astimezone(UTC).isoformat() for field in INSTANT_FIELDS if field in kept}
    if isinstance(definition.timing.schedule, CronSchedule):
        kept["timezone"] = definition.timing.schedule.timezone
    schedule = definition.timing.schedule
    if schedule is not None and schedule.calendar is not None:
        kept["calendar"] = {"name": schedule.calendar.name, "onHoliday": schedule.calendar.on_holiday.value}
    if definition.refresh is not None:
        kept["refresh"] = refresh_document(definition.refresh)
    if definition.is_encrypted:
        kept["encrypted"] = True
    if definition.search_paths:
        kept["searchPaths"] = list(definition.search_paths)
    if definition.priority is not None:
        kept["priority"] = definition.priority.name
    kept |= {field: time for field, time in definition.keep.document().items() if time is not None}
    return {
        "name": definition.name,
        **kept,
        "target": target_document(definition.target),
        "queue": definition.queue,
        "retry": retry_document(definition.retry),
        "timeout": None if definition.timeout is None else format_duration(definition.timeout),
        "tags": list(definition.tags),
    }
