"""The reason why a time is not a slot of an expression, as a sentence."""

import re
from datetime import datetime

from horai.text.phrase import Phrase
from horai.time.cron.calendar import both_days_in_month
from horai.time.cron.expression import Cron, Dialect
from horai.time.cron.fields import MONTHS, WEEKDAYS, Token
from horai.time.cron.parser import Parts
from horai.time.cron.phrases import Mismatch, Month, Nth, Weekday

_NUMBER = re.compile(r"(?<![/#\d])\d+")


def why_not(cron: Cron, wall: datetime) -> Phrase | None:
    """Return the field that does not allow the time `wall` of a clock without a zone; None if all allow it.

    The order is second to hour, then the month, its day, and the year; only the first mismatch is returned.
    """
    parts = Parts.of([Token(text, 0) for text in cron.expression.split(" ")])
    return (
        _why_not_the_time(cron, parts, wall)
        or _why_not_the_month(cron, parts, wall)
        or _why_not_the_day(cron, parts, wall)
        or _why_not_the_year(cron, parts, wall)
    )


def _why_not_the_time(cron: Cron, parts: Parts, wall: datetime) -> Phrase | None:
    if wall.microsecond:
        return Mismatch.NOT_A_SECOND(time=wall.time().isoformat())
    if not cron.seconds >> wall.second & 1:
        if parts.second is None:
            return Mismatch.NOT_ON_THE_MINUTE(number=wall.second)
        return Mismatch.SECOND_IS(number=wall.second, is_not=_is_not(parts.second.text))
    if not cron.minutes >> wall.minute & 1:
        return Mismatch.MINUTE_IS(number=wall.minute, is_not=_is_not(parts.minute.text))
    if not cron.hours >> wall.hour & 1:
        return Mismatch.HOUR_IS(number=wall.hour, is_not=_is_not(parts.hour.text))
    return None


def _why_not_the_month(cron: Cron, parts: Parts, wall: datetime) -> Phrase | None:
    if cron.months >> wall.month & 1:
        return None
    return Mismatch.MONTH_IS(month=Month[f"MONTH_{wall.month}"](), is_not=_is_not(_named(parts.month.text, MONTHS, 1)))


def _why_not_the_day(cron: Cron, parts: Parts, wall: datetime) -> Phrase | None:
    by_date, by_weekday = (mask >> wall.day & 1 for mask in both_days_in_month(cron, wall.year, wall.month))
    if (by_date or by_weekday) if cron.is_either_day else (by_date and by_weekday):
        return None
    date = Mismatch.DATE_IS(day=_ordinal(wall.day), is_not=_is_not_the_date(parts.day.text))
    weekday = _why_not_the_weekday(parts.weekday.text, cron.dialect, wall)
    if cron.is_either_day:
        return Mismatch.NEITHER_DAY(date=date, weekday=weekday)
    return weekday if by_date else date


def _why_not_the_year(cron: Cron, parts: Parts, wall: datetime) -> Phrase | None:
    if cron.years is None or parts.year is None or cron.years >> wall.year & 1:
        return None
    return Mismatch.YEAR_IS(number=wall.year, is_not=_is_not(parts.year.text))


def _is_not(text: str) -> Phrase:
    return Mismatch.IS_NOT(allowed=text) if text.isalnum() else Mismatch.IS_NONE_OF(allowed=text)


def _is_not_the_date(text: str) -> Phrase:
    found = re.fullmatch(r"(?:(\d+)|L(?:-(\d+))?)(W?)", text)
    if not found:
        return _is_not(text)
    date, back, is_near = found[1], int(found[2] or 0), bool(found[3])
    if text == "LW":
        return Mismatch.IS_NOT_LAST_WEEKDAY()
    if date:
        day = _ordinal(int(date))
        return Mismatch.IS_NOT_NEAREST(day=day, text=text) if is_near else Mismatch.IS_NOT_DATE(day=day)
    if back:
        says = Mismatch.IS_NOT_NEAREST_BEFORE_LAST if is_near else Mismatch.IS_NOT_BEFORE_LAST
        return says(count=back, text=text)
    return (Mismatch.IS_NOT_NEAREST_LAST if is_near else Mismatch.IS_NOT_LAST_DAY)(text=text)


def _why_not_the_weekday(text: str, dialect: Dialect, wall: datetime) -> Phrase:
    weekday = _weekday(wall.isoweekday() % 7)
    named = _named(text, WEEKDAYS, 1 if dialect is Dialect.QUARTZ else 0)
    found = re.fullmatch(r"([A-Z]{3})(?:#0*([1-5])|L)", named)
    if not found:
        return Mismatch.WEEKDAY_IS(weekday=weekday, is_not=_is_not("SAT" if text == "L" else named))
    meant = _weekday(WEEKDAYS.index(found[1]))
    is_not = (
        Mismatch.IS_NOT_NTH(nth=Nth[f"NTH_{found[2]}"](), weekday=meant, text=text)
        if found[2]
        else Mismatch.IS_NOT_LAST(weekday=meant, text=text)
    )
    return Mismatch.WEEKDAY_DATE_IS(weekday=weekday, day=_ordinal(wall.day), is_not=is_not)


def _weekday(number: int) -> Phrase:
    return Weekday[f"WEEKDAY_{number}"]()


def _named(text: str, names: tuple[str, ...], low: int) -> str:
    """Return the text with names for its numbers, except for steps and the n of `#n`."""
    return _NUMBER.sub(lambda number: names[(int(number[0]) - low) % len(names)], text)


def _ordinal(number: int) -> Phrase:
    ending = "th" if 10 <= number % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return Mismatch.ORDINAL.worded(f"{number}{ending}", number=number)
