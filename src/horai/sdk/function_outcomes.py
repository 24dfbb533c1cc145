"""The outcome of an attempt, by how its function ends: exactly the three completion verbs, and one for later.

returning              markSuccess, with the value as the result
raising                markFailRetryable: retried by the job's retry policy, then a dead letter
raising Unrecoverable  markFailUnrecoverable: a dead letter at once
raising RetryLater     no completion: runs later, and does not count as a failure
raising Skip           markSuccess; a node of a workflow counts as skipped
"""

import traceback
from collections.abc import Iterator
from datetime import timedelta
from typing import cast

from horai.core.limits import MESSAGE_LIMIT, RESULT_LIMIT
from horai.core.node_results import branch_text, skip_text, wait_text
from horai.core.outcome import (
    SUCCESS,
    TIMEOUT,
    FailedRetryable,
    FailedUnrecoverable,
    NotSent,
    Outcome,
    Postponed,
    Succeeded,
    Suspended,
)
from horai.core.stored_text import clean_text
from horai.core.tags import own_tags
from horai.sdk.branches import Branch
from horai.sdk.codecs import PayloadMismatch, PayloadOfOtherCode
from horai.sdk.outcomes import NotReady, RetryLater, Skip, Unrecoverable
from horai.sdk.payloads import ResultInvalid, encode_result
from horai.sdk.suspension import ClaimLost, StepFailed, SuspendedRun
from horai.time.durations import format_duration

CODE_LIMIT = 128
SWALLOWED = FailedUnrecoverable(
    "SUSPENSION_SWALLOWED",
    "The function caught the end of an attempt that was suspended, and returned. Catch Exception, not BaseException.",
)
"""The outcome of a function that returned although a sleep or a wait had suspended it."""
TRACEBACK_LIMIT = 32_000
"""Characters of a traceback that are logged: the last ones, which contain the error itself."""


def outcome_of_value(value: object) -> Outcome:
    """Return the outcome of a function that returned `value`."""
    if value is None:
        return SUCCESS
    try:
        if isinstance(value, Branch):
            return Succeeded(_branch_text(cast("Branch[object]", value)))
        return Succeeded(encode_result(value))
    except ResultInvalid as error:
        return FailedUnrecoverable(
            "RESULT_INVALID", clean_text(f"The function has done its work, but {error}. Return less, or None.")
        )


def _branch_text(chosen: Branch[object]) -> str:
    text = branch_text(chosen.nodes, encode_result(chosen.result))
    if len(text.encode()) > RESULT_LIMIT:
        raise ResultInvalid(f"its result with the chosen nodes is larger than {RESULT_LIMIT} bytes")
    return text


def outcome_of_error(error: BaseException) -> Outcome:
    """Return the outcome of a function that raised `error`."""
    match error:
        case RetryLater():
            return Postponed(error.delay)
        case NotReady():
            return Succeeded(wait_text(clean_text(str(error))))
        case Skip():
            return Succeeded(skip_text(clean_text(str(error))))
        case SuspendedRun():
            return Suspended(timedelta(0), until=error.until)
        case ClaimLost():
            return NotSent(is_quiet=True)  # the settlement finds another claim, and changes nothing
        case BaseExceptionGroup():
            return _outcome_of_group(error)
        case Unrecoverable():
            return _unrecoverable(error)
        case PayloadOfOtherCode():  # a worker with the other code may run it
            return FailedRetryable(error.code, clean_text(str(error)))
        case PayloadMismatch():
            return FailedUnrecoverable("PAYLOAD_INVALID", clean_text(str(error)))
        case _:
            return FailedRetryable(_code(error), _message(error), traceback=_traceback(error))


def _outcome_of_group(group: BaseExceptionGroup[BaseException]) -> Outcome:
    """Return the outcome of tasks of which some were suspended: of the errors of the others, if there are any."""
    paused, rest = group.split(SuspendedRun)
    if paused is None or rest is not None:
        return FailedRetryable(_code(group), _message(group), traceback=_traceback(group))
    times = [error.until for error in _leaves(paused) if isinstance(error, SuspendedRun) and error.until is not None]
    return Suspended(timedelta(0), until=min(times, default=None))


def _leaves(group: BaseExceptionGroup[BaseException]) -> Iterator[BaseException]:
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from _leaves(cast("BaseExceptionGroup[BaseException]", error))
        else:
            yield error


def _unrecoverable(error: Unrecoverable) -> FailedUnrecoverable:
    kept = own_tags(error.tags)
    lost = "" if kept == error.tags else f"Not all of its tags were kept: {error.tags!r:.200}.\n"
    return FailedUnrecoverable(_code(error), clean_text(lost + _message(error)), kept, _traceback(error))


def timed_out(timeout: timedelta) -> Outcome:
    """Return the outcome of a function that took longer than its job allows."""
    return FailedRetryable(TIMEOUT, f"The function did not end within {format_duration(timeout)}.")


def _code(error: BaseException) -> str:
    name = error.error_type if isinstance(error, StepFailed) else type(error).__name__
    return clean_text(name)[:CODE_LIMIT]


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
