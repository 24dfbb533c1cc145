"""Working days and business hours: a calendar of dates without a zone.

A day is off if it is a holiday or a weekday of the weekend; a make-up working day is a working day in any case. With
business hours, only those hours of a working day are open: the opening minute belongs to them, the closing one does not.
Holidays and make-up days are written like excluded dates: a day, a range, or a day of every year.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from itertools import pairwise
from typing import Any

from horai.text import Wrong
from horai.time import exclusions
from horai.time.cron.calendar import DAY
from horai.time.cron.segments import EPOCH, LAST_YEAR, segment_at
from horai.time.zones import zone

WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
SATURDAY_AND_SUNDAY = (5, 6)
DEFAULT_HOURS = "default"
MOST_INTERVALS = 10
YEARS_AHEAD = 100

Interval = tuple[int, int]
"""Seconds of a day: the opening, and the closing, which is not open any more."""

_ALL_DAY: tuple[Interval, ...] = ((0, DAY),)
_EPOCH_ORDINAL = date(1970, 1, 1).toordinal()
_THURSDAY = 3
"""The weekday of 1970-01-01, counted from Monday."""
_HOURS = re.compile(r"([01]\d|2[0-3]):([0-5]\d)-([01]\d|2[0-4]):([0-5]\d)", re.ASCII)
_SECOND = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class WorkCalendar:
    """The working days and hours of a calendar. Calendars with the same days and hours are equal; names do not count.

    `weekend` has weekdays counted from Monday, 0. `hours` has the business hours of each weekday; empty: all day.
    """

    holidays: tuple[str, ...] = ()
    workdays: tuple[str, ...] = ()
    weekend: tuple[int, ...] = SATURDAY_AND_SUNDAY
    hours: tuple[tuple[Interval, ...], ...] = ()
    names: Mapping[str, str] = field(default_factory=dict[str, str], compare=False)
    """The names of holidays, by their date as written."""
    _years: dict[int, int] = field(default_factory=dict[int, int], compare=False, repr=False, init=False)

    def is_working(self, day: int) -> bool:
        """Return whether the day, counted from 1970-01-01, is a working day."""
        year = _date(day).year
        return bool(self._working_days(year) >> day - _new_year(year) + 1 & 1)

    def next_working(self, day: int) -> int | None:
        """Return the first working day at or after `day`; None if there is none within a hundred years."""
        begin = _date(day).year
        first = day - _new_year(begin) + 1
        for year in range(begin, min(begin + YEARS_AHEAD, LAST_YEAR) + 1):
            later = self._working_days(year) >> first
            if later:
                return _new_year(year) + first + (later & -later).bit_length() - 2
            first = 1
        return None

    def previous_working(self, day: int, farthest: int) -> int | None:
        """Return the last working day at or before `day`; None if it is more than `farthest` days before."""
        year = _date(day).year
        mask = self._working_days(year) & (2 << day - _new_year(year) + 1) - 1
        while not mask and year > 1 and day - _new_year(year) < farthest:
            year -= 1
            mask = self._working_days(year)
        found = _new_year(year) + mask.bit_length() - 2 if mask else None
        return found if found is not None and day - found <= farthest else None

    def hours_of(self, day: int) -> tuple[Interval, ...]:
        """Return the business hours of a working day, in order."""
        return self.hours[(day + _THURSDAY) % 7] if self.hours else _ALL_DAY

    def next_open(self, wall: int) -> int | None:
        """Return the first open second at or after `wall`, both counted from 1970 on a clock without a zone."""
        day, second = divmod(wall, DAY)
        working = self.next_working(day)
        while working is not None:
            for opens, closes in self.hours_of(working):
                if working > day or second < closes:
                    return working * DAY + (opens if working > day else max(opens, second))
            working = self.next_working(working + 1)
        return None

    def _working_days(self, year: int) -> int:
        """Return the working days of a year as a mask, in which bit 1 is 1 January."""
        if (mask := self._years.get(year)) is None:
            mask = 0
            first = date(year, 1, 1)
            for number in range(366 if first.replace(month=12, day=31).timetuple().tm_yday == 366 else 365):
                mask |= _is_working_day(self, first + timedelta(days=number)) << (number + 1)
            self._years[year] = mask
        return mask


def _is_working_day(calendar: WorkCalendar, day: date) -> bool:
    if exclusions.is_excluded(calendar.workdays, day):
        return True
    return day.weekday() not in calendar.weekend and not exclusions.is_excluded(calendar.holidays, day)


def is_working_day(calendar: WorkCalendar, day: date) -> bool:
    """Return whether `day` is a working day of the calendar."""
    return calendar.is_working(day.toordinal() - _EPOCH_ORDINAL)


def is_open(calendar: WorkCalendar, instant: datetime, timezone: str) -> bool:
    """Return whether the clock of the zone shows, at `instant`, an hour at which the calendar is open."""
    wall = instant.astimezone(zone(timezone))
    second = (wall.hour * 60 + wall.minute) * 60 + wall.second
    now = (wall.date().toordinal() - _EPOCH_ORDINAL) * DAY + second
    return calendar.next_open(now) == now


def first_open_instant(calendar: WorkCalendar, instant: datetime, timezone: str) -> datetime | None:
    """Return `instant` if the calendar is open then, or else its next opening; None if it does not open again."""
    place = zone(timezone)
    start = at = (instant - EPOCH) // _SECOND
    last = start + YEARS_AHEAD * 366 * DAY
    while at <= last and (EPOCH + at * _SECOND).year < LAST_YEAR:
        segment = segment_at(place, at)
        opens = calendar.next_open(at + segment.offset)
        if opens is not None and opens - segment.offset < segment.end:
            found = opens - segment.offset
            return instant if found == start else EPOCH + found * _SECOND
        at = segment.end
    return None


def name_of_day_off(calendar: WorkCalendar, day: date) -> str | None:
    """Return the name of the holiday on `day`; None if it has none, or the day is off as part of the weekend."""
    return next((name for text, name in calendar.names.items() if exclusions.is_excluded((text,), day)), None)


def read_weekend(names: Sequence[str]) -> tuple[int, ...]:
    """Return the weekdays of these names, in order. Raise ValueError for a name that is none."""
    for name in names:
        if name not in WEEKDAYS:
            raise ValueError(Wrong.NOT_ONE_OF(value=name[:20], allowed=", ".join(WEEKDAYS)))
    return tuple(sorted({WEEKDAYS.index(name) for name in names}))


def read_hours(written: str | Mapping[str, str]) -> tuple[tuple[Interval, ...], ...]:
    """Return the hours of each weekday from a text for all of them, or from texts by weekday with a `default`."""
    texts = {DEFAULT_HOURS: written} if isinstance(written, str) else written
    if not texts:
        return ()
    if DEFAULT_HOURS not in texts:
        raise ValueError(Wrong.HOURS_DEFAULT())
    for name in texts:
        if name not in (DEFAULT_HOURS, *WEEKDAYS):
            raise ValueError(Wrong.NOT_ONE_OF(value=name[:20], allowed=", ".join((DEFAULT_HOURS, *WEEKDAYS))))
    return tuple(_intervals(texts.get(name, texts[DEFAULT_HOURS])) for name in WEEKDAYS)


def _intervals(text: str) -> tuple[Interval, ...]:
    found = [_interval(part.strip(), text) for part in text[:200].split(",")]
    for (_, closes), (opens, _) in pairwise(found):
        if opens <= closes:
            raise ValueError(Wrong.HOURS_OVERLAP(text=text[:80]))
    if len(found) > MOST_INTERVALS:
        raise ValueError(Wrong.NOT_HOURS(text=text[:80]))
    return tuple(found)


def _interval(part: str, text: str) -> Interval:
    if (found := _HOURS.fullmatch(part)) is None:
        raise ValueError(Wrong.NOT_HOURS(text=text[:80]))
    hour, minute, end_hour, end_minute = (int(group) for group in found.groups())
    opens, closes = (hour * 60 + minute) * 60, (end_hour * 60 + end_minute) * 60
    if not opens < closes <= DAY:
        raise ValueError(Wrong.NOT_HOURS(text=text[:80]))
    return opens, closes


def hours_texts(calendar: WorkCalendar) -> dict[str, str]:
    """Return the business hours as people write them: the most common ones as `default`; empty without hours."""
    texts = [",".join(_shown(opens, closes) for opens, closes in hours) for hours in calendar.hours]
    if not texts:
        return {}
    default = max(texts, key=texts.count)
    return {DEFAULT_HOURS: default} | {
        name: text for name, text in zip(WEEKDAYS, texts, strict=True) if text != default
    }


def _shown(opens: int, closes: int) -> str:
    return "-".join(f"{second // 3600:02}:{second % 3600 // 60:02}" for second in (opens, closes))


def to_spec(calendar: WorkCalendar) -> dict[str, Any]:
    """Return the days and hours as a JSON object, without names; `from_spec` restores an equal calendar."""
    return {
        "weekend": [WEEKDAYS[day] for day in calendar.weekend],
        "holidays": list(calendar.holidays),
        "workdays": list(calendar.workdays),
        "hours": hours_texts(calendar),
    }


def from_spec(spec: Mapping[str, Any], names: Mapping[str, str] | None = None) -> WorkCalendar:
    """Return the calendar of a JSON object. Raise ValueError for an object that is not one."""
    return WorkCalendar(
        exclusions.check(spec.get("holidays", ())),
        exclusions.check(spec.get("workdays", ())),
        read_weekend(spec.get("weekend", ("sat", "sun"))),
        read_hours(spec.get("hours", {})),
        names or {},
    )


def dates_between(calendar: WorkCalendar, first: date, last: date) -> Iterator[date]:
    """Yield the days off from `first` to `last`, both included."""
    for number in range(first.toordinal(), last.toordinal() + 1):
        if not is_working_day(calendar, date.fromordinal(number)):
            yield date.fromordinal(number)


def _date(day: int) -> date:
    return date.fromordinal(_EPOCH_ORDINAL + day)


def _new_year(year: int) -> int:
    return date(year, 1, 1).toordinal() - _EPOCH_ORDINAL
