"""The next matching time on a wall clock that knows no zones and no clock changes.

A wall time is the number of seconds since 1970-01-01 00:00 on that wall, as if every day had 86,400 of them.
"""

from datetime import date

from horai.core.cron.expression import Cron

DAY = 86_400
YEARS_AHEAD = 100
"""How far a search goes. The rarest day, 29 February on one weekday, comes at least every 40 years."""

_EPOCH_ORDINAL = date(1970, 1, 1).toordinal()
_LAST_YEAR = date.max.year - 1
_MONTH_LENGTHS = (0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_EACH_WEEK = sum(1 << days for days in range(0, 42, 7))


def next_slot(cron: Cron, wall: int) -> int | None:
    """The first wall time at or after `wall` that matches, or None when there is none within a hundred years."""
    day, second_of_day = divmod(wall, DAY)
    found = next_day(cron, day)
    if found == day:
        time = _next_time(cron, second_of_day)
        if time is not None:
            return day * DAY + time
        found = next_day(cron, day + 1)
    if found is None:
        return None
    return found * DAY + _first_time(cron)


def next_day(cron: Cron, day: int) -> int | None:
    """The first day (counted from 1970-01-01) at or after `day` that matches."""
    start = date.fromordinal(_EPOCH_ORDINAL + day)
    year, month, day_of_month = start.year, start.month, start.day
    last_year = min(year + YEARS_AHEAD, _LAST_YEAR)
    while year <= last_year:
        if cron.months >> month & 1:
            later = days_in_month(cron, year, month) >> day_of_month
            if later:
                matching = day_of_month + _lowest(later)
                return date(year, month, matching).toordinal() - _EPOCH_ORDINAL
        day_of_month = 1
        year, month = (year, month + 1) if month < 12 else (year + 1, 1)
    return None


def days_in_month(cron: Cron, year: int, month: int) -> int:
    """The mask of the days of that month that match both day fields, or either of them if so asked."""
    length = _MONTH_LENGTHS[month] + (month == 2 and year % 4 == 0 and (year % 100 != 0 or year % 400 == 0))
    existing = ((1 << length) - 1) << 1
    weekday_of_first = date(year, month, 1).isoweekday() % 7
    by_weekday = (cron.days_of_week * _EACH_WEEK) >> weekday_of_first << 1
    if cron.is_either_day:
        return (cron.days_of_month | by_weekday) & existing
    return cron.days_of_month & by_weekday & existing


def _next_time(cron: Cron, second_of_day: int) -> int | None:
    """The first matching second of a day at or after `second_of_day`."""
    minute_of_day, second = divmod(second_of_day, 60)
    hour, minute = divmod(minute_of_day, 60)
    if cron.hours >> hour & 1:
        if cron.minutes >> minute & 1:
            seconds = cron.seconds >> second
            if seconds:
                return minute_of_day * 60 + second + _lowest(seconds)
        minutes = cron.minutes >> (minute + 1)
        if minutes:
            return (hour * 60 + minute + 1 + _lowest(minutes)) * 60 + _lowest(cron.seconds)
    hours = cron.hours >> (hour + 1)
    if not hours:
        return None
    return ((hour + 1 + _lowest(hours)) * 60 + _lowest(cron.minutes)) * 60 + _lowest(cron.seconds)


def _first_time(cron: Cron) -> int:
    return (_lowest(cron.hours) * 60 + _lowest(cron.minutes)) * 60 + _lowest(cron.seconds)


def _lowest(mask: int) -> int:
    """The lowest number in a mask that has one."""
    return (mask & -mask).bit_length() - 1
