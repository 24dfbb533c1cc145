"""The outcome that a report of a remote worker stands for."""

import json
import math
from datetime import timedelta

from msgspec import Raw, UnsetType

from horai.core.callbacks import output_text
from horai.core.outcome import (
    SUCCESS,
    FailedRetryable,
    FailedUnrecoverable,
    NotSent,
    Outcome,
    Postponed,
    Succeeded,
)
from horai.core.stored_text import clean_text
from horai.core.tags import own_tags
from horai.wire.worker_messages import Report

CODE_LIMIT = 128
TRACEBACK_LIMIT = 32_000
LONGEST_DELAY = timedelta(days=366)
RESULT_INVALID = FailedUnrecoverable(
    "RESULT_INVALID", "The function has done its work, but its output is not JSON that can be stored in 64 KiB."
)


def outcome_of_report(report: Report) -> Outcome:
    """Return the outcome. Texts are cut to their limits; output that cannot be stored is a failure."""
    match report.result:
        case "succeeded":
            return _succeeded(report.output)
        case "failed":
            wait = _delay(report.delay)
            return FailedRetryable(
                clean_text(report.code, CODE_LIMIT) or "FAILED",
                clean_text(report.message),
                wait or None,
                clean_text(report.traceback, TRACEBACK_LIMIT) or None,
            )
        case "unrecoverable":
            return FailedUnrecoverable(
                clean_text(report.code, CODE_LIMIT) or "UNRECOVERABLE",
                clean_text(report.message),
                own_tags(report.tags),
                clean_text(report.traceback, TRACEBACK_LIMIT) or None,
            )
        case "later":
            return Postponed(_delay(report.delay))
        case "released":
            return NotSent()


def _succeeded(output: Raw | UnsetType) -> Outcome:
    if isinstance(output, UnsetType) or (value := json.loads(bytes(output))) is None:
        return SUCCESS
    text = output_text(value)
    return RESULT_INVALID if text is None else Succeeded(text)


def _delay(seconds: float) -> timedelta:
    """Return a delay between 0 and `LONGEST_DELAY`."""
    if not math.isfinite(seconds) or seconds <= 0:
        return timedelta(0)
    return min(timedelta(seconds=min(seconds, LONGEST_DELAY.total_seconds())), LONGEST_DELAY)
