"""An oracle for cron: looks at every real minute of some years in a zone and keeps to the letter of the rules.

It shares nothing with `horai.time.cron`: fields are sets, days are asked one by one, a clock change is what two minutes
in a row show. Whole minutes only: since 1972 every zone is a whole number of minutes off UTC.
"""

import calendar
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import numpy as np
import numpy.typing as npt

Minutes = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
IsDay = Callable[[date], bool]

MONTHS = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"]
WEEKDAYS = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"]
EPOCH = date(1970, 1, 1)
HOUR, DAY = 60, 1440


class Expression:
    """A cron expression, read the plain way from its text, which is trusted to be well-formed."""

    def __init__(self, text: str) -> None:
        fields = text.upper().split()
        self.is_quartz = len(fields) > 5
        second, minute, hour, self._date, month, self._weekday, *year = fields if self.is_quartz else ["0", *fields]
        self.is_wildcard = minute[0] == "*" or hour[0] == "*"
        self.seconds = sorted(_numbers(second, 0, 59))
        self._minutes = _numbers(minute, 0, 59)
        self._hours = _numbers(hour, 0, 23)
        self._months = _numbers(month, 1, 12, MONTHS)
        self._years = _numbers(year[0] if year else "*", 1970, 2199)
        self._is_date = _any_of(_date_rule(item) for item in self._date.split(","))
        self._is_weekday = _any_of(_weekday_rule(item, self.is_quartz) for item in self._weekday.split(","))

    def is_day(self, day: date) -> bool:
        """Return true if the expression fires on that day of the calendar."""
        if day.month not in self._months or day.year not in self._years:
            return False
        if self._date[0] in "*?" or self._weekday[0] in "*?":
            return self._is_date(day) and self._is_weekday(day)
        return self._is_date(day) or self._is_weekday(day)

    def names(self, wall: datetime) -> bool:
        """Return true if the expression names the minute of this time."""
        return wall.minute in self._minutes and wall.hour in self._hours and self.is_day(wall.date())

    def matches(self, walls: Minutes) -> Flags:
        """Return a flag for each of these local minutes, counted from 1970: true if the expression names it."""
        days = walls // DAY
        first, last = int(days.min()), int(days.max())
        is_day = np.array([self.is_day(EPOCH + timedelta(days=day)) for day in range(first, last + 1)])
        return (
            np.isin(np.arange(60), list(self._minutes))[walls % 60]
            & np.isin(np.arange(24), list(self._hours))[walls // HOUR % 24]
            & is_day[days - first]
        )


class Scanner:
    """The real minutes from the beginning of one year to the beginning of another, and what a wall in `zone` shows."""

    def __init__(self, zone: ZoneInfo, first_year: int, end_year: int) -> None:
        begin = int(datetime(first_year, 1, 1, tzinfo=UTC).timestamp()) // 60
        end = int(datetime(end_year, 1, 1, tzinfo=UTC).timestamp()) // 60
        self.minutes: Minutes = np.arange(begin, end, dtype=np.int64)
        self.walls = self.minutes + _offsets(zone, begin, end)
        steps = np.diff(self.walls)
        self.changes: Minutes = self.minutes[1:][steps != 1]
        self._gaps = [int(index) + 1 for index in np.flatnonzero(steps > 1)]
        self.is_first = np.zeros(len(self.walls), dtype=np.bool_)
        self.is_first[np.unique(self.walls, return_index=True)[1]] = True
        self.is_last = np.zeros(len(self.walls), dtype=np.bool_)
        self.is_last[len(self.walls) - 1 - np.unique(self.walls[::-1], return_index=True)[1]] = True

    def scan(self, expression: Expression) -> "Scan":
        """Find the minutes whose local time matches an expression, and the gaps that have skipped such a time."""
        lost = [index for index in self._gaps if self._has_lost(expression, index)]
        return Scan(self, expression, expression.matches(self.walls), self.minutes[lost] * 60)

    def _has_lost(self, expression: Expression, index: int) -> bool:
        skipped = np.arange(self.walls[index - 1] + 1, self.walls[index], dtype=np.int64)
        return bool(expression.matches(skipped).any())


@dataclass(frozen=True)
class Scan:
    """The minutes that show a time of the expression, and the ends of the gaps that have lost one."""

    scanner: Scanner
    expression: Expression
    shown: Flags
    ends_of_gaps: Minutes

    def fires(self, gap: str, overlap: str) -> Minutes:
        """All fires, in seconds since the epoch, in order."""
        if self.expression.is_wildcard:
            return self._at(self.shown)
        which = {"first": self.scanner.is_first, "last": self.scanner.is_last, "both": np.True_}[overlap]
        on_time = self._at(self.shown & which)
        return np.union1d(on_time, self.ends_of_gaps) if gap == "shift" else on_time

    def _at(self, chosen: Flags) -> Minutes:
        return np.sort(
            np.concatenate([self.scanner.minutes[chosen] * 60 + second for second in self.expression.seconds])
        )


def _offsets(zone: ZoneInfo, begin: int, end: int) -> Minutes:
    """Return the offset of local time at each minute, in minutes.

    An hour with the same offset at its beginning and its end is taken to have it throughout.
    """
    by_hour = [_offset(zone, minute) for minute in range(begin, end + 1, HOUR)]
    offsets = np.repeat(np.array(by_hour[:-1], dtype=np.int64), HOUR)
    for hour, (before, after) in enumerate(pairwise(by_hour)):
        if before != after:
            for minute in range(hour * HOUR, (hour + 1) * HOUR):
                offsets[minute] = _offset(zone, begin + minute)
    return offsets


def _offset(zone: ZoneInfo, minute: int) -> int:
    offset = datetime.fromtimestamp(minute * 60, zone).utcoffset()
    assert offset is not None
    minutes, rest = divmod(offset, timedelta(minutes=1))
    assert not rest
    return minutes


def _numbers(text: str, low: int, high: int, names: list[str] | None = None) -> set[int]:
    """The numbers of a field; a range that ends before it begins goes on at the lowest."""
    found: set[int] = set()
    for item in text.split(","):
        span, _, step = item.partition("/")
        first, _, last = span.partition("-")
        begin = low if first in "*?" else _number(first, low, names)
        end = high if first in "*?" or (step and not last) else _number(last or first, low, names)
        circle = [*range(begin, high + 1), *range(low, begin)] if end < begin else [*range(begin, high + 1)]
        found.update(circle[: circle.index(end) + 1 : int(step or 1)])
    return found


def _number(text: str, low: int, names: list[str] | None) -> int:
    return names.index(text) + low if names and text in names else int(text)


def _any_of(rules: Iterable[IsDay]) -> IsDay:
    asked = list(rules)
    return lambda day: any(rule(day) for rule in asked)


def _month_length(day: date) -> int:
    return calendar.monthrange(day.year, day.month)[1]


def _date_rule(item: str) -> IsDay:
    if item[0] == "L":
        back = int(item.strip("LW-") or 0)
        if item[-1] == "W":
            return lambda day: _is_nearest_weekday(day, _month_length(day) - back)
        return lambda day: day.day == _month_length(day) - back
    if item[-1] == "W":
        return lambda day: _is_nearest_weekday(day, int(item[:-1]))
    numbers = _numbers(item, 1, 31)
    return lambda day: day.day in numbers


def _is_nearest_weekday(day: date, target: int) -> bool:
    """Return true if no day from Monday to Friday of the month is nearer to the `target`-th; a tie cannot be."""
    if not 1 <= target <= _month_length(day):
        return False
    working = [number for number in range(1, _month_length(day) + 1) if day.replace(day=number).isoweekday() < 6]
    return day.day == min(working, key=lambda number: abs(number - target))


def _weekday_rule(item: str, is_quartz: bool) -> IsDay:
    """Sunday is 0 here; the numbers of Quartz begin at 1, and a 7 of the other cron is Sunday again."""
    low = 1 if is_quartz else 0
    if item == "L":
        return lambda day: day.isoweekday() == 6
    if item[-1] == "L":
        last = (_number(item[:-1], low, WEEKDAYS) - low) % 7
        return lambda day: day.isoweekday() % 7 == last and day.day > _month_length(day) - 7
    if "#" in item:
        weekday, _, nth = item.partition("#")
        meant = (_number(weekday, low, WEEKDAYS) - low) % 7
        return lambda day: day.isoweekday() % 7 == meant and (day.day - 1) // 7 + 1 == int(nth)
    meant_all = {(number - low) % 7 for number in _numbers(item, low, 7, WEEKDAYS)}
    return lambda day: day.isoweekday() % 7 in meant_all
