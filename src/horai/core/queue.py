"""The settings of a queue: its priority, its limits of concurrency and rate, its pause, and its labels."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from horai.core.errors import FieldError, Invalid
from horai.core.job import QUEUE, Priority
from horai.core.labels import check_labels
from horai.core.validation import Validation
from horai.text import Hint, Wrong, mismatch, told_by
from horai.text.phrase import Joined, Phrase

DEFAULT_PRIORITY = Priority.normal
MAX_CONCURRENCY = 10_000
MAX_RATE = 1_000_000

BURST = timedelta(milliseconds=100)
"""An idle bucket holds the tokens of this time, at least one."""

_PERIODS = {"s": timedelta(seconds=1), "m": timedelta(minutes=1), "h": timedelta(hours=1)}
_RATE = re.compile(r"([0-9]{1,9})/([smh])")
RATE_HINT = Hint.WRITE_RATE()
LIMIT_HINT = Hint.WRITE_LIMIT(most=MAX_CONCURRENCY)


@dataclass(frozen=True, slots=True)
class Rate:
    """A number of starts per period."""

    count: int
    per: timedelta

    def __str__(self) -> str:
        """Return the rate as people write it."""
        unit = next(unit for unit, period in _PERIODS.items() if period == self.per)
        return f"{self.count}/{unit}"

    @property
    def per_second(self) -> float:
        """Return the tokens that one second adds."""
        return self.count / self.per.total_seconds()

    @property
    def burst(self) -> float:
        """Return the most tokens that an idle bucket holds."""
        return max(1.0, self.per_second * BURST.total_seconds())

    def offset(self, number: int) -> timedelta:
        """Return how long after the first start the start `number` (from 0) comes, if starts are spaced evenly."""
        return self.per * number / self.count

    def wait(self, tokens: float) -> timedelta:
        """Return how long a bucket with `tokens` in it takes to have a whole one.

        The result is rounded up, so that a wait is never in vain.
        """
        missing = max(0.0, 1.0 - tokens) / self.per_second
        return timedelta(0) if missing == 0 else timedelta(seconds=missing) + timedelta(microseconds=1)


def parse_rate(written: object) -> Rate:
    """Return the rate that `written`, a text or a whole number, describes. Raise ValueError for anything else."""
    text = written if isinstance(written, str) else f"{written}/s"
    found = _RATE.fullmatch(text)
    if found is None:
        raise ValueError(Wrong.NOT_A_RATE(text=str(written)[:40]))
    if not 1 <= int(found[1]) <= MAX_RATE:
        raise ValueError(Wrong.RATE_RANGE(most=MAX_RATE))
    return Rate(int(found[1]), _PERIODS[found[2]])


@dataclass(frozen=True, slots=True)
class QueueSettings:
    """The settings of a queue; the defaults limit nothing."""

    priority: Priority | None = None
    max_concurrency: int | None = None
    rate: Rate | None = None
    paused: bool = False
    note: str | None = None
    """The reason of the pause, or another remark."""
    title: str | None = None
    description: str | None = None
    owner: str | None = None

    @property
    def priority_in_force(self) -> Priority:
        """Return the priority of jobs that have none of their own."""
        return DEFAULT_PRIORITY if self.priority is None else self.priority


def checked_name(name: str) -> str:
    """Return the name. Raise `Invalid` if a queue cannot have it."""
    if not QUEUE.fullmatch(name):
        raise Invalid.field("name", mismatch(name, QUEUE))
    return name


def checked(document: Mapping[str, Any]) -> QueueSettings:
    """Return the settings that `document` describes. Raise `Invalid` with every wrong field.

    Missing or null fields have their defaults.
    """
    errors: list[FieldError] = []
    hints: list[Phrase] = []
    priority = document.get("priority")
    if priority is not None and (not isinstance(priority, str) or priority not in Priority.__members__):
        errors.append(
            FieldError("priority", Wrong.NOT_ONE_OF(value=str(priority)[:40], allowed=", ".join(Priority.__members__)))
        )
    limit, rate = read_limits(document, errors, hints)
    labels = Validation()
    check_labels(document, labels)
    errors += labels.errors
    hints += [labels.hint] if labels.hint else []
    if errors:
        raise Invalid.fields(errors, Joined.THEN.all(hints) if hints else None)
    return QueueSettings(
        Priority[priority] if priority else None,
        limit,
        rate,
        bool(document.get("paused")),
        *(document.get(field) for field in ("note", "title", "description", "owner")),
    )


def read_limits(
    document: Mapping[str, Any], errors: list[FieldError], hints: list[Phrase]
) -> tuple[int | None, Rate | None]:
    """Return `maxConcurrency` and `rate` as people write them; add their faults to `errors` and `hints`."""
    limit: Any = document.get("maxConcurrency")
    is_whole = isinstance(limit, int) and not isinstance(limit, bool)
    if limit is not None and not (is_whole and 1 <= limit <= MAX_CONCURRENCY):
        errors.append(FieldError("maxConcurrency", Wrong.NOT_BETWEEN(low=1, high=MAX_CONCURRENCY)))
        hints.append(LIMIT_HINT)
    rate = None
    try:
        rate = None if document.get("rate") is None else parse_rate(document["rate"])
    except ValueError as error:
        errors.append(FieldError("rate", told_by(error)))
        hints.append(RATE_HINT)
    return limit, rate
