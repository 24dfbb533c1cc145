"""Many slots of a schedule in a row: the same as `next_after` returns one by one, and thirty times as fast.

Far from any clock change, a cron fires at the same times on each of its days. Near one, and at the ends of a year, the
slots are computed one by one.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import lru_cache

from horai.time.cron import Cron
from horai.time.cron.calendar import DAY, next_day, next_slot
from horai.time.cron.segments import EPOCH, segment_at
from horai.time.exclusions import is_excluded
from horai.time.schedule import CronSchedule, Schedule, next_after, next_from
from horai.time.zones import zone

_MARGIN = 3
"""Days before and after a clock change that are not calm: no change moves a clock by more than two days."""
_EPOCH_ORDINAL = date(1970, 1, 1).toordinal()


def slots_from(schedule: Schedule, first: datetime, until: datetime) -> Iterator[datetime]:
    """Yield the slots at or after `first` and before `until`, in order."""
    slot = next_from(schedule, first)
    while slot is not None and slot < until:
        calm = _calm(schedule, slot) if isinstance(schedule, CronSchedule) else None
        if calm is None:
            yield slot
            slot = next_after(schedule, slot)
        else:
            yield from calm.slots(slot, until)
            slot = next_from(schedule, calm.end_instant)


def are_more_than(most: int, schedule: Schedule, first: datetime, until: datetime) -> bool:
    """Return whether the range surely has more than `most` slots, without expanding them.

    Whole days are counted by their times, and days around clock changes are left out. False may therefore mean that the
    range is close to `most` (within a tenth): expand it to be exact.
    """
    if not isinstance(schedule, CronSchedule):
        return False
    count = 0
    slot = next_from(schedule, first)
    while slot is not None and slot < until and count <= most:
        calm = _calm(schedule, slot)
        if calm is None:
            slot = next_from(schedule, slot + timedelta(seconds=DAY))
        else:
            count += calm.count(slot, until, most - count)
            slot = next_from(schedule, calm.end_instant)
    return count > most


@dataclass(frozen=True, slots=True)
class _Calm:
    """Whole days of a zone's wall clock, counted from 1970, on which it is `offset` seconds ahead of UTC."""

    schedule: CronSchedule
    first: int
    end: int
    offset: int

    @property
    def end_instant(self) -> datetime:
        return EPOCH + timedelta(seconds=self.end * DAY - self.offset)

    def slots(self, since: datetime, until: datetime) -> Iterator[datetime]:
        cron, times = self.schedule.cron, _times(self.schedule.cron)
        day = next_day(cron, self.first)
        while day is not None and day < self.end:
            if not self._is_excluded(day):
                midnight = EPOCH + timedelta(seconds=day * DAY - self.offset)
                for time in times:
                    slot = midnight + time
                    if slot >= until:
                        return
                    if slot >= since:
                        yield slot
            day = next_day(cron, day + 1)

    def count(self, since: datetime, until: datetime, most: int) -> int:
        """Count the slots of the whole days between the two; stop beyond `most`."""
        cron, per_day, count = self.schedule.cron, len(_times(self.schedule.cron)), 0
        offset = timedelta(seconds=self.offset)
        first = -((EPOCH - offset - since) // timedelta(seconds=DAY))
        end = min(self.end, (until + offset - EPOCH) // timedelta(seconds=DAY))
        day = next_day(cron, max(self.first, first))
        while day is not None and day < end and count <= most:
            count += 0 if self._is_excluded(day) else per_day
            day = next_day(cron, day + 1)
        return count

    def _is_excluded(self, day: int) -> bool:
        return is_excluded(self.schedule.excluded, date.fromordinal(_EPOCH_ORDINAL + day))


def _calm(schedule: CronSchedule, slot: datetime) -> _Calm | None:
    """Return the calm days from that of `slot` on; None if it is not calm, or a calendar moves its times."""
    if schedule.calendar is not None:
        return None
    instant = (slot - EPOCH) // timedelta(seconds=1)
    segment = segment_at(zone(schedule.timezone), instant)
    day = (instant + segment.offset) // DAY
    first = (segment.start + segment.offset) // DAY + _MARGIN
    end = (segment.end + segment.offset) // DAY - _MARGIN
    return _Calm(schedule, day, end, segment.offset) if first <= day < end else None


@lru_cache(maxsize=100)
def _times(cron: Cron) -> tuple[timedelta, ...]:
    """Return the times of day at which the cron fires, on the days on which it does."""
    day = next_day(cron, 0)
    found: list[timedelta] = []
    slot = None if day is None else next_slot(cron, day * DAY)
    while day is not None and slot is not None and slot < (day + 1) * DAY:
        found.append(timedelta(seconds=slot - day * DAY))
        slot = next_slot(cron, slot + 1)
    return tuple(found)
