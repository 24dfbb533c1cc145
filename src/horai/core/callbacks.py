"""The request that an HTTP target receives, and the meaning of its response.

One attempt is one request: a JSON body, and headers signed according to Standard Webhooks (one signature per secret, so
that a secret can be rotated). The response alone carries the outcome; the target does not have to call back:

    2xx                         succeeded, unless the body's `result` says FAIL…; a JSON object is the result
    202                         accepted: the outcome is reported later, unless the body's `result` says it now
    408, 425, 429, 5xx          failed retryable; `Retry-After` is honoured
    all others, 3xx included    failed unrecoverable, with the body's `tags` for the dead letter

Only a body with a JSON content type is read. If such a body of a 2xx is encoded, cut off, invalid or longer than 256
kB, the attempt fails unrecoverably as `ANSWER_UNREADABLE`: the body may have said FAIL. A failure keeps the first 4 kB
of its body.
"""

import base64
import hashlib
import hmac
import json
import os
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import NamedTuple, cast
from urllib.parse import quote

import horai
from horai.core.calls import HTTP_TIMEOUT, Call, HttpTarget
from horai.core.limits import RESULT_LIMIT
from horai.core.outcome import SUCCESS, Accepted, FailedRetryable, FailedUnrecoverable, Outcome, Succeeded
from horai.core.outcome_tokens import outcome_token, token_for
from horai.core.stored_text import TRUNCATED, clean_text
from horai.core.tags import own_tags
from horai.core.target_checks import is_reserved

RETRY_AFTER_LIMIT = timedelta(hours=24)
ANSWER_LIMIT = 256 * 1024
"""The longest JSON body, in bytes, that is read."""
KEPT_OF_FAILURE = 4_096
"""Bytes of a failing response that are stored with the error message."""


class Answer(NamedTuple):
    """The response of a target. `fault` says why `body` is incomplete; None for a complete body."""

    status: int
    headers: Mapping[str, str]
    body: bytes = b""
    fault: str | None = None


def body_of(call: Call) -> bytes:
    """Return the JSON body of one attempt. Ids are strings (they exceed a double); the payload is unchanged."""
    key = "null" if call.key is None else _quoted(call.key)
    payload = "null" if call.payload is None else call.payload
    fire_time = rfc3339(call.fire_time)
    execute_time = fire_time if call.execute_time is call.fire_time else rfc3339(call.execute_time)
    return (
        f'{{"job": {_quoted(call.job)}, "jobId": "{call.job_id}", "instanceId": "{call.instance_id}", "key": {key}, '
        f'"fireTime": "{fire_time}", "executeTime": "{execute_time}", '
        f'"attempt": {call.attempt}{_interval(call)}, "payload": {payload}}}'
    ).encode()


def _interval(call: Call) -> str:
    """Return the member `interval` of a call that has one: `[start, end)`, where the end is the fire time."""
    if call.interval_from is None or (start := call.interval_start) is None:
        return ""
    return f', "interval": {{"start": "{rfc3339(start)}", "end": "{rfc3339(call.fire_time)}"}}'


def headers_of(call: Call, body: bytes, now: datetime) -> dict[str, str]:
    """Return the headers of one attempt: the target's own, except reserved ones, and those of Horai.

    `Horai-Unit` is percent-encoded UTF-8; a receiver that needs the text itself unquotes it. `Idempotency-Key`,
    `Horai-Unit` and `webhook-id` are the same on every try of an instance, `Horai-Unit` also after a reschedule.
    `Horai-Outcome-Token` lets a target that answers 202 report the outcome of this attempt, until its deadline.
    """
    theirs: Mapping[str, str] = call.target.headers if isinstance(call.target, HttpTarget) else {}
    message_id = call.idempotency_key  # digits and colons: a dot would end the id in the signed text
    ours = {
        "Idempotency-Key": message_id,
        "Horai-Unit": header_text(call.unit_of(message_id if call.key is None else call.key)),
        "Horai-Attempt": str(call.attempt),
        "Horai-Fence": str(call.fence),
        "Horai-Fire-Time": rfc3339(call.fire_time),
        **signed_headers(call.secrets, message_id, body, now),
        "Horai-Outcome-Token": token_of(call, now),
    }
    sent = common_headers(theirs) | ours
    return sent if call.traceparent is None else with_traceparent(sent, call.traceparent)


def common_headers(theirs: Mapping[str, str]) -> dict[str, str]:
    """Return the headers that do not depend on the attempt: the target's own, except reserved ones, and those of Horai."""
    sent = {name: value for name, value in theirs.items() if not is_reserved(name)} if theirs else {}
    return sent | _ALWAYS_SENT


def signed_headers(secrets: Sequence[str], message_id: str, body: bytes, now: datetime) -> dict[str, str]:
    """Return the headers of Standard Webhooks, with a signature by each secret. Raise ValueError without one."""
    if not secrets:
        raise ValueError("a call without a signing secret must not be sent")
    timestamp = str(int(now.timestamp()))
    signatures = " ".join([sign(secret, message_id, timestamp, body) for secret in secrets])
    return {"webhook-id": message_id, "webhook-timestamp": timestamp, "webhook-signature": signatures}


def token_of(call: Call, now: datetime) -> str:
    """Return the token that lets the target report the outcome of this attempt, until its deadline."""
    deadline = now + (call.timeout or HTTP_TIMEOUT)
    token = token_for(call.tenant_id, call.instance_id, call.attempt, call.fence, deadline)
    return outcome_token(call.secrets[0], token)


def with_traceparent(headers: Mapping[str, str], traceparent: str) -> dict[str, str]:
    """Return the headers with the place in the trace. It replaces that of the target's own headers, in any spelling."""
    others = {name: value for name, value in headers.items() if name.lower() not in _TRACE_CONTEXT}
    return {**others, "traceparent": traceparent}


def outcome_of(answer: Answer, now: datetime, remaining: timedelta) -> Outcome | Accepted:
    """Decide the outcome of an attempt; `remaining` is the time a target that accepted has left to report.

    A `result` that begins with FAIL but is not in the contract counts as FAIL_RETRYABLE, any other word as success.
    """
    if not 200 <= answer.status < 300:
        return _status_outcome(answer, retry_after_of(answer, now))
    if not answer.body and answer.fault is None and answer.status != HTTPStatus.ACCEPTED:
        return SUCCESS
    if (fault := unreadable(answer)) is not None:
        return FailedUnrecoverable(
            "ANSWER_UNREADABLE", f"the target answered {answer.status}, but its JSON body {fault}"
        )
    said = object_in(answer)
    result = said.get("result")
    has_failed = isinstance(result, str) and result.startswith("FAIL")
    if answer.status == HTTPStatus.ACCEPTED and result != "SUCCESS" and not has_failed:
        return Accepted(remaining)
    return outcome_said(said, said.get("output", said or None), retry_after_of(answer, now))


def outcome_said(said: Mapping[str, object], output: object, retry_after: timedelta | None) -> Outcome:
    """Return the outcome that a target has said."""
    match said.get("result"):
        case "FAIL_UNRECOVERABLE":
            message = _result_message("FAIL_UNRECOVERABLE", said.get("message"))
            return FailedUnrecoverable("RESULT_UNRECOVERABLE", message, own_tags(said.get("tags")))
        case str(word) if word.startswith("FAIL"):
            return FailedRetryable("RESULT_RETRYABLE", _result_message(word, said.get("message")), retry_after)
        case _:
            return Succeeded(result_text(output))


def _status_outcome(answer: Answer, retry_after: timedelta | None) -> Outcome:
    said = object_in(answer)
    message = _status_message(answer, said.get("message"))
    if answer.status in {408, 425, 429} or 500 <= answer.status < 600:
        return FailedRetryable(f"HTTP_{answer.status}", message, retry_after)
    return FailedUnrecoverable(f"HTTP_{answer.status}", message, own_tags(said.get("tags")))


def _is_json(answer: Answer) -> bool:
    kind = _header(answer.headers, "content-type").partition(";")[0].strip().lower()
    return kind == "application/json" or (kind.startswith("application/") and kind.endswith("+json"))


def _encoding(answer: Answer) -> str:
    return _header(answer.headers, "content-encoding").strip().lower().removeprefix("identity")


def unreadable(answer: Answer) -> str | None:
    """Return why the JSON body of a success is unreadable; None if it is readable, empty or of another content type."""
    if not _is_json(answer):
        return None
    if answer.fault is not None:
        return answer.fault
    if not answer.body.strip():
        return None
    if encoding := _encoding(answer):
        return f"is encoded as {clean_text(encoding)[:40]}, although the request said Accept-Encoding: identity"
    try:
        json.loads(answer.body)
    except (ValueError, RecursionError):
        return "is not valid JSON"
    return None


def result_text(result: object) -> str | None:
    """Return a target's result as JSON text, `TRUNCATED` if it cannot be kept, None without one."""
    return None if result is None else output_text(result) or TRUNCATED


def output_text(output: object) -> str | None:
    """Return `output` as JSON text to store, or None.

    Output that is over `RESULT_LIMIT` or that PostgreSQL cannot store (NUL, half a surrogate pair, NaN) is dropped, and
    the attempt still succeeds: the work is done, and repeating it only for its report would be worse.
    """
    if output is None:
        return None
    try:
        text = json.dumps(output, ensure_ascii=False, allow_nan=False)
        size = len(text.encode())
    except (ValueError, RecursionError):
        return None
    return None if size > RESULT_LIMIT or _ESCAPED_NUL.search(text) else text


def header_text(text: str) -> str:
    """Encode `text` so that any header can carry it; `urllib.parse.unquote` decodes it."""
    return text if _SAFE.fullmatch(text) else quote(text, safe=":/@+", errors="surrogatepass")


def rfc3339(instant: datetime) -> str:
    """Format an instant in UTC with milliseconds: `2026-01-02T03:04:05.678Z`."""
    if instant.tzinfo is not UTC:
        instant = instant.astimezone(UTC)
    return instant.isoformat(timespec="milliseconds")[: -len("+00:00")] + "Z"


def sign(secret: str, message_id: str, timestamp: str, body: bytes) -> str:
    """Return one Standard Webhooks signature. Raise ValueError if `secret` is not `whsec_` followed by base64."""
    prefix, _, encoded = secret.partition("_")
    if prefix != "whsec":
        raise ValueError("a signing secret begins with whsec_")
    key = base64.b64decode(encoded + "=" * (-len(encoded) % 4), validate=True)
    digest = hmac.digest(key, f"{message_id}.{timestamp}.".encode() + body, hashlib.sha256)
    return f"v1,{base64.b64encode(digest).decode()}"


def new_signing_secret() -> str:
    """Return a random signing secret."""
    return f"whsec_{base64.b64encode(os.urandom(32)).decode()}"


def verify(
    secret: str, headers: Mapping[str, str], body: bytes, now: datetime, tolerance: timedelta = timedelta(minutes=5)
) -> bool:
    """Return whether a holder of `secret` signed this `body`, within `tolerance` before or after now."""
    timestamp, message_id = _header(headers, "webhook-timestamp"), _header(headers, "webhook-id")
    given = _header(headers, "webhook-signature")
    if not message_id.isascii() or not given.isascii():
        return False
    if not _DIGITS.fullmatch(timestamp) or abs(now.timestamp() - int(timestamp)) > tolerance.total_seconds():
        return False
    expected = sign(secret, message_id, timestamp, body)
    return any(hmac.compare_digest(expected, signature) for signature in given.split(" "))


def _header(headers: Mapping[str, str], name: str) -> str:
    return next((value for key, value in headers.items() if key.lower() == name), "")


def retry_after_of(answer: Answer, now: datetime) -> timedelta | None:
    """Return the wait that a target requests (seconds or a date), up to the limit; None if absent or unreadable."""
    text = _header(answer.headers, "retry-after").strip()
    if not text:
        return None
    if _DIGITS.fullmatch(text):
        return min(timedelta(seconds=int(text)), RETRY_AFTER_LIMIT)
    try:
        until = parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    wait = (until if until.tzinfo else until.replace(tzinfo=UTC)) - now
    return min(max(wait, timedelta(0)), RETRY_AFTER_LIMIT)


def object_in(answer: Answer) -> dict[str, object]:
    """Return the JSON object of the body; empty for any other body, and for one that cannot be read."""
    if not _is_json(answer) or answer.fault is not None or _encoding(answer):
        return {}
    try:
        found: object = json.loads(answer.body or b"null")
    except (ValueError, RecursionError):
        return {}
    return cast("dict[str, object]", found) if isinstance(found, dict) else {}


def _result_message(word: str, message: object) -> str:
    return clean_text(message if isinstance(message, str) and message else f"the target answered {word}")


def _status_message(answer: Answer, message: object) -> str:
    """Return the status and the body's own message, followed by the first 4 kB of the body."""
    status = answer.status
    phrase = HTTPStatus(status).phrase if status in _STATUSES else "a status of its own"
    hint = "; redirects are not followed" if 300 <= status < 400 else ""
    said = f": {message}" if isinstance(message, str) and message else ""
    head = clean_text(f"the target answered {status} {phrase}{hint}{said}")
    body = "" if _encoding(answer) else answer.body[:KEPT_OF_FAILURE].decode("utf-8", "replace").strip()
    return f"{head}\n{clean_text(body, KEPT_OF_FAILURE)}" if body else head


_STATUSES = frozenset(status.value for status in HTTPStatus)
_ALWAYS_SENT = {
    "Content-Type": "application/json",
    "User-Agent": f"Horai/{horai.__version__}",
    "Accept-Encoding": "identity",
}
_TRACE_CONTEXT = {"traceparent", "tracestate"}
_SAFE = re.compile(r"[A-Za-z0-9_.~:/@+-]*")
"""Text that `header_text` leaves as it is."""
_quoted = json.encoder.encode_basestring_ascii
_DIGITS = re.compile(r"[0-9]{1,12}")
_ESCAPED_NUL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")
