"""The next matching time on a wall clock without zones and clock changes.

A wall time is the number of seconds since 1970-01-01 00:00 on that clock, as if every day had 86,400 of them.
"""

from datetime import date

from horai.time.cron.expression import Cron, MovingDays

DAY = 86_400
YEARS_AHEAD = 100
"""The length of a search, in years. The rarest day, 29 February on one weekday, comes at least every 40 years."""

_EPOCH_ORDINAL = date(1970, 1, 1).toordinal()
_LAST_YEAR = date.max.year - 1
_MONTH_LENGTHS = (0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_LONGEST_MONTH = 31
_FIRST = 1 << 1
_ONE_WEEK = 0b111_1111 << 1
_EACH_WEEK = sum(1 << days for days in range(0, 42, 7))
_SUNDAY, _SATURDAY = 1 << 0, 1 << 6


def next_slot(cron: Cron, wall: int) -> int | None:
    """Return the first matching wall time at or after `wall`; None if there is none within a hundred years."""
    day, second_of_day = divmod(wall, DAY)
    found = next_day(cron, day)
    if found == day:
        time = next_time(cron, second_of_day)
        if time is not None:
            return day * DAY + time
        found = next_day(cron, day + 1)
    if found is None:
        return None
    return found * DAY + _first_time(cron)


def next_day(cron: Cron, day: int) -> int | None:
    """Return the first matching day (counted from 1970-01-01) at or after `day`; None if there is none.

    The search ends after a hundred years, or with the last year of a year field.
    """
    start = date.fromordinal(_EPOCH_ORDINAL + day)
    year, month, day_of_month = start.year, start.month, start.day
    months, last_year = cron.months, min(year + YEARS_AHEAD, _LAST_YEAR)
    if cron.years is not None:
        last_year = cron.years.bit_length() - 1
        if not cron.years >> year & 1:
            year, month, day_of_month = _next_year(cron.years, year), 1, 1
    while year <= last_year:
        if months >> month & 1:
            later = days_in_month(cron, year, month) >> day_of_month
            if later:
                matching = day_of_month + _lowest(later)
                return date(year, month, matching).toordinal() - _EPOCH_ORDINAL
        day_of_month = 1
        month += 1
        if month > 12:
            month, year = 1, year + 1 if cron.years is None else _next_year(cron.years, year + 1)
    return None


def days_in_month(cron: Cron, year: int, month: int) -> int:
    """Return the mask of the days of that month that match both day fields, or either of them if `is_either_day`."""
    by_date, by_weekday = both_days_in_month(cron, year, month)
    return by_date | by_weekday if cron.is_either_day else by_date & by_weekday


def both_days_in_month(cron: Cron, year: int, month: int) -> tuple[int, int]:
    """Return the masks of the days of that month that match the day of month, and that match the weekday."""
    length = _MONTH_LENGTHS[month] + (month == 2 and year % 4 == 0 and (year % 100 != 0 or year % 400 == 0))
    existing = ((1 << length) - 1) << 1
    weekday_of_first = date(year, month, 1).isoweekday() % 7
    by_date = cron.days_of_month
    by_weekday = _on(cron.days_of_week, weekday_of_first)
    if cron.moving is not None:
        by_date |= _moving_dates(cron.moving, length, weekday_of_first)
        by_weekday |= _moving_weekdays(cron.moving, length, weekday_of_first)
    return by_date & existing, by_weekday & existing


def _on(weekdays: int, weekday_of_first: int) -> int:
    """Return the mask of `weekdays` in a month that begins on `weekday_of_first`, and on some days after its end."""
    return weekdays * _EACH_WEEK >> weekday_of_first << 1


def _moving_dates(moving: MovingDays, length: int, weekday_of_first: int) -> int:
    shorter = _LONGEST_MONTH - length
    meant = moving.nearest | moving.nearest_before_last >> shorter
    return moving.before_last >> shorter | _nearest_weekdays(meant, length, weekday_of_first)


def _nearest_weekdays(meant: int, length: int, weekday_of_first: int) -> int:
    """Return the days from Monday to Friday nearest to `meant`: before a Saturday, after a Sunday.

    No day leaves its month: a Saturday on the 1st becomes the 3rd, and a Sunday on the last day becomes the Friday
    before.
    """
    last = 1 << length
    meant &= (last << 1) - _FIRST
    saturdays = meant & _on(_SATURDAY, weekday_of_first)
    sundays = meant & _on(_SUNDAY, weekday_of_first)
    return (
        meant & ~saturdays & ~sundays
        | (saturdays & ~_FIRST) >> 1
        | (saturdays & _FIRST) << 2
        | (sundays & ~last) << 1
        | (sundays & last) >> 2
    )


def _moving_weekdays(moving: MovingDays, length: int, weekday_of_first: int) -> int:
    """Return the mask of the n-th and the last weekdays of a month.

    The n-th of a weekday lies in the n-th seven days of a month, the last one in the last seven.
    """
    days = _on(moving.last_weekdays, weekday_of_first) & _ONE_WEEK << (length - 7)
    for earlier, weekdays in enumerate(moving.nth_weekdays):
        if weekdays:
            days |= _on(weekdays, weekday_of_first) & _ONE_WEEK << 7 * earlier
    return days


def _next_year(years: int, year: int) -> int:
    """Return the first year of the mask at or after `year`, or a year after all of them."""
    later = years >> year
    return year + _lowest(later) if later else years.bit_length()


def next_time(cron: Cron, second_of_day: int) -> int | None:
    """Return the first matching second of a day at or after `second_of_day`; None if there is none."""
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
    """Return the lowest number in a mask that has one."""
    return (mask & -mask).bit_length() - 1
