"""What becomes of slots that nobody made in time.

A slot is late when it is more than `after` past. The policy is `once`: of all late slots only the last is made, the
others are skipped, as one stored range.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from horai.core.schedule import Schedule, fires_between, next_after

COUNT_LIMIT = 10_000
_LOOKS = tuple(
    timedelta(seconds=seconds)
    for seconds in (60, 3_600, 86_400, 31 * 86_400, 366 * 86_400, 9 * 366 * 86_400, 41 * 366 * 86_400)
)


@dataclass(frozen=True, slots=True)
class Skipped:
    """Slots left out, first and last included; `slots` is None beyond `COUNT_LIMIT`."""

    from_time: datetime
    to_time: datetime
    slots: int | None


@dataclass(frozen=True, slots=True)
class CatchUp:
    """The slot to make now, and what is left out before it."""

    fire_time: datetime
    skipped: Skipped | None = None


def catch_up(schedule: Schedule, cursor: datetime, now: datetime, after: timedelta) -> CatchUp:
    """What to make of a schedule whose next slot is `cursor`, by the policy `once`."""
    threshold = now - after
    if cursor >= threshold:
        return CatchUp(cursor)
    last = latest_until(schedule, threshold, cursor)
    if last == cursor:
        return CatchUp(cursor)
    return CatchUp(last, _skipped(schedule, cursor, last))


def latest_until(schedule: Schedule, until: datetime, floor: datetime) -> datetime:
    """The last slot not after `until`; `floor` is a known one. Looks back in growing steps, not from the floor on."""
    for look in _LOOKS:
        start = max(until - look, floor)
        found = None
        while (fire := next_after(schedule, found or start)) is not None and fire <= until:
            found = fire
        if found is not None:
            return found
        if start == floor:
            break
    return floor


def _skipped(schedule: Schedule, first: datetime, last: datetime) -> Skipped:
    before = latest_until(schedule, last - timedelta(milliseconds=1), first)
    between = sum(1 for _ in fires_between(schedule, first, before, COUNT_LIMIT))
    return Skipped(first, before, between + 1 if between < COUNT_LIMIT else None)
