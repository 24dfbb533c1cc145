"""Why a time is no slot of an expression, in a sentence."""

import re
from datetime import datetime

from horai.core.cron.calendar import both_days_in_month
from horai.core.cron.expression import Cron, Dialect
from horai.core.cron.fields import MONTHS, WEEKDAYS, Token
from horai.core.cron.parser import Parts

_MONTH_NAMES = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_WEEKDAY_NAMES = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
_NTH = ("first", "second", "third", "fourth", "fifth")
_NUMBER = re.compile(r"(?<![/#\d])\d+")


def why_not(cron: Cron, wall: datetime) -> str | None:
    """Which field does not allow the time `wall` of a clock without a zone; None when all allow it.

    From the second to the hour, then the month, its day, and the year: of several, the first is told.
    """
    parts = Parts.of([Token(text, 0) for text in cron.expression.split(" ")])
    return (
        _why_not_the_time(cron, parts, wall)
        or _why_not_the_month(cron, parts, wall)
        or _why_not_the_day(cron, parts, wall)
        or _why_not_the_year(cron, parts, wall)
    )


def _why_not_the_time(cron: Cron, parts: Parts, wall: datetime) -> str | None:
    if wall.microsecond:
        return f"{wall.time().isoformat()} is not a whole second"
    if not cron.seconds >> wall.second & 1:
        if parts.second is None:
            return f"the second {wall.second} is not 0: five fields fire on the minute"
        return f"the second {wall.second} {_is_not(parts.second.text)}"
    if not cron.minutes >> wall.minute & 1:
        return f"the minute {wall.minute} {_is_not(parts.minute.text)}"
    if not cron.hours >> wall.hour & 1:
        return f"the hour {wall.hour} {_is_not(parts.hour.text)}"
    return None


def _why_not_the_month(cron: Cron, parts: Parts, wall: datetime) -> str | None:
    if cron.months >> wall.month & 1:
        return None
    return f"{_MONTH_NAMES[wall.month - 1]} {_is_not(_named(parts.month.text, MONTHS, 1))}"


def _why_not_the_day(cron: Cron, parts: Parts, wall: datetime) -> str | None:
    by_date, by_weekday = (mask >> wall.day & 1 for mask in both_days_in_month(cron, wall.year, wall.month))
    if (by_date or by_weekday) if cron.is_either_day else (by_date and by_weekday):
        return None
    not_the_date = f"the {_ordinal(wall.day)} {_is_not_the_date(parts.day.text)}"
    weekday = f"{_WEEKDAY_NAMES[wall.isoweekday() % 7]} the {_ordinal(wall.day)}"
    not_the_weekday = _is_not_the_weekday(parts.weekday.text, cron.dialect, weekday)
    if cron.is_either_day:
        return f"{not_the_date}, and {not_the_weekday}"
    return not_the_weekday if by_date else not_the_date


def _why_not_the_year(cron: Cron, parts: Parts, wall: datetime) -> str | None:
    if cron.years is None or parts.year is None or cron.years >> wall.year & 1:
        return None
    return f"the year {wall.year} {_is_not(parts.year.text)}"


def _is_not(text: str) -> str:
    return f"is not {text}" if text.isalnum() else f"is not one of {text}"


def _is_not_the_date(text: str) -> str:
    if found := re.fullmatch(r"(?:(\d+)|L(?:-(\d+))?)(W?)", text):
        date, back, is_near = found[1], int(found[2] or 0), bool(found[3])
        if date and not is_near:
            return f"is not the {_ordinal(int(date))}"
        last = f"the day {back} before the last of the month" if back else "the last day of the month"
        meant = f"the {_ordinal(int(date))}" if date else last
        if text == "LW":
            return "is not the last weekday of the month (LW)"
        return f"is not the nearest weekday to {meant} ({text})" if is_near else f"is not {meant} ({text})"
    return _is_not(text)


def _is_not_the_weekday(text: str, dialect: Dialect, weekday: str) -> str:
    sunday = 1 if dialect is Dialect.QUARTZ else 0
    named = _named(text, WEEKDAYS, sunday)
    if found := re.fullmatch(r"([A-Z]{3})(?:#0*([1-5])|L)", named):
        which = _NTH[int(found[2]) - 1] if found[2] else "last"
        return f"{weekday} is not the {which} {_WEEKDAY_NAMES[WEEKDAYS.index(found[1])]} of the month ({text})"
    return f"{weekday.partition(' ')[0]} {_is_not('SAT' if text == 'L' else named)}"


def _named(text: str, names: tuple[str, ...], low: int) -> str:
    """The text with names for its numbers, but for steps and for the n of `#n`."""
    return _NUMBER.sub(lambda number: names[(int(number[0]) - low) % len(names)], text)


def _ordinal(number: int) -> str:
    if 10 <= number % 100 <= 20:
        return f"{number}th"
    return f"{number}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th') }"
