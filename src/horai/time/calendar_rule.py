"""Times of a cron on the working days of a calendar: left out, or moved to the working day before or after.

The rule works on the wall clock, before a `DstPolicy` maps the times to real ones:

- `skip` leaves out times on days off and outside business hours.
- `after` moves a time on a day off to the same time of the next working day. A time outside business hours, moved or
  not, goes on to the next opening.
- `before` moves a time on a day off to the same time of the last working day before. A time outside business hours,
  moved or not, goes back to the last minute before the last closing.

Each of these steps is at most `FARTHEST` days long; a time that finds no working day within them is left out. Times that meet are one time. All days of
a cron have the same times, so the times of a working day follow from one question: does the cron match the day itself,
or a day off that moves to it?
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from horai.text import Wrong
from horai.time import work_calendar
from horai.time.cron import Cron
from horai.time.cron.calendar import DAY, next_day, next_slot, next_time
from horai.time.work_calendar import WorkCalendar

FARTHEST = 366
"""The longest step, in days."""
MOST_LOOKS = 10_000
"""A cron with this many working days in a row without an open time counts as one that never fires."""
_MINUTE = 60


class OnHoliday(StrEnum):
    """The treatment of a slot on a day off or outside business hours."""

    skip = "skip"
    before = "before"
    after = "after"


class CalendarNotLoaded(ValueError):
    """A job names a calendar, and its days were not read before a fire was computed."""


@dataclass(frozen=True, slots=True)
class CalendarRule:
    """A calendar and the treatment of its days off. `days` is None before the named calendar was read."""

    days: WorkCalendar | None
    on_holiday: OnHoliday = OnHoliday.skip
    name: str = field(default="", compare=False)

    @property
    def calendar(self) -> WorkCalendar:
        """Return the calendar. Raise `CalendarNotLoaded` if it was not read."""
        if self.days is None:
            raise CalendarNotLoaded(f"the calendar {self.name!r} was not read")
        return self.days

    @property
    def identity(self) -> str:
        """Return a text that is equal for equal rules; names do not change it."""
        spec = work_calendar.to_spec(self.calendar)
        hours = " ".join(f"{name}={text}" for name, text in spec["hours"].items())
        days = (f"{name} {','.join(spec[name])}" for name in ("weekend", "holidays", "workdays"))
        return f" {self.on_holiday} {'; '.join(days)}; hours {hours}"

    def to_spec(self) -> dict[str, Any]:
        """Return the rule as a JSON object, without names; `from_spec` restores an equal rule."""
        return {"onHoliday": self.on_holiday.value, **work_calendar.to_spec(self.calendar)}

    @classmethod
    def from_spec(cls, spec: Mapping[str, Any]) -> "CalendarRule":
        """Return the rule of a JSON object. Raise ValueError for an object that is not one."""
        return cls(work_calendar.from_spec(spec), on_holiday_of(spec.get("onHoliday", OnHoliday.skip.value)))


def on_holiday_of(word: str) -> OnHoliday:
    """Return the treatment that `word` names. Raise ValueError for another word."""
    if word not in tuple(OnHoliday):
        raise ValueError(Wrong.NOT_ONE_OF(value=word[:20], allowed=", ".join(OnHoliday)))
    return OnHoliday(word)


def next_moved(rule: CalendarRule, cron: Cron, wall: int) -> int | None:
    """Return the first time at or after `wall` at which a cron fires by the rule; None if there is none."""
    if rule.on_holiday is OnHoliday.skip:
        return _next_open(rule.calendar, cron, wall)
    moves = _Moves(rule.calendar, cron, rule.on_holiday is OnHoliday.before)
    day, second = divmod(wall, DAY)
    working = rule.calendar.next_working(day)
    for _ in range(MOST_LOOKS):
        if working is None:
            return None
        time = moves.next_time(working, second if working == day else 0)
        if time is not None:
            return working * DAY + time
        working = moves.next_day(working)
    return None


def _next_open(calendar: WorkCalendar, cron: Cron, wall: int) -> int | None:
    for _ in range(MOST_LOOKS):
        slot = next_slot(cron, wall)
        opens = None if slot is None else calendar.next_open(slot)
        if opens is None or opens == slot:
            return opens
        wall = opens
    return None


def landing(rule: CalendarRule, wall: int) -> int | None:
    """Return the time at which a slot at `wall` fires; None if it is left out."""
    calendar, (day, second) = rule.calendar, divmod(wall, DAY)
    if rule.on_holiday is OnHoliday.skip:
        return wall if calendar.next_open(wall) == wall else None
    is_before = rule.on_holiday is OnHoliday.before
    working = calendar.previous_working(day, FARTHEST) if is_before else calendar.next_working(day)
    if working is None or abs(working - day) > FARTHEST:
        return None
    if is_before:
        return _last_open(calendar, working, second)
    opens = calendar.next_open(working * DAY + second)
    return None if opens is None or opens // DAY - working > FARTHEST else opens


def origins(rule: CalendarRule, cron: Cron, wall: int, most: int) -> list[int]:
    """Return times of a cron that land on `wall`, in order, at most `most`; `wall` itself if the cron has it.

    Of the closed times of one day that land there, the first stands for all of them.
    """
    calendar, (day, second) = rule.calendar, divmod(wall, DAY)
    first, last = _sources(rule, day)
    times = {second, 0, *(closes % DAY for hours in calendar.hours for _, closes in hours)}
    found: list[int] = []
    source = next_day(cron, first)
    while source is not None and source <= last and len(found) < most:
        named = {time for start in times if (time := next_time(cron, start)) is not None}
        named = {time for time in named if time == second or not _is_open(calendar, source * DAY + time)}
        found += sorted(source * DAY + time for time in named if landing(rule, source * DAY + time) == wall)
        source = next_day(cron, source + 1)
    return found[:most]


def _sources(rule: CalendarRule, day: int) -> tuple[int, int]:
    """Return the first and the last day whose times may land on the working day `day`."""
    calendar = rule.calendar
    if rule.on_holiday is OnHoliday.skip:
        return day, day
    if rule.on_holiday is OnHoliday.after:
        before = calendar.previous_working(day - 1, FARTHEST)
        earlier = None if before is None else calendar.previous_working(before - 1, FARTHEST)
        return (day - 2 * FARTHEST if earlier is None else earlier + 1), day
    following = calendar.next_working(day + 1)
    later = None if following is None else calendar.next_working(following + 1)
    return day, day + 2 * FARTHEST if later is None else min(later - 1, day + 2 * FARTHEST)


def _is_open(calendar: WorkCalendar, wall: int) -> bool:
    return calendar.next_open(wall) == wall


def _last_open(calendar: WorkCalendar, working: int, second: int) -> int | None:
    """Return the time itself if it is open, or else the last open minute before it."""
    earlier = [(opens, closes) for opens, closes in calendar.hours_of(working) if opens <= second]
    if earlier:
        _, closes = earlier[-1]
        return working * DAY + (second if second < closes else closes - _MINUTE)
    before = calendar.previous_working(working - 1, FARTHEST - 1)
    return None if before is None else before * DAY + calendar.hours_of(before)[-1][1] - _MINUTE


@dataclass(frozen=True, slots=True)
class _Moves:
    """The times of a cron on working days, moved `before` or after."""

    calendar: WorkCalendar
    cron: Cron
    is_before: bool

    def next_time(self, day: int, second: int) -> int | None:
        """Return the first time of a working day at or after `second`; None if there is none."""
        is_fire_day, hours = self._is_fire_day(day), self.calendar.hours_of(day)
        marks = [*self._marks(hours, is_fire_day=is_fire_day)]
        if (spilled := self._spilled(day)) is not None:
            marks.append(spilled)
        own = self._first_inside(hours, second) if is_fire_day else None
        found = [mark for mark in marks if mark >= second] + ([] if own is None else [own])
        return min(found, default=None)

    def next_day(self, day: int) -> int | None:
        """Return a working day after `day`, which has no later time; those in between have none either."""
        following = self.calendar.next_working(day + 1)
        if following is None or (not self.is_before and self._is_fire_day(day)):
            return following  # a time after the last closing of `day` may go on to it
        matching = next_day(self.cron, following if self.is_before else day + 1)
        if matching is None:
            return None
        found = self._first_of(matching) if self.is_before else self.calendar.next_working(matching)
        return None if found is None else max(following, found)

    def _first_of(self, matching: int) -> int | None:
        """Return the first day that may have a time of the day `matching`, moved to a day before."""
        own = self.calendar.previous_working(matching, FARTHEST)
        if own is None:
            return self.calendar.next_working(matching)
        earlier = self.calendar.previous_working(own - 1, FARTHEST - 1) if self.calendar.hours else None
        return own if earlier is None else earlier

    def _is_fire_day(self, day: int) -> bool:
        """Return whether the cron matches the working day, or a day off that moves to it."""
        if self.is_before:
            following = self.calendar.next_working(day + 1)
            last = day + FARTHEST if following is None else min(following - 1, day + FARTHEST)
            matching = next_day(self.cron, day)
            return matching is not None and matching <= last
        before = self.calendar.previous_working(day - 1, FARTHEST)
        matching = next_day(self.cron, day - FARTHEST if before is None else before + 1)
        return matching is not None and matching <= day

    def _marks(self, hours: tuple[tuple[int, int], ...], *, is_fire_day: bool) -> Iterator[int]:
        """Yield the openings, or the last minutes before closing, that stand for closed times of the same day."""
        if not is_fire_day:
            return
        if self.is_before:
            ends = [*(opens for opens, _ in hours[1:]), DAY]
            closed = ((closes, end, closes - _MINUTE) for (_, closes), end in zip(hours, ends, strict=True))
        else:
            starts = [0, *(closes for _, closes in hours[:-1])]
            closed = ((start, opens, opens) for (opens, _), start in zip(hours, starts, strict=True))
        for start, end, mark in closed:
            time = next_time(self.cron, start) if start < end else None
            if time is not None and time < end:
                yield mark

    def _spilled(self, day: int) -> int | None:
        """Return the time of `day` that stands for closed times of the working day after or before it, if any."""
        if not self.calendar.hours:
            return None
        if self.is_before:
            other = self.calendar.next_working(day + 1)
            if other is None or other - day > FARTHEST or not self._is_fire_day(other):
                return None
            time = next_time(self.cron, 0)
            is_closed = time is not None and time < self.calendar.hours_of(other)[0][0]
            return self.calendar.hours_of(day)[-1][1] - _MINUTE if is_closed else None
        other = self.calendar.previous_working(day - 1, FARTHEST - 1)
        if other is None or not self._is_fire_day(other):
            return None
        closes = self.calendar.hours_of(other)[-1][1]
        time = next_time(self.cron, closes) if closes < DAY else None
        return None if time is None else self.calendar.hours_of(day)[0][0]

    def _first_inside(self, hours: tuple[tuple[int, int], ...], second: int) -> int | None:
        for opens, closes in hours:
            time = next_time(self.cron, max(opens, second)) if second < closes else None
            if time is not None and time < closes:
                return time
        return None
