"""The fires of one schedule in each minute of a window.

The result has one byte per minute, because no schedule fires more than 60 times in one. A cron's day is the same bytes
on every day that matches, so a window is composed of whole days, laid over the periods of constant UTC offset of its
zone and cut where these begin and end. The result equals iterating from fire to fire with `next_after`; the code does
iterate where a zone's clock is not whole minutes ahead of UTC, and where a named calendar moves the fires.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import lru_cache
from itertools import pairwise
from zoneinfo import ZoneInfo

from horai.time.cron import Cron, DstPolicy
from horai.time.cron.calendar import next_day, next_slot
from horai.time.cron.fires import REAL_TIME
from horai.time.cron.segments import Segment, segment_at
from horai.time.exclusions import is_excluded
from horai.time.schedule import EPOCH, CronSchedule, EverySchedule, Schedule, fires_between
from horai.time.zones import zone

MINUTE = timedelta(minutes=1)
DAY = 1_440
"""Minutes per day."""

_MOMENT = timedelta(microseconds=1)
_IN_A_MINUTE = MINUTE // _MOMENT
_MOST_IN_A_MINUTE = 60
_EPOCH_ORDINAL = EPOCH.toordinal()
_IDLE_HOUR = bytes(60)


@dataclass(frozen=True, slots=True)
class ForecastWindow:
    """Whole minutes, counted from 1970-01-01 00:00 UTC: `start` is included, `end` is excluded."""

    start: int
    end: int

    @property
    def minutes(self) -> int:
        """Return the number of minutes."""
        return self.end - self.start

    def at(self, index: int) -> datetime:
        """Return the begin of the minute with that index."""
        return EPOCH + (self.start + index) * MINUTE


def window_after(now: datetime, minutes: int) -> ForecastWindow:
    """Return a window of `minutes` minutes, from the first that has not begun at `now`."""
    start = -((EPOCH - now) // MINUTE)
    return ForecastWindow(start, start + minutes)


def fires_per_minute(schedule: Schedule, window: ForecastWindow) -> bytes:
    """Count the fires of a schedule in each minute of the window."""
    segments = list(_segments(zone(schedule.timezone), window))
    if schedule.calendar is not None or any(_is_odd(segment) for segment in segments):
        return _walked(schedule, window)
    match schedule:
        case CronSchedule():
            counts = _of_cron(schedule, window, segments)
        case EverySchedule():
            counts = _of_interval(schedule, window)
    if schedule.excluded:
        for segment in segments:
            _blank_excluded(counts, schedule.excluded, window, segment)
    return bytes(counts)


def bounded(
    counts: bytes, schedule: Schedule, window: ForecastWindow, bounds: tuple[datetime | None, datetime | None]
) -> bytes:
    """Return `counts` without the fires before the first bound or after the second; both bounds are included."""
    kept = bytearray(counts)
    since, until = bounds
    first = 0 if since is None else min(max((since - EPOCH) // MINUTE - window.start, 0), window.minutes)
    last = (
        window.minutes - 1
        if until is None
        else min(max((until - EPOCH) // MINUTE - window.start, -1), window.minutes - 1)
    )
    kept[:first] = bytes(first)
    kept[last + 1 :] = bytes(window.minutes - last - 1)
    for edge in {first, last}:
        if first <= edge <= last:
            begin = window.at(edge) if since is None else max(window.at(edge), since)
            end = window.at(edge + 1) - _MOMENT if until is None else min(window.at(edge + 1) - _MOMENT, until)
            kept[edge] = sum(1 for _ in fires_between(schedule, begin - _MOMENT, end, _MOST_IN_A_MINUTE))
    return bytes(kept)


def _segments(place: ZoneInfo, window: ForecastWindow) -> Iterator[Segment]:
    instant = window.start * 60
    while instant < window.end * 60:
        segment = segment_at(place, instant)
        yield segment
        instant = segment.end


def _is_odd(segment: Segment) -> bool:
    """Return whether the minutes of its clock do not begin with those of UTC, as before railway time."""
    edges = (segment.start, segment.end, segment.repeats_until, segment.repeated_from)
    return any(second % 60 for second in (segment.offset, *edges))


def _walked(schedule: Schedule, window: ForecastWindow) -> bytes:
    counts = bytearray(window.minutes)
    most = window.minutes * _MOST_IN_A_MINUTE
    for fire in fires_between(schedule, window.at(0) - _MOMENT, window.at(window.minutes) - _MOMENT, most):
        counts[(fire - window.at(0)) // MINUTE] += 1
    return bytes(counts)


def _of_cron(schedule: CronSchedule, window: ForecastWindow, segments: list[Segment]) -> bytearray:
    cron = schedule.cron
    policy = REAL_TIME if cron.is_wildcard else schedule.dst
    counts = bytearray(window.minutes)
    for segment in segments:
        first, last = _open_minutes(segment, policy, window)
        if first < last:
            ahead = segment.offset // 60
            counts[first - window.start : last - window.start] = _on_the_wall(cron, first + ahead, last + ahead)
        start = segment.start // 60
        if start >= window.start and _makes_up(cron, segment, policy):
            counts[start - window.start] += 1
    return counts


def _open_minutes(segment: Segment, policy: DstPolicy, window: ForecastWindow) -> tuple[int, int]:
    """Return the minutes of the segment whose wall times count: first included, last excluded."""
    begin = max(segment.start, segment.repeats_until) if policy.overlap == "first" else segment.start
    end = min(segment.end, segment.repeated_from) if policy.overlap == "last" else segment.end
    return max(begin // 60, window.start), min(end // 60, window.end)


def _makes_up(cron: Cron, segment: Segment, policy: DstPolicy) -> bool:
    """Return whether the segment begins with an extra fire for times that are lost in its gap."""
    if policy.gap != "shift" or segment.lost_from is None:
        return False
    landed = segment.start + segment.offset
    lost = next_slot(cron, segment.lost_from)
    return lost is not None and lost < landed and next_slot(cron, landed) != landed


def _on_the_wall(cron: Cron, first: int, last: int) -> bytearray:
    """Count the fires in the wall minutes from `first` (included) to `last` (excluded)."""
    first_day, last_day = first // DAY, (last - 1) // DAY
    wall = bytearray((last_day - first_day + 1) * DAY)
    of_a_day = _day(cron.hours, cron.minutes, cron.seconds.bit_count())
    day = next_day(cron, first_day)
    while day is not None and day <= last_day:
        at = (day - first_day) * DAY
        wall[at : at + DAY] = of_a_day
        day = next_day(cron, day + 1)
    return wall[first - first_day * DAY : last - first_day * DAY]


@lru_cache(maxsize=1_000)
def _day(hours: int, minutes: int, fires: int) -> bytes:
    """Return a day on which every allowed minute has `fires` fires."""
    hour = bytes(fires if minutes >> minute & 1 else 0 for minute in range(60))
    return b"".join(hour if hours >> number & 1 else _IDLE_HOUR for number in range(24))


def _of_interval(schedule: EverySchedule, window: ForecastWindow) -> bytearray:
    """Count the fires of an interval, in microseconds from the window's start on."""
    interval = schedule.interval // _MOMENT
    anchor = (schedule.anchor - window.at(0)) // _MOMENT % interval
    end = window.minutes * _IN_A_MINUTE
    if interval < _IN_A_MINUTE:
        before = [-((anchor - edge) // interval) for edge in range(0, end + 1, _IN_A_MINUTE)]
        return bytearray(later - earlier for earlier, later in pairwise(before))
    counts = bytearray(window.minutes)
    for fire in range(anchor, end, interval):
        counts[fire // _IN_A_MINUTE] += 1
    return counts


def _blank_excluded(counts: bytearray, dates: tuple[str, ...], window: ForecastWindow, segment: Segment) -> None:
    """Clear the fires at which the segment's clock shows an excluded date."""
    ahead = segment.offset // 60
    first, last = max(segment.start // 60, window.start), min(segment.end // 60, window.end)
    for day in range((first + ahead) // DAY, (last - 1 + ahead) // DAY + 1):
        if is_excluded(dates, date.fromordinal(_EPOCH_ORDINAL + day)):
            begin = max(day * DAY - ahead, first) - window.start
            end = min((day + 1) * DAY - ahead, last) - window.start
            counts[begin:end] = bytes(end - begin)
