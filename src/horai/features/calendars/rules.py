"""The days of a calendar, one by one: whether each is a working day, and why."""

from dataclasses import dataclass
from datetime import date, timedelta

from horai.time.exclusions import is_excluded
from horai.time.work_calendar import (
    WEEKDAYS,
    WorkCalendar,
    hours_texts,
    is_working_day,
    name_of_day_off,
)

MOST_DAYS = 400


@dataclass(frozen=True, slots=True)
class DescribedDay:
    """A day of a calendar."""

    date: date
    weekday: str
    working: bool
    kind: str
    name: str | None
    hours: str | None


def described(calendar: WorkCalendar, first: date, count: int) -> list[DescribedDay]:
    """Return `count` days from `first` on."""
    hours = hours_texts(calendar)
    return [_described(calendar, first + timedelta(days=number), hours) for number in range(count)]


def _described(calendar: WorkCalendar, day: date, hours: dict[str, str]) -> DescribedDay:
    weekday, working = WEEKDAYS[day.weekday()], is_working_day(calendar, day)
    is_off_by_week = day.weekday() in calendar.weekend
    is_holiday = is_excluded(calendar.holidays, day)
    if working:
        kind = "MAKE_UP" if is_off_by_week or is_holiday else "WORKDAY"
    else:
        kind = "HOLIDAY" if is_holiday else "WEEKEND"
    name = name_of_day_off(calendar, day) if is_holiday else None
    return DescribedDay(
        day, weekday, working, kind, name, hours.get(weekday, hours.get("default")) if working else None
    )
