"""Decide which days of history are folded and dropped next, and whose rows go earlier. Days are in UTC."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta

FOLD_AFTER = timedelta(hours=1)
"""Time after the end of a day until it is folded: transactions of that day have ended by then."""
PARENTS = ("instance_history", "attempt", "event", "note")
"""The partitioned tables. Instances go first: rows of the others stay as long as their instance does."""
DROP_AGAIN, DROP_LARGE_AGAIN = timedelta(days=1), timedelta(days=7)
"""Days with rows that are still needed are looked at again after this time; those with many rows after the second."""
MANY = 10_000
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


def to_adopt(strays: Mapping[str, date], now: datetime) -> list[tuple[str, date]]:
    """Return the days with rows in a default partition that are over: nothing writes to them any more. Oldest first."""
    over = [(parent, day) for parent, day in strays.items() if start_of(day + _DAY) + FOLD_AFTER <= now]
    return sorted(over, key=lambda each: (each[1], PARENTS.index(each[0])))


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


@dataclass(frozen=True, slots=True)
class OwnTimes:
    """The time for which a tenant (`job_id` 0) or a job keeps its history."""

    tenant_id: int
    job_id: int
    keep: timedelta


@dataclass(frozen=True, slots=True)
class Clearing:
    """A day of which the rows of some tenants and jobs go. `apart`: jobs of these tenants with a time of their own."""

    day: date
    jobs: tuple[int, ...]
    tenants: tuple[int, ...]
    apart: tuple[int, ...]


def to_clear(history: HistoryDays, keep: timedelta, owns: Sequence[OwnTimes]) -> list[Clearing]:
    """Return the days with rows that go before the day is dropped, oldest first.

    They are folded, and younger than `keep`: older days are dropped as a whole.
    """
    clearings = [
        _clearing(day, owns, history.now)
        for day in sorted(history.days.get(PARENTS[0], ()))
        if history.folded_before is not None and history.now - keep < _ends(day) <= history.folded_before
    ]
    return [clearing for clearing in clearings if clearing.jobs or clearing.tenants]


def _clearing(day: date, owns: Sequence[OwnTimes], now: datetime) -> Clearing:
    due = [own for own in owns if _ends(day) <= now - own.keep]
    tenants = tuple(own.tenant_id for own in due if not own.job_id)
    apart = tuple(own.job_id for own in owns if own.job_id and own.tenant_id in tenants)
    return Clearing(day, tuple(own.job_id for own in due if own.job_id), tenants, apart)


@dataclass(frozen=True, slots=True)
class Look:
    """The last time at which an old day was looked at, and the number of rows that stayed."""

    at: datetime
    kept: int


def is_due_again(day: date, last: Look | None, now: datetime, owns: Sequence[OwnTimes]) -> bool:
    """Return whether an old day with rows that stayed is looked at now.

    It is when a tenant or a job stops keeping it, and seldom for the other reasons to keep a row.
    """
    if last is None:
        return True
    if any(last.at < _ends(day) + own.keep <= now for own in owns):
        return True
    return now - last.at >= (DROP_LARGE_AGAIN if last.kept > MANY else DROP_AGAIN)
