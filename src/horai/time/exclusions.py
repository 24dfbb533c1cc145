"""Dates on which a schedule does not fire, in the calendar of its zone.

2026-12-25               one day
2026-12-24/2027-01-02    a range, both ends included
12-25                    a day of every year
12-24/01-02              a range of every year, which may cross the end of the year
"""

import re
from bisect import bisect_right
from calendar import isleap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import lru_cache

from horai.text import Wrong

MOST = 1_000
ACCEPTED = "write dates such as 2026-12-25, 2026-12-24/2027-01-02, or 12-25 for every year"

_DAY = timedelta(days=1)
_FORM = re.compile(r"(?:(\d{4})-)?(\d{2})-(\d{2})(?:/(?:(\d{4})-)?(\d{2})-(\d{2}))?", re.ASCII)
_LEAP = 2000
"""A leap year, which has every day that a year can have."""

MonthDay = tuple[int, int]
_LEAP_DAY: MonthDay = (2, 29)


@dataclass(frozen=True, slots=True)
class _Days:
    """The parsed exclusions: ranges of whole dates, which neither touch nor overlap, and days of every year.

    `yearly` maps each day of every year to the last day of its run of excluded days within the year.
    """

    starts: tuple[date, ...]
    ends: tuple[date, ...]
    yearly: Mapping[MonthDay, MonthDay]

    def end_of(self, day: date) -> date | None:
        """Return the last day of the range that contains `day`; None if `day` is open.

        A range of every year ends with the year at the latest.
        """
        index = bisect_right(self.starts, day) - 1
        if index >= 0 and day <= self.ends[index]:
            return self.ends[index]
        last = self.yearly.get((day.month, day.day))
        if last is None:
            return None
        return date(day.year, *last) if last != _LEAP_DAY or isleap(day.year) else date(day.year, 2, 28)


def check(dates: Sequence[str]) -> tuple[str, ...]:
    """Return the dates in one canonical order. Raise ValueError with the first that is not a date."""
    if len(dates) > MOST:
        raise ValueError(Wrong.TOO_MANY_DATES(count=len(dates), most=MOST))
    canonical = tuple(sorted(set(dates)))
    _read(canonical)
    return canonical


def is_excluded(dates: tuple[str, ...], day: date) -> bool:
    """Return whether nothing fires on `day`."""
    return bool(dates) and _read(dates).end_of(day) is not None


def next_open(dates: tuple[str, ...], day: date) -> date | None:
    """Return the first day at or after `day` that is not excluded; None if there is none within a hundred years."""
    read, last_year = _read(dates), min(day.year + 100, date.max.year - 1)
    while (end := read.end_of(day)) is not None:
        if end.year > last_year:
            return None
        day = end + _DAY
    return day


@lru_cache(maxsize=1_000)
def _read(dates: tuple[str, ...]) -> _Days:
    stretches: list[tuple[date, date]] = []
    yearly: set[MonthDay] = set()
    for text in dates:
        match _groups(text):
            case [None, _, _, None, _, _] as groups:
                yearly.update(_every_year(text, groups))
            case [str(), _, _, None, None, None] as groups:
                day = _date(text, *groups[:3])
                stretches.append((day, day))
            case [str(), _, _, str(), _, _] as groups:
                stretches.append(_ordered(text, _date(text, *groups[:3]), _date(text, *groups[3:])))
            case _:
                raise ValueError(Wrong.MIXED_DATES(text=text[:40]))
    merged = _merged(stretches)
    return _Days(tuple(start for start, _ in merged), tuple(end for _, end in merged), _runs(yearly))


def _groups(text: str) -> list[str | None]:
    found = _FORM.fullmatch(text) if len(text) <= 21 else None
    if found is None:
        raise ValueError(Wrong.NOT_A_DATE(text=text[:40]))
    return list(found.groups())


def _every_year(text: str, groups: Sequence[str | None]) -> list[MonthDay]:
    first = _date(text, str(_LEAP), *groups[1:3])
    last = first if groups[4] is None else _date(text, str(_LEAP), *groups[4:])
    if last < first:
        last = last.replace(year=_LEAP + 4)
        days = [first + step * _DAY for step in range((date(_LEAP, 12, 31) - first).days + 1)]
        begin = date(_LEAP + 4, 1, 1)
        days += [begin + step * _DAY for step in range((last - begin).days + 1)]
    else:
        days = [first + step * _DAY for step in range((last - first).days + 1)]
    return [(day.month, day.day) for day in days]


def _runs(yearly: set[MonthDay]) -> dict[MonthDay, MonthDay]:
    """Map each day to the last of the days that follow it without a gap."""
    runs: dict[MonthDay, MonthDay] = {}
    following: MonthDay | None = None
    for step in reversed(range(366)):
        day = date(_LEAP, 1, 1) + step * _DAY
        here = (day.month, day.day)
        following = (following or here) if here in yearly else None
        if following is not None:
            runs[here] = following
    return runs


def _date(text: str, year: str | None, month: str | None, day: str | None) -> date:
    try:
        return date(int(year or _LEAP), int(month or 0), int(day or 0))
    except ValueError:
        raise ValueError(Wrong.NOT_IN_CALENDAR(text=text)) from None


def _ordered(text: str, first: date, last: date) -> tuple[date, date]:
    if last < first:
        raise ValueError(Wrong.ENDS_BEFORE(text=text))
    return first, last


def _merged(stretches: list[tuple[date, date]]) -> list[tuple[date, date]]:
    merged: list[tuple[date, date]] = []
    for first, last in sorted(stretches):
        if merged and first <= merged[-1][1] + _DAY:
            merged[-1] = (merged[-1][0], max(merged[-1][1], last))
        else:
            merged.append((first, last))
    return merged
