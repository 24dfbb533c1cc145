"""The message that a JetStream subject gets for one attempt, and the meaning of the stream's answer.

The message has the body and the headers of an HTTP call, signed in the same way. The answer decides the attempt:

    stored                                  succeeded, with the stream and the sequence number as the result
    no stream has the subject, or the       failed retryable (`NATS_NO_STREAM`): it also happens while a stream has no
    stream has no leader                    leader
    the stream is full                      failed retryable (`NATS_STREAM_FULL`)
    the message is too large                failed unrecoverable (`NATS_TOO_LARGE`)
    another error of the server             failed retryable (`NATS_UNAVAILABLE`)
    another refusal                         failed unrecoverable (`NATS_REFUSED`)
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final, cast

from horai.core.callbacks import header_text, headers_of
from horai.core.calls import Call, NatsTarget
from horai.core.outcome import FailedRetryable, FailedUnrecoverable, Outcome, Succeeded
from horai.core.stored_text import clean_text

NATS_SCHEMES: Final = ("nats://", "tls://")

NO_STREAM: Final = "NATS_NO_STREAM"
STREAM_FULL: Final = "NATS_STREAM_FULL"
TOO_LARGE: Final = "NATS_TOO_LARGE"
UNAVAILABLE: Final = "NATS_UNAVAILABLE"
REFUSED: Final = "NATS_REFUSED"
DENIED: Final = "NATS_DENIED"
"""The server does not let Horai publish to the subject."""
UNAUTHENTICATED: Final = "NATS_UNAUTHENTICATED"
"""The server does not accept the credentials of the broker."""
ID_TAKEN: Final = "NATS_ID_TAKEN"
"""The stream has another message with this id."""

_NO_RESPONDERS: Final = "503"
_STORE_FAILED: Final = 10077
"""The error of a stream that is full and discards new messages."""
_LARGER_THAN_ALLOWED: Final = 10054


@dataclass(frozen=True, slots=True)
class StreamAnswer:
    """The answer to a message: its status line, which only an answer without a stream has, and its body."""

    status: str | None
    body: bytes


class LineFault(Exception):
    """A message has no answer, or was not sent. `outcome` is the outcome of its attempt."""

    def __init__(self, outcome: FailedRetryable | FailedUnrecoverable) -> None:
        super().__init__(outcome.code)
        self.outcome = outcome


def message_headers(call: Call, target: NatsTarget, body: bytes, now: datetime) -> dict[str, str]:
    """Return the headers of the message: those of an HTTP call, the names of the instance, and the message id.

    The id is the same for every try, so that a stream stores the message once within its duplicate window. If the outcome is
    reported, each try has its own id: the consumer has to get the message again.
    """
    headers = headers_of(call, body, now)
    del headers["Accept-Encoding"]
    if not target.is_reported:
        del headers["Horai-Outcome-Token"]
    return headers | {
        "Horai-Tenant": header_text(call.tenant),
        "Horai-Job": header_text(call.job),
        "Horai-Instance": str(call.instance_id),
        "Nats-Msg-Id": f"{call.idempotency_key}#{call.fence}" if target.is_reported else call.idempotency_key,
    }


def message_size(headers: Mapping[str, str], body: bytes) -> int:
    """Return the bytes of a message as the server counts them: with its headers."""
    return len("NATS/1.0\r\n\r\n") + sum(len(name) + len(value) + 4 for name, value in headers.items()) + len(body)


def too_large(size: int, most: int) -> FailedUnrecoverable:
    """Return the outcome of a message that is larger than the server accepts."""
    return FailedUnrecoverable(TOO_LARGE, f"the message has {size} bytes, and the server accepts {most}")


def outcome_of_answer(answer: StreamAnswer, call: Call, target: NatsTarget) -> Outcome:
    """Decide the outcome of an attempt whose message was answered."""
    if answer.status == _NO_RESPONDERS:
        return FailedRetryable(NO_STREAM, f"no stream stores messages of the subject {target.subject} at the moment")
    said = _object_in(answer.body)
    if isinstance(error := said.get("error"), dict):
        return _refusal(cast("dict[str, object]", error))
    stream, sequence = said.get("stream"), said.get("seq")
    if not isinstance(stream, str) or not isinstance(sequence, int):
        return FailedRetryable(UNAVAILABLE, f"the answer for the subject {target.subject} is not that of a stream")
    if said.get("duplicate") and call.fence == 1:
        # No earlier attempt can have sent it: the message of another Horai has the same id, and this one is not stored.
        message = (
            f"the stream {stream} has another message with the id {call.idempotency_key}; it is message {sequence}"
        )
        return FailedUnrecoverable(ID_TAKEN, clean_text(message))
    return Succeeded(json.dumps({"stream": stream, "sequence": sequence}))


def _refusal(error: dict[str, object]) -> Outcome:
    code, status = error.get("err_code"), error.get("code")
    message = clean_text(
        f"the stream answered: {error.get('description') or 'an error without a description'} ({code})"
    )
    if code == _STORE_FAILED:
        return FailedRetryable(STREAM_FULL, message)
    if code == _LARGER_THAN_ALLOWED:
        return FailedUnrecoverable(TOO_LARGE, message)
    if isinstance(status, int) and 400 <= status < 500:
        return FailedUnrecoverable(REFUSED, message)
    return FailedRetryable(UNAVAILABLE, message)


def _object_in(body: bytes) -> dict[str, object]:
    try:
        found: object = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return cast("dict[str, object]", found) if isinstance(found, dict) else {}
