"""Decide which days of history are folded and dropped next. Days are in UTC."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta

FOLD_AFTER = timedelta(hours=1)
"""Time after the end of a day until it is folded: transactions of that day have ended by then."""
PARENTS = ("instance_history", "attempt", "event", "note")
"""The partitioned tables. Instances go first: rows of the others stay as long as their instance does."""
_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class HistoryDays:
    """The days that have partitions, by table, and the bounds of history.

    `folded_before`: the keys of instances that ended before it are folded; None if no day is. `first_stray`: the day of
    the oldest row in the default partition.
    """

    now: datetime
    days: Mapping[str, Sequence[date]]
    folded_before: datetime | None = None
    first_stray: date | None = None


def start_of(day: date) -> datetime:
    """Return the first instant of a day."""
    return datetime.combine(day, time(), UTC)


def next_to_fold(history: HistoryDays) -> date | None:
    """Return the first day that is over and not folded; None if there is none."""
    first = _first_day(history)
    if first is None or start_of(first + _DAY) + FOLD_AFTER > history.now:
        return None
    return first


def _first_day(history: HistoryDays) -> date | None:
    if history.folded_before is not None:
        return history.folded_before.astimezone(UTC).date()
    known = [*history.days.get(PARENTS[0], ()), *([history.first_stray] if history.first_stray is not None else [])]
    return min(known, default=None)


def to_drop(history: HistoryDays, keep: timedelta) -> list[tuple[str, date]]:
    """Return the days of each table that ended longer than `keep` ago, oldest first and instances first."""
    old = _days_before(history.days, history.now - keep)
    return sorted(
        (
            (parent, day)
            for parent, day in old
            if history.folded_before is not None and _ends(day) <= history.folded_before
        ),
        key=lambda each: (each[1], PARENTS.index(each[0])),
    )


def _days_before(days: Mapping[str, Sequence[date]], bound: datetime) -> Iterable[tuple[str, date]]:
    return ((parent, day) for parent in PARENTS for day in days.get(parent, ()) if _ends(day) <= bound)


def _ends(day: date) -> datetime:
    return start_of(day + _DAY)
