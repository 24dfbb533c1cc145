"""Notes on a named calendar: why it is closed at a time, and which fires it has moved or left out."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, time, timedelta

from horai.text.phrase import Phrase, Phrasebook
from horai.time.calendar_rule import CalendarRule, OnHoliday, origins
from horai.time.cron.segments import EPOCH
from horai.time.schedule import CronSchedule, Schedule, next_after, wall_of
from horai.time.work_calendar import is_working_day, name_of_day_off
from horai.time.zones import zone

MOST_NOTED = 30
"""The most days or times that are counted for one fire."""

_MOMENT, _DAY = timedelta(microseconds=1), timedelta(days=1)
_START = EPOCH.replace(tzinfo=None)


class CalendarNotes(Phrasebook):
    """Notes on fires that a named calendar has moved or left out."""

    DAY_OFF = "{day} is a day off of the calendar {calendar}"
    HOLIDAY = "{day} ({holiday}) is a day off of the calendar {calendar}"
    DAYS_OFF = "{count} days from {first} to {last} are days off of the calendar {calendar}"
    MORE_DAYS_OFF = "more than {most} days from {first} on are days off of the calendar {calendar}"
    OUT_OF_HOURS = "{time} on {day} is outside the business hours of the calendar {calendar}"
    HOURS_SKIPPED = "times outside the business hours of the calendar {calendar} are skipped"
    MOVED_FROM = "moved from {origin}: {reason}"
    MOVED_FROM_MANY = "moved from {count} times, {first} to {last}, by the calendar {calendar}"
    MOVED_FROM_MORE = "moved from more than {most} times, from {first} on, by the calendar {calendar}"
    STANDS_FOR = "also stands for {origin}: {reason}"
    STANDS_FOR_MANY = "also stands for {count} times, {first} to {last}, that the calendar {calendar} has moved"
    STANDS_FOR_MORE = "also stands for more than {most} times, from {first} on, that the calendar {calendar} has moved"


def why_closed(rule: CalendarRule, wall: datetime) -> Phrase:
    """Say why the calendar is closed at a local time, given that it is."""
    day = wall.date()
    if is_working_day(rule.calendar, day):
        return CalendarNotes.OUT_OF_HOURS(time=_clock(wall), day=str(day), calendar=rule.name)
    holiday = name_of_day_off(rule.calendar, day)
    if holiday is None:
        return CalendarNotes.DAY_OFF(day=str(day), calendar=rule.name)
    return CalendarNotes.HOLIDAY(day=str(day), holiday=holiday, calendar=rule.name)


def calendar_notes(schedule: Schedule, after: datetime, fire: datetime) -> Iterator[Phrase]:
    """Yield notes on the times that the calendar moved to `fire`, or left out between `after` and it."""
    rule = schedule.calendar
    if rule is None:
        return
    if rule.on_holiday is OnHoliday.skip:
        yield from _left_out(schedule, rule, after, fire)
    elif isinstance(schedule, CronSchedule) and (note := moved_note(schedule, fire)) is not None:
        yield note


def moved_note(schedule: CronSchedule, fire: datetime) -> Phrase | None:
    """Return the note on the times that the calendar of a cron has moved to `fire`; None if there are none."""
    rule = schedule.calendar
    if rule is None or rule.on_holiday is OnHoliday.skip:
        return None
    here = (wall_of(schedule, fire) - _START) // timedelta(seconds=1)
    found = origins(rule, schedule.cron, here, MOST_NOTED + 2)
    moved = [_START + timedelta(seconds=wall) for wall in found if wall != here]
    is_own = len(moved) < len(found)
    if not moved:
        return None
    if len(moved) > MOST_NOTED:
        says = CalendarNotes.STANDS_FOR_MORE if is_own else CalendarNotes.MOVED_FROM_MORE
        return says(most=MOST_NOTED, first=_shown(moved[0]), calendar=rule.name)
    if len(moved) > 1:
        says = CalendarNotes.STANDS_FOR_MANY if is_own else CalendarNotes.MOVED_FROM_MANY
        return says(count=len(moved), first=_shown(moved[0]), last=_shown(moved[-1]), calendar=rule.name)
    says = CalendarNotes.STANDS_FOR if is_own else CalendarNotes.MOVED_FROM
    return says(origin=_shown(moved[0]), reason=why_closed(rule, moved[0]))


def _left_out(schedule: Schedule, rule: CalendarRule, after: datetime, fire: datetime) -> Iterator[Phrase]:
    everyday, place = replace(schedule, calendar=None), zone(schedule.timezone)
    days: list[datetime] = []
    is_out_of_hours = False
    missed = next_after(everyday, after)
    while missed is not None and missed < fire and len(days) <= MOST_NOTED:
        wall = wall_of(schedule, missed)
        if is_working_day(rule.calendar, wall.date()):
            is_out_of_hours = True
        elif not days or days[-1].date() != wall.date():
            days.append(wall)
        midnight = datetime.combine(wall.date() + _DAY, time(), place).astimezone(UTC)
        missed = next_after(everyday, max(missed, midnight - _MOMENT))
    if len(days) > MOST_NOTED:
        yield CalendarNotes.MORE_DAYS_OFF(most=MOST_NOTED, first=str(days[0].date()), calendar=rule.name)
    elif len(days) > 1:
        first, last = str(days[0].date()), str(days[-1].date())
        yield CalendarNotes.DAYS_OFF(count=len(days), first=first, last=last, calendar=rule.name)
    elif days:
        yield why_closed(rule, days[0])
    if is_out_of_hours:
        yield CalendarNotes.HOURS_SKIPPED(calendar=rule.name)


def _shown(wall: datetime) -> str:
    return f"{wall.date()} {_clock(wall)}"


def _clock(wall: datetime) -> str:
    return wall.time().isoformat("seconds" if wall.second else "minutes")
