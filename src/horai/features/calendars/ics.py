"""iCalendar files: all-day events become holidays. Pure: `today` is an argument.

An event that repeats is expanded in the years around today (repeats.py); one that repeats each year on the same day
becomes a day of every year. Files that are too large, too deep, or ask for more work than a calendar needs are refused.
Apple's calendars mark make-up working days: they become workdays.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from itertools import islice
from typing import Any

from icalendar import Calendar

from horai.core.errors import Invalid
from horai.features.calendars.repeats import is_every_year, read_rule
from horai.text import Hint, Wrong
from horai.text.phrase import Phrase
from horai.time.exclusions import MOST

LONGEST_FILE = 1_000_000
"""Characters."""
MOST_EVENTS = 5_000
MOST_REPEATING = 100
LONGEST_NAME = 100

_DAY = timedelta(days=1)


@dataclass(slots=True)
class ImportedDays:
    """The days of a file: names by date as exclusions are written, and make-up working days."""

    holidays: dict[str, str | None] = field(default_factory=dict[str, str | None])
    workdays: set[str] = field(default_factory=set[str])


def read_ics(text: str, today: date) -> ImportedDays:
    """Return the all-day events of an iCalendar file. Raise `Invalid` if it has none, or cannot be read."""
    if len(text) > LONGEST_FILE:
        raise _refused(Wrong.TOO_LONG(most=LONGEST_FILE))
    if text.upper().count("BEGIN:VEVENT") > MOST_EVENTS:
        raise _refused(Wrong.ICS_TOO_MANY(most=MOST_EVENTS))
    days, repeating = ImportedDays(), 0
    for event in _events(text):
        if "RRULE" in event:
            repeating += 1
        if repeating > MOST_REPEATING:
            raise _refused(Wrong.ICS_TOO_MANY_REPEATING(most=MOST_REPEATING))
        _add(days, event, today)
        if len(days.holidays) + len(days.workdays) > MOST:
            raise _refused(Wrong.ICS_TOO_MANY_DAYS(most=MOST))
    if not days.holidays and not days.workdays:
        raise _refused(Wrong.ICS_EMPTY())
    return days


def _events(text: str) -> list[Any]:
    try:
        found: Any = Calendar.from_ical(text)
        return list(found.walk("VEVENT"))
    except (ValueError, IndexError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise _refused(Wrong.NOT_ICS()) from error


def _add(days: ImportedDays, event: Any, today: date) -> None:
    begin: Any = _value(event, "DTSTART")
    if not isinstance(begin, date) or isinstance(begin, datetime) or _is_cancelled(event):
        return
    last = _last_day(event, begin)
    name = str(event.get("SUMMARY") or "").strip()[:LONGEST_NAME] or None
    is_workday = str(event.get("X-APPLE-SPECIAL-DAY") or "") == "ALTERNATE-WORKDAY"
    for text in _texts(event, begin, last, today):
        if is_workday:
            days.workdays.add(text)
        else:
            days.holidays.setdefault(text, name)


def _is_cancelled(event: Any) -> bool:
    return str(event.get("STATUS") or "").upper() == "CANCELLED"


def _value(event: Any, name: str) -> object:
    return getattr(event.get(name), "dt", None)


def _last_day(event: Any, begin: date) -> date:
    """Return the last day of an event: its end is the day after it."""
    end, duration = _value(event, "DTEND"), _value(event, "DURATION")
    if isinstance(duration, timedelta):
        end = begin + duration
    if not isinstance(end, date) or isinstance(end, datetime):
        return begin
    return max(begin, end - _DAY)


def _texts(event: Any, begin: date, last: date, today: date) -> Iterator[str]:
    """Yield the days of an event as excluded dates are written."""
    rule = event.get("RRULE")
    if event.get("RDATE") is not None or isinstance(rule, list):
        raise _refused(Wrong.ICS_RULE(rule="RDATE" if rule is None else "RRULE"))
    if rule is None:
        yield _text(begin, last)
        return
    written = rule.to_ical().decode()
    parts = dict(part.upper().split("=", 1) for part in written.split(";") if "=" in part)
    left_out = _left_out(event)
    if not left_out and is_every_year(parts, begin):
        yield f"{begin:%m-%d}" if begin == last else f"{begin:%m-%d}/{last:%m-%d}"
        return
    try:
        days = [*islice(read_rule(parts, begin).days(today), MOST + 1)]
    except (ValueError, OverflowError) as error:
        raise _refused(Wrong.ICS_RULE(rule=written[:80])) from error
    yield from (_text(day, day + (last - begin)) for day in days if day not in left_out)


def _left_out(event: Any) -> set[date]:
    written: Any = event.get("EXDATE")
    lists: list[Any] = [] if written is None else list(written) if isinstance(written, list) else [written]  # pyright: ignore[reportUnknownArgumentType]
    return {_date(entry.dt) for one in lists for entry in one.dts}


def _date(value: date) -> date:
    return value.date() if isinstance(value, datetime) else value


def _text(first: date, last: date) -> str:
    return str(first) if first == last else f"{first}/{last}"


def _refused(message: Phrase) -> Invalid:
    return Invalid.field("ics", message, Hint.GIVE_ALL_DAY_EVENTS())
