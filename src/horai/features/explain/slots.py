"""Slots of a calendar: whether an instant is one, why not, and the slots around it."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import assert_never

from horai.core.calendar_notes import moved_note, why_closed
from horai.core.timing import Timing
from horai.features.explain.moments import Gap, occurrences
from horai.features.explain.phrases import SlotWords as Say
from horai.features.explain.words import clock, clock_on, local
from horai.text.phrase import Phrase
from horai.time import cron
from horai.time.calendar_rule import CalendarRule, OnHoliday, landing
from horai.time.cron.calendar import next_slot
from horai.time.cron.segments import EPOCH, segment_at
from horai.time.durations import format_duration
from horai.time.exclusions import is_excluded
from horai.time.schedule import CronSchedule, EverySchedule, Schedule, next_after, next_from, wall_of
from horai.time.zones import zone

_SECOND, _MOMENT = timedelta(seconds=1), timedelta(microseconds=1)
_LOOKS = tuple(timedelta(days=days) for days in (1, 32, 367, 9 * 366, 101 * 366))
_BEGIN = EPOCH + timedelta(days=1)


def is_slot(timing: Timing, at: datetime) -> bool:
    """Return whether the job has a slot exactly at `at`, regardless of when the job was created."""
    return timing.rhythm is not None and timing.next_after(at - _MOMENT) == at


def next_slot_of(timing: Timing, at: datetime) -> datetime | None:
    """Return the first slot after `at`; None for a job that follows no calendar."""
    return None if timing.rhythm is None else timing.next_after(at)


def previous_slot(timing: Timing, at: datetime) -> datetime | None:
    """Return the last slot before `at`; None if there is none, or the job follows no calendar."""
    if timing.rhythm is None or timing.schedule is None:
        return None
    end = at if timing.end_at is None else min(at, timing.end_at + _MOMENT)
    found = _last_before(timing.schedule, end)
    return None if found is None or (timing.start_at is not None and found < timing.start_at) else found


def _last_before(schedule: Schedule, end: datetime) -> datetime | None:
    """Search back in growing steps, then bisect: a schedule that fires each second costs no extra time."""
    for look in _LOOKS:
        start = max(end - min(look, end - _BEGIN), _BEGIN)
        low = next_after(schedule, start - _MOMENT)
        if low is not None and low < end:
            return _halved(schedule, low, end)
        if start == _BEGIN:
            return None
    return None


def _halved(schedule: Schedule, low: datetime, end: datetime) -> datetime:
    """Bisect to the last slot before `end`: `low` is a slot before it, and there is none between `high` and `end`."""
    high = end
    while (following := next_after(schedule, low)) is not None and following < end:
        middle = low + (high - low) / 2
        fire = next_after(schedule, middle)
        if fire is not None and fire < end:
            low = fire
        else:
            low, high = following, middle
    return low


def why_no_slot(timing: Timing, at: datetime) -> Phrase:
    """Say why the calendar of a job has no slot at `at`, given that it has none."""
    schedule = timing.schedule
    if schedule is None:
        return Say.NO_SCHEDULE()
    if timing.after_finish is not None:
        return Say.NO_FIXED_TIMES(interval=format_duration(timing.after_finish))
    place = zone(schedule.timezone)
    everyday = replace(schedule, excluded=(), calendar=None)
    if next_from(everyday, at) != at:
        return _why_no_time(everyday, at)
    if next_from(schedule, at) != at:
        return _why_excluded(schedule, at) if schedule.calendar is None else _why_moved(schedule, schedule.calendar, at)
    if timing.start_at is not None and at < timing.start_at:
        return Say.BEFORE_START(at=local(timing.start_at, place))
    if timing.end_at is not None and at > timing.end_at:
        return Say.AFTER_END(at=local(timing.end_at, place))
    return Say.NOT_THERE()


def _why_moved(schedule: Schedule, rule: CalendarRule, at: datetime) -> Phrase:
    """Say why the calendar is closed at `at`, and where the slot is instead."""
    wall = wall_of(schedule, at)
    reason, word = why_closed(rule, wall), rule.on_holiday.value
    if rule.on_holiday is OnHoliday.skip:
        return Say.CALENDAR_SKIPS(reason=reason, rule=word)
    landed = landing(rule, (wall - EPOCH.replace(tzinfo=None)) // _SECOND)
    if landed is None:
        return Say.CALENDAR_LOSES(reason=reason)
    instants = occurrences(_wall(landed), zone(schedule.timezone))
    place = zone(schedule.timezone)
    return Say.CALENDAR_MOVES(
        reason=reason, rule=word, at=local(instants[0], place) if instants else f"{_wall(landed):%Y-%m-%d %H:%M}"
    )


def _why_excluded(schedule: Schedule, at: datetime) -> Phrase:
    day = wall_of(schedule, at).date()
    entry = next((text for text in schedule.excluded if is_excluded((text,), day)), None)
    if entry is None:
        return Say.ALL_EXCLUDED()
    return Say.EXCLUDED(day=str(day)) if entry == str(day) else Say.EXCLUDED_BY(day=str(day), entry=entry)


def _why_no_time(schedule: Schedule, at: datetime) -> Phrase:
    match schedule:
        case CronSchedule():
            return _why_no_match(schedule, at)
        case EverySchedule(interval, anchor):
            before = anchor + (at - anchor) // interval * interval
            wall, slot = wall_of(schedule, at), wall_of(schedule, before)
            return Say.BETWEEN_INTERVALS(
                interval=format_duration(interval),
                anchor=local(anchor, zone(schedule.timezone)),
                time=clock(wall),
                after=_exactly(at - before),
                slot=clock_on(slot, wall),
            )
        case _:
            assert_never(schedule)


def _exactly(duration: timedelta) -> str:
    is_whole = not duration % timedelta(milliseconds=1)
    return format_duration(duration) if is_whole else f"{duration.total_seconds():.6f}s"


def _why_no_match(schedule: CronSchedule, at: datetime) -> Phrase:
    wall = wall_of(schedule, at)
    reason, time, day = cron.why_not(schedule.cron, wall), clock(wall), str(wall.date())
    if reason is not None:
        return Say.CRON_DISALLOWS(cron=schedule.expression, time=time, day=day, reason=reason)
    place = zone(schedule.timezone)
    twin = next((other for other in occurrences(wall, place) if other != at), None)
    if twin is None:
        return Say.NOT_THERE()
    says = Say.SECOND_OF_TWO if at > twin else Say.FIRST_OF_TWO
    return says(time=time, day=day, overlap=schedule.dst.overlap, slot=local(twin, place))


def shift_of(schedule: Schedule | None, at: datetime) -> Phrase | None:
    """Say which local time that no clock showed the slot at `at` stands for; None if it stands for itself."""
    if not isinstance(schedule, CronSchedule):
        return None
    if (note := moved_note(schedule, at)) is not None:
        return note
    if cron.why_not(schedule.cron, wall_of(schedule, at)) is None:
        return None
    segment = segment_at(zone(schedule.timezone), (at - EPOCH) // _SECOND)
    meant = None if segment.lost_from is None else next_slot(schedule.cron, segment.lost_from)
    if segment.lost_from is None or meant is None:
        return None
    lost_from, lost_until = (_wall(seconds) for seconds in (segment.lost_from, segment.start + segment.offset))
    return Say.LOST_MOVED(lost=_lost(Gap(_wall(meant), lost_from, lost_until, at)))


def lost_in_gap(schedule: Schedule | None, gap: Gap) -> tuple[bool, Phrase]:
    """Return whether a local time in a gap has its slot at the end of the gap, and the sentence about it."""
    lost = _lost(gap)
    if not isinstance(schedule, CronSchedule):
        return False, lost
    reason = cron.why_not(schedule.cron, gap.wall)
    if reason is not None:
        return False, Say.LOST_DISALLOWED(lost=lost, cron=schedule.expression, reason=reason)
    rule = schedule.calendar
    if rule is not None and landing(rule, seconds := (gap.wall - EPOCH.replace(tzinfo=None)) // _SECOND) != seconds:
        return False, Say.LOST_DISALLOWED(lost=lost, cron=schedule.expression, reason=why_closed(rule, gap.wall))
    if schedule.cron.is_wildcard:
        return False, Say.LOST_NOTHING(lost=lost, cron=schedule.expression)
    if schedule.dst.gap == "skip":
        return False, Say.LOST_SKIPPED(lost=lost)
    return True, Say.LOST_MOVED(lost=lost)


def _lost(gap: Gap) -> Phrase:
    return Say.LOST(
        time=clock(gap.wall),
        day=str(gap.wall.date()),
        lost_from=clock_on(gap.lost_from, gap.wall),
        lost_until=clock_on(gap.lost_until, gap.wall),
    )


def _wall(seconds: int) -> datetime:
    return (EPOCH + seconds * _SECOND).replace(tzinfo=None)
