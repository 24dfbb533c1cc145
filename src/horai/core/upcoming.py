"""The upcoming fires of a job, with their local times and with notes on clock changes and excluded dates.

The fires are those of `Timing.next_after`, which the trigger follows too; this module only describes them.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta, timezone

from horai.core.calendar_notes import calendar_notes
from horai.core.timing import Timing
from horai.text.phrase import Joined, Phrase, Phrasebook
from horai.time.cron.calendar import DAY
from horai.time.cron.fires import REAL_TIME
from horai.time.cron.segments import EPOCH, LAST_YEAR, Segment, segment_at
from horai.time.durations import format_duration
from horai.time.exclusions import is_excluded
from horai.time.schedule import CronSchedule, Schedule, first_open, next_after, slots_of
from horai.time.zones import zone

MOST_FIRES = 1_000
MOST_DATES = 30
"""The most excluded dates before a fire that are counted."""
MOST_TIMES = 3
"""The most times skipped by one clock change that are named."""
MOST_LOOKS = 60
"""The most stretches of a zone's time that are checked for one fire; beyond them, no notes are added."""

_SECOND = timedelta(seconds=1)
_MOMENT = timedelta(microseconds=1)


class FireNotes(Phrasebook):
    """Notes on a fire, and on the fires of a job as a whole."""

    JOB_PAUSED = "the job is paused"
    UNSCHEDULED = "the job has no schedule: it runs only on request"
    AFTER_EACH_RUN = "then {interval} after each run has ended"
    DATE_EXCLUDED = "{day} is excluded"
    TWO_DATES_EXCLUDED = "{day} and {other} are excluded"
    DATES_EXCLUDED = "{count} dates from {first} to {last} are excluded"
    MORE_DATES_EXCLUDED = "more than {most} dates from {first} on are excluded"
    TIMES_LOST = "{times} do not exist on {day}: {jump}"
    TIMES_LEFT_OUT = "{times} do not exist on {day} and are left out: {jump}"
    CLOCK_JUMPS = "the clock jumps from {since} to {until}"
    TIMES_AND = "{times} and {last}"
    TIMES_AND_MORE = "{times} and more"
    TIME_ON_DATE = "{time} on {day}"
    COMES_TWICE = "{time} comes twice on {day}: this is the {which}"
    FIRST = "first"
    LAST = "last"
    FIRST_OF_BOTH = "first of two"
    SECOND_OF_BOTH = "second of two"
    ONE_NOT_FORECAST = (
        "1 job counts from the end of its last run (everyFrom finish), which is not known in advance: "
        "it is not included."
    )
    SOME_NOT_FORECAST = (
        "{count} jobs count from the end of their last run (everyFrom finish), which is not known in advance: "
        "they are not included."
    )


@dataclass(frozen=True, slots=True)
class Fire:
    """An instant at which a job fires, in UTC; `local` is the same instant with the offset of the job's zone."""

    fire_time: datetime
    local: datetime
    note: Phrase | None = None


def upcoming_fires(timing: Timing, after: datetime, count: int) -> list[Fire]:
    """Return the next `count` fires strictly after `after`, or fewer if the schedule ends.

    For a job that counts from the end of its runs, only the first is known.
    """
    if timing.schedule is None:
        return []
    if timing.start_at is not None:
        after = max(after, timing.start_at - _MOMENT)
    fires: list[Fire] = []
    while len(fires) < count and (fire := timing.next_after(after)) is not None and fire.year < LAST_YEAR:
        if timing.after_finish is not None:
            return [upcoming_fire(timing, fire)]
        fires.append(Fire(fire, _local(timing.schedule, fire), _note(timing.schedule, after, fire)))
        after = fire
    return fires


def upcoming_fire(timing: Timing, fire: datetime) -> Fire:
    """Return a known fire of a job that counts from the end of its runs."""
    assert timing.schedule is not None  # noqa: S101 — a job that counts from the end has an interval
    return Fire(fire, _local(timing.schedule, fire), after_each_run(timing))


def after_each_run(timing: Timing) -> Phrase | None:
    """Return a note on the fires after the next one of a job that counts from the end of its runs."""
    if timing.after_finish is None:
        return None
    return FireNotes.AFTER_EACH_RUN(interval=format_duration(timing.after_finish))


def _local(schedule: Schedule, fire: datetime) -> datetime:
    """Return the fire with a fixed offset of the zone.

    In Python, a time that a zone has twice is equal to no time in another zone.
    """
    return fire.astimezone(timezone(fire.astimezone(zone(schedule.timezone)).utcoffset() or timedelta(0)))


def _note(schedule: Schedule, after: datetime, fire: datetime) -> Phrase | None:
    """Return a note on excluded dates, times that the clock skipped, and a time that it shows twice."""
    words = [*_excluded(schedule, after, fire), *calendar_notes(schedule, after, fire)]
    if isinstance(schedule, CronSchedule):
        words += [*_lost(schedule, after, fire), *_repeated(schedule, fire)]
    return Joined.BESIDES.all(words) if words else None


def _excluded(schedule: Schedule, after: datetime, fire: datetime) -> Iterator[Phrase]:
    """Yield a note on the excluded dates between two fires on which there would have been one."""
    days = _missed_days(schedule, after, fire) if schedule.excluded else []
    if len(days) > MOST_DATES:
        yield FireNotes.MORE_DATES_EXCLUDED(most=MOST_DATES, first=str(days[0]))
    elif len(days) > 2:
        yield FireNotes.DATES_EXCLUDED(count=len(days), first=str(days[0]), last=str(days[-1]))
    elif len(days) == 2:
        yield FireNotes.TWO_DATES_EXCLUDED(day=str(days[0]), other=str(days[1]))
    elif days:
        yield FireNotes.DATE_EXCLUDED(day=str(days[0]))


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
    """Return the schedule with all of its dates and times, those that the clock skips included.

    An excluded date alone is reason enough for a note.
    """
    if isinstance(schedule, CronSchedule):
        return replace(schedule, excluded=(), dst=replace(schedule.dst, gap="shift"))
    return replace(schedule, excluded=())


def _lost(schedule: CronSchedule, after: datetime, fire: datetime) -> Iterator[Phrase]:
    """Yield notes on times that the clock skipped: since the last fire, or just before this one if it replaces them."""
    cron, is_shifted = schedule.cron, not schedule.cron.is_wildcard and schedule.dst.gap == "shift"
    is_left_out = not is_shifted and not cron.is_wildcard
    for segment in _segments(schedule, _seconds(fire) - 1 if is_shifted else _seconds(after), _seconds(fire)):
        times = _times_in_gap(schedule, segment, is_open=not is_shifted)
        if times and segment.lost_from is not None:
            on = _wall(times[0]).date()
            since, until = _wall(segment.lost_from), _wall(segment.start + segment.offset)
            jump = FireNotes.CLOCK_JUMPS(since=_shown(since, on), until=_shown(until, on))
            yield _do_not_exist(times, on, jump, is_left_out=is_left_out)


def _do_not_exist(times: list[int], on: date, jump: Phrase, *, is_left_out: bool) -> Phrase:
    says = FireNotes.TIMES_LEFT_OUT if is_left_out else FireNotes.TIMES_LOST
    named = {"times": _listed(times), "day": str(on), "jump": jump}
    if len(times) > 1:
        return says(**named)
    verb = "does not exist" + (f" on {on} and is left out" if is_left_out else f" on {on}")
    return says.worded(f"{named['times']} {verb}: {jump}", **named)


def _segments(schedule: CronSchedule, after: int, until: int) -> Iterator[Segment]:
    """Yield the segments that begin after `after`, but not after `until`, with a gap in which the cron may have a time.

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
        slot = slots_of(schedule)(segment.end - DAY)
        instant = until + 1 if slot is None else max(segment.end, slot - DAY)


def _times_in_gap(schedule: CronSchedule, segment: Segment, *, is_open: bool) -> list[int]:
    """Return the first of the cron's times that the clock skipped, one more than are named.

    If `is_open`, only times on open dates count.
    """
    times: list[int] = []
    begin, end = segment.lost_from or 0, segment.start + segment.offset
    while len(times) <= MOST_TIMES and (slot := slots_of(schedule)(begin)) is not None and slot < end:
        if is_open and is_excluded(schedule.excluded, _wall(slot).date()):
            begin = slot // DAY * DAY + DAY
        else:
            times.append(slot)
            begin = slot + 1
    return times


def _repeated(schedule: CronSchedule, fire: datetime) -> Iterator[Phrase]:
    """Yield a note on which of its two occurrences this is, if the clock shows the time twice."""
    instant = _seconds(fire)
    segment = segment_at(zone(schedule.timezone), instant)
    is_second = instant < segment.repeats_until
    if not is_second and instant < segment.repeated_from:
        return
    wall = _wall(instant + segment.offset)
    overlap = REAL_TIME.overlap if schedule.cron.is_wildcard else schedule.dst.overlap
    both = FireNotes.SECOND_OF_BOTH if is_second else FireNotes.FIRST_OF_BOTH
    which = both if overlap == "both" else FireNotes.FIRST if overlap == "first" else FireNotes.LAST
    yield FireNotes.COMES_TWICE(time=_clock(wall), day=str(wall.date()), which=which())


def _listed(times: list[int]) -> str:
    """Return at most `MOST_TIMES` of the times as text."""
    names = [_clock(_wall(wall)) for wall in times[:MOST_TIMES]]
    if len(times) > MOST_TIMES:
        return FireNotes.TIMES_AND_MORE(times=", ".join(names))
    if len(names) == 1:
        return names[0]
    return FireNotes.TIMES_AND(times=", ".join(names[:-1]), last=names[-1])


def _shown(wall: datetime, on: date) -> str:
    """Return a time of the clock, with its date unless the date is `on`."""
    return _clock(wall) if wall.date() == on else FireNotes.TIME_ON_DATE(time=_clock(wall), day=str(wall.date()))


def _clock(wall: datetime) -> str:
    return wall.time().isoformat("seconds" if wall.second else "minutes")


def _wall(seconds: int) -> datetime:
    """Return what a clock without a zone shows `seconds` after the start of 1970."""
    return (EPOCH + seconds * _SECOND).replace(tzinfo=None)


def _seconds(instant: datetime) -> int:
    return (instant - EPOCH) // _SECOND
