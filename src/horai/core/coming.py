"""The coming fires of a job, each with what its own clock shows, and a word where that clock or a calendar had a say.

The fires are those of `Timing.next_after`, which the trigger follows too; here they are only told of.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta, timezone

from horai.core.cron.calendar import DAY, next_slot
from horai.core.cron.fires import REAL_TIME
from horai.core.cron.segments import EPOCH, LAST_YEAR, Segment, segment_at
from horai.core.durations import format_duration
from horai.core.exclusions import is_excluded
from horai.core.schedule import CronSchedule, Schedule, first_open, next_after
from horai.core.timing import Timing
from horai.core.zones import zone

MOST_FIRES = 1_000
MOST_DATES = 30
"""So many excluded dates before a fire are counted."""
MOST_TIMES = 3
"""So many times that one clock change has taken are named."""
MOST_LOOKS = 60
"""So many stretches of a zone's time are looked at for one fire; beyond, nothing more is told."""

_SECOND = timedelta(seconds=1)
_MOMENT = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Fire:
    """An instant at which a job fires, in UTC; `local` is the same instant with the offset of the job's zone."""

    fire_time: datetime
    local: datetime
    note: str | None = None


def coming(timing: Timing, after: datetime, count: int) -> list[Fire]:
    """The next `count` fires strictly after `after`; fewer when there are no more.

    Of a job that counts from the end of its runs only the first is known.
    """
    if timing.schedule is None:
        return []
    if timing.start_at is not None:
        after = max(after, timing.start_at - _MOMENT)
    fires: list[Fire] = []
    while len(fires) < count and (fire := timing.next_after(after)) is not None and fire.year < LAST_YEAR:
        if timing.after_finish is not None:
            return [told(timing, fire)]
        fires.append(Fire(fire, _local(timing.schedule, fire), _note(timing.schedule, after, fire)))
        after = fire
    return fires


def told(timing: Timing, fire: datetime) -> Fire:
    """A known fire of a job that counts from the end of its runs."""
    assert timing.schedule is not None  # noqa: S101 — who counts has an interval
    return Fire(fire, _local(timing.schedule, fire), after_each_run(timing))


def after_each_run(timing: Timing) -> str | None:
    """What is known of the fires behind the next one of a job that counts from the end of its runs."""
    return (
        None if timing.after_finish is None else f"then {format_duration(timing.after_finish)} after each run has ended"
    )


def _local(schedule: Schedule, fire: datetime) -> datetime:
    """With a fixed offset: Python holds a time that a zone has twice to be equal to none in another zone."""
    return fire.astimezone(timezone(fire.astimezone(zone(schedule.timezone)).utcoffset() or timedelta(0)))


def _note(schedule: Schedule, after: datetime, fire: datetime) -> str | None:
    """What came between: excluded dates, times that the clock has jumped over, a time that it shows twice."""
    words = [*_excluded(schedule, after, fire)]
    if isinstance(schedule, CronSchedule):
        words += [*_lost(schedule, after, fire), *_repeated(schedule, fire)]
    return "; ".join(words) or None


def _excluded(schedule: Schedule, after: datetime, fire: datetime) -> Iterator[str]:
    """The excluded dates between two fires on which there would have been one."""
    days = _missed_days(schedule, after, fire) if schedule.excluded else []
    if len(days) > MOST_DATES:
        yield f"more than {MOST_DATES} dates from {days[0]} on are excluded"
    elif len(days) > 2:
        yield f"{len(days)} dates from {days[0]} to {days[-1]} are excluded"
    elif days:
        yield f"{' and '.join(map(str, days))} {'is' if len(days) == 1 else 'are'} excluded"


def _missed_days(schedule: Schedule, after: datetime, fire: datetime) -> list[date]:
    open_schedule = _without_exclusions(schedule)
    place = zone(schedule.timezone)
    days: list[date] = []
    missed = next_after(open_schedule, after)
    while missed is not None and missed < fire and len(days) <= MOST_DATES:
        day = missed.astimezone(place).date()
        if day not in days[-1:] and is_excluded(schedule.excluded, day):
            days.append(day)
        midnight = datetime.combine(day + timedelta(days=1), time(), place).astimezone(UTC)
        missed = next_after(open_schedule, max(missed, midnight - _MOMENT))
    return days


def _without_exclusions(schedule: Schedule) -> Schedule:
    """With every time of its dates, those included that the clock jumps over: the date alone is reason enough."""
    if isinstance(schedule, CronSchedule):
        return replace(schedule, excluded=(), dst=replace(schedule.dst, gap="shift"))
    return replace(schedule, excluded=())


def _lost(schedule: CronSchedule, after: datetime, fire: datetime) -> Iterator[str]:
    """What the clock jumped over: since the last fire, or right before this one where it makes up for it."""
    cron, is_shifted = schedule.cron, not schedule.cron.is_wildcard and schedule.dst.gap == "shift"
    is_left_out = not is_shifted and not cron.is_wildcard
    for segment in _segments(schedule, _seconds(fire) - 1 if is_shifted else _seconds(after), _seconds(fire)):
        times = _times_in_gap(schedule, segment, is_open=not is_shifted)
        if times and segment.lost_from is not None:
            on = _wall(times[0]).date()
            since, until = _wall(segment.lost_from), _wall(segment.start + segment.offset)
            jump = f"the clock jumps from {_shown(since, on)} to {_shown(until, on)}"
            verb = "does not exist" if len(times) == 1 else "do not exist"
            consequence = (" and is left out" if len(times) == 1 else " and are left out") if is_left_out else ""
            yield f"{_listed(times)} {verb} on {on}{consequence}: {jump}"


def _segments(schedule: CronSchedule, after: int, until: int) -> Iterator[Segment]:
    """Those that begin behind `after`, and not behind `until`, with a jump in which the cron may have a time.

    No clock is a day off UTC: earlier than a day before its next time, a cron has lost none.
    """
    place, instant = zone(schedule.timezone), after + 1
    for _ in range(MOST_LOOKS):
        if schedule.excluded:
            open_from = first_open(schedule, EPOCH + instant * _SECOND)
            instant = until + 1 if open_from is None else _seconds(open_from)
        if instant > until:
            return
        segment = segment_at(place, instant)
        if segment.lost_from is not None and segment.start > after:
            yield segment
        slot = next_slot(schedule.cron, segment.end - DAY)
        instant = until + 1 if slot is None else max(segment.end, slot - DAY)


def _times_in_gap(schedule: CronSchedule, segment: Segment, *, is_open: bool) -> list[int]:
    """The first of the cron's times that were jumped over, one more than are named; where `is_open`, of open dates only."""
    times: list[int] = []
    begin, end = segment.lost_from or 0, segment.start + segment.offset
    while len(times) <= MOST_TIMES and (slot := next_slot(schedule.cron, begin)) is not None and slot < end:
        if is_open and is_excluded(schedule.excluded, _wall(slot).date()):
            begin = slot // DAY * DAY + DAY
        else:
            times.append(slot)
            begin = slot + 1
    return times


def _repeated(schedule: CronSchedule, fire: datetime) -> Iterator[str]:
    """Which of its two occurrences this is, of a time that the clock shows twice."""
    instant = _seconds(fire)
    segment = segment_at(zone(schedule.timezone), instant)
    is_second = instant < segment.repeats_until
    if not is_second and instant < segment.repeated_from:
        return
    wall = _wall(instant + segment.offset)
    overlap = REAL_TIME.overlap if schedule.cron.is_wildcard else schedule.dst.overlap
    which = ("second of two" if is_second else "first of two") if overlap == "both" else overlap
    yield f"{_clock(wall)} comes twice on {wall.date()}: this is the {which}"


def _listed(times: list[int]) -> str:
    """At most `MOST_TIMES` of them by name."""
    names = [_clock(_wall(wall)) for wall in times[:MOST_TIMES]]
    if len(times) > MOST_TIMES:
        return f"{', '.join(names)} and more"
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _shown(wall: datetime, on: date) -> str:
    """A time of the clock, with its date unless that is `on`."""
    return _clock(wall) if wall.date() == on else f"{_clock(wall)} on {wall.date()}"


def _clock(wall: datetime) -> str:
    return wall.time().isoformat("seconds" if wall.second else "minutes")


def _wall(seconds: int) -> datetime:
    """What a clock without a zone shows, that many seconds after its 1970."""
    return (EPOCH + seconds * _SECOND).replace(tzinfo=None)


def _seconds(instant: datetime) -> int:
    return (instant - EPOCH) // _SECOND
