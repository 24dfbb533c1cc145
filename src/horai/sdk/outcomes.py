"""The outcome of an attempt, by how its function ends: exactly the three completion verbs, and one for later.

returning              markSuccess, with the value as the result
raising                markFailRetryable: retried by the job's retry policy, then a dead letter
raising Unrecoverable  markFailUnrecoverable: a dead letter at once
raising RetryLater     no completion: runs later, and does not count as a failure
"""

import traceback
from collections.abc import Iterable
from datetime import timedelta

from horai.core.callbacks import clean_text
from horai.core.outcome import (
    MESSAGE_LIMIT,
    SUCCESS,
    TIMEOUT,
    FailedRetryable,
    FailedUnrecoverable,
    Outcome,
    Postponed,
    Succeeded,
)
from horai.core.tags import own_tags
from horai.sdk.payloads import PayloadMismatch, ResultInvalid, encode_result
from horai.time.durations import format_duration, parse_duration

CODE_LIMIT = 128
TRACEBACK_LIMIT = 32_000
"""Characters of a traceback that are logged: the last ones, which contain the error itself."""


class Unrecoverable(Exception):
    """A retry would not help: the instance becomes a dead letter at once. `tags` are your own, to find it by.

    At most 10 tags, each of up to 64 characters without spaces and commas; others are left out, and the letter says so.
    """

    def __init__(self, *message: object, tags: Iterable[str] = ()) -> None:
        super().__init__(*message)
        self.tags = (tags,) if isinstance(tags, str) else tuple(tags)


class RetryLater(Exception):
    """Not now: run again after `delay` (seconds, "10m", or a timedelta). This does not count as a failure."""

    def __init__(self, delay: float | str | timedelta, message: str = "") -> None:
        self.delay = seconds_of(delay)
        super().__init__(message or f"retry in {self.delay.total_seconds():g} s")


def seconds_of(duration: float | str | timedelta) -> timedelta:
    """Return a duration, given as seconds, text such as "10m", or a timedelta. Raises ValueError if it is negative."""
    match duration:
        case timedelta():
            found = duration
        case str():
            found = parse_duration(duration)
        case _:
            found = timedelta(seconds=duration)
    if found < timedelta(0):
        raise ValueError(f"{duration!r} is below zero")
    return found


def outcome_of_value(value: object) -> Outcome:
    """Return the outcome of a function that returned `value`."""
    if value is None:
        return SUCCESS
    try:
        return Succeeded(encode_result(value))
    except ResultInvalid as error:
        return FailedUnrecoverable(
            "RESULT_INVALID", clean_text(f"The function has done its work, but {error}. Return less, or None.")
        )


def outcome_of_error(error: BaseException) -> Outcome:
    """Return the outcome of a function that raised `error`."""
    match error:
        case RetryLater():
            return Postponed(error.delay)
        case Unrecoverable():
            return _unrecoverable(error)
        case PayloadMismatch():
            return FailedUnrecoverable("PAYLOAD_INVALID", clean_text(str(error)))
        case _:
            return FailedRetryable(_code(error), _message(error), traceback=_traceback(error))


def _unrecoverable(error: Unrecoverable) -> FailedUnrecoverable:
    kept = own_tags(error.tags)
    lost = "" if kept == error.tags else f"Not all of its tags were kept: {error.tags!r:.200}.\n"
    return FailedUnrecoverable(_code(error), clean_text(lost + _message(error)), kept, _traceback(error))


def timed_out(timeout: timedelta) -> Outcome:
    """Return the outcome of a function that took longer than its job allows."""
    return FailedRetryable(TIMEOUT, f"The function did not end within {format_duration(timeout)}.")


def _code(error: BaseException) -> str:
    return clean_text(type(error).__name__)[:CODE_LIMIT]


def _message(error: BaseException) -> str:
    """Return the text of the error and the innermost frames of its traceback, as many as fit in `MESSAGE_LIMIT`."""
    said = "".join(traceback.format_exception_only(error)).strip()
    frames = traceback.extract_tb(error.__traceback__)[1:] or traceback.extract_tb(error.__traceback__)
    way = "".join(traceback.format_list(frames))
    return clean_text(f"{said[: MESSAGE_LIMIT // 2]}\n{way[-(MESSAGE_LIMIT // 2 - 1) :]}".strip())


def _traceback(error: BaseException) -> str:
    """Format the traceback as Python prints it, with the errors that led to this one and without any variable."""
    text = "".join(traceback.format_exception(error)).rstrip()
    return clean_text(text[-TRACEBACK_LIMIT:], TRACEBACK_LIMIT)
