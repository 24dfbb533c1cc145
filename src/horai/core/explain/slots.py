"""Whether an instant is a slot, why not, and which slots are around it."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import assert_never

from horai.core import cron
from horai.core.cron.calendar import next_slot
from horai.core.cron.segments import EPOCH, segment_at
from horai.core.durations import format_duration
from horai.core.exclusions import is_excluded
from horai.core.explain.moments import Gap, occurrences
from horai.core.explain.words import clock, clock_on, local
from horai.core.schedule import CronSchedule, EverySchedule, Schedule, next_after, next_from, wall_of
from horai.core.timing import Timing
from horai.core.zones import zone

_SECOND, _MOMENT = timedelta(seconds=1), timedelta(microseconds=1)
_LOOKS = tuple(timedelta(days=days) for days in (1, 32, 367, 9 * 366, 101 * 366))
NOT_THERE = "its schedule does not have this time"
_BEGIN = EPOCH + timedelta(days=1)


def is_slot(timing: Timing, at: datetime) -> bool:
    """Whether the job has a slot exactly there, wherever the job itself began."""
    return timing.rhythm is not None and timing.next_after(at - _MOMENT) == at


def next_slot_of(timing: Timing, at: datetime) -> datetime | None:
    """The first slot after `at`; None for a job that follows no calendar."""
    return None if timing.rhythm is None else timing.next_after(at)


def previous_slot(timing: Timing, at: datetime) -> datetime | None:
    """The last slot before `at`; None when there is none, or the job follows no calendar."""
    if timing.rhythm is None or timing.schedule is None:
        return None
    end = at if timing.end_at is None else min(at, timing.end_at + _MOMENT)
    found = _last_before(timing.schedule, end)
    return None if found is None or (timing.start_at is not None and found < timing.start_at) else found


def _last_before(schedule: Schedule, end: datetime) -> datetime | None:
    """Looks back in growing steps, then halves what is left: a schedule that fires each second costs no more."""
    for look in _LOOKS:
        start = max(end - min(look, end - _BEGIN), _BEGIN)
        low = next_after(schedule, start - _MOMENT)
        if low is not None and low < end:
            return _halved(schedule, low, end)
        if start == _BEGIN:
            return None
    return None


def _halved(schedule: Schedule, low: datetime, end: datetime) -> datetime:
    """`low` is a slot before `end`; behind `high` there is none."""
    high = end
    while (following := next_after(schedule, low)) is not None and following < end:
        middle = low + (high - low) / 2
        fire = next_after(schedule, middle)
        if fire is not None and fire < end:
            low = fire
        else:
            low, high = following, middle
    return low


def why_no_slot(timing: Timing, at: datetime) -> str:
    """Why the calendar of a job has no slot at `at`, given that it has none."""
    schedule = timing.schedule
    if schedule is None:
        return "the job has no schedule: it runs when it is told to, and nothing was wanted for this instant"
    if timing.after_finish is not None:
        interval = format_duration(timing.after_finish)
        return (
            f"the job has no fixed times: each run comes {interval} after the one before has ended, and none came here"
        )
    place = zone(schedule.timezone)
    everyday = replace(schedule, excluded=())
    if next_from(everyday, at) != at:
        return _why_no_time(everyday, at)
    if next_from(schedule, at) != at:
        return _why_excluded(schedule, at)
    if timing.start_at is not None and at < timing.start_at:
        return f"its schedule has this time, but the job begins at {local(timing.start_at, place)} (startAt)"
    if timing.end_at is not None and at > timing.end_at:
        return f"its schedule has this time, but the job ends at {local(timing.end_at, place)} (endAt)"
    return NOT_THERE


def _why_excluded(schedule: Schedule, at: datetime) -> str:
    day = wall_of(schedule, at).date()
    entry = next((text for text in schedule.excluded if is_excluded((text,), day)), None)
    if entry is None:
        return "its schedule has this time, but its excluded dates leave out every date around"
    return f"its schedule has this time, but its calendar leaves out {day}" + (
        "" if entry == str(day) else f" ({entry})"
    )


def _why_no_time(schedule: Schedule, at: datetime) -> str:
    match schedule:
        case CronSchedule():
            return _why_no_match(schedule, at)
        case EverySchedule(interval, anchor):
            place = zone(schedule.timezone)
            before = anchor + (at - anchor) // interval * interval
            wall, slot = wall_of(schedule, at), wall_of(schedule, before)
            rate = f"every {format_duration(interval)} from {local(anchor, place)} on"
            return f"the job fires {rate}, and {clock(wall)} is {_exactly(at - before)} after its slot at {clock_on(slot, wall)}"
        case _:
            assert_never(schedule)


def _exactly(duration: timedelta) -> str:
    is_whole = not duration % timedelta(milliseconds=1)
    return format_duration(duration) if is_whole else f"{duration.total_seconds():.6f}s"


def _why_no_match(schedule: CronSchedule, at: datetime) -> str:
    wall = wall_of(schedule, at)
    reason = cron.why_not(schedule.cron, wall)
    if reason is not None:
        return f"{schedule.expression} does not allow {clock(wall)} on {wall.date()}: {reason}"
    place = zone(schedule.timezone)
    twin = next((other for other in occurrences(wall, place) if other != at), None)
    if twin is None:
        return NOT_THERE
    ordinal = "second" if at > twin else "first"
    return (
        f"{clock(wall)} comes twice on {wall.date()}, and this is the {ordinal}: "
        f"by dst.overlap {schedule.dst.overlap} the slot is at {local(twin, place)}"
    )


def shift_of(schedule: Schedule | None, at: datetime) -> str | None:
    """What the slot at `at` stands for where no clock showed the time that was meant."""
    if not isinstance(schedule, CronSchedule) or cron.why_not(schedule.cron, wall_of(schedule, at)) is None:
        return None
    segment = segment_at(zone(schedule.timezone), (at - EPOCH) // _SECOND)
    meant = None if segment.lost_from is None else next_slot(schedule.cron, segment.lost_from)
    if segment.lost_from is None or meant is None:
        return None
    lost_from, lost_until = (_wall(seconds) for seconds in (segment.lost_from, segment.start + segment.offset))
    return _moved(Gap(_wall(meant), lost_from, lost_until, at))


def lost_in_gap(schedule: Schedule | None, gap: Gap) -> tuple[bool, str]:
    """Whether a time that no clock showed has its slot at the end of the gap, and what there is to say of it."""
    told = _of_gap(gap)
    if not isinstance(schedule, CronSchedule):
        return False, told
    reason = cron.why_not(schedule.cron, gap.wall)
    if reason is not None:
        return False, f"{told}, and {schedule.expression} does not allow it either: {reason}"
    if schedule.cron.is_wildcard:
        return False, f"{told}, and {schedule.expression} follows the real time, which lost nothing"
    if schedule.dst.gap == "skip":
        return False, f"{told}, and by dst.gap skip it is left out"
    return True, _moved(gap)


def _of_gap(gap: Gap) -> str:
    jump = f"the clock jumps from {clock_on(gap.lost_from, gap.wall)} to {clock_on(gap.lost_until, gap.wall)}"
    return f"{clock(gap.wall)} does not exist on {gap.wall.date()}: {jump}"


def _moved(gap: Gap) -> str:
    return f"{_of_gap(gap)}, where its slot is"


def _wall(seconds: int) -> datetime:
    return (EPOCH + seconds * _SECOND).replace(tzinfo=None)
