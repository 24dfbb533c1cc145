"""The definition of a named calendar: validated, read from the JSON document that people write, and written back."""

from collections.abc import Mapping, Sequence
from typing import Any

from horai.core.errors import Invalid
from horai.core.timing import CALENDAR_NAME
from horai.core.validation import Validation
from horai.text import Wrong, mismatch
from horai.time import exclusions
from horai.time.work_calendar import (
    SATURDAY_AND_SUNDAY,
    WEEKDAYS,
    WorkCalendar,
    from_spec,
    hours_texts,
    read_hours,
    read_weekend,
)

LONGEST_NAME = 100
"""Characters of the name of a holiday."""


def checked_name(name: str) -> str:
    """Return the name of a calendar. Raise `Invalid` if it is not one."""
    if not CALENDAR_NAME.fullmatch(name):
        raise Invalid.field("name", mismatch(name, CALENDAR_NAME))
    return name


def checked_calendar(document: Mapping[str, Any]) -> WorkCalendar:
    """Return the calendar that `document` describes. Raise `Invalid` with every wrong field."""
    faults = Validation()
    holidays = [_holiday(entry) for entry in document.get("holidays") or ()]
    names = {on: name for on, name in holidays if name}
    if any(len(name) > LONGEST_NAME for name in names.values()):
        faults.add("holidays", Wrong.TOO_LONG(most=LONGEST_NAME))
    weekend, hours = document.get("weekend"), document.get("hours")
    calendar = WorkCalendar(
        faults.reading("holidays", lambda: exclusions.check([on for on, _ in holidays]), ()),
        faults.reading("workdays", lambda: exclusions.check(document.get("workdays") or ()), ()),
        SATURDAY_AND_SUNDAY if weekend is None else faults.reading("weekend", lambda: read_weekend(weekend), ()),
        () if hours is None else faults.reading("hours", lambda: read_hours(hours), ()),
        names,
    )
    faults.raise_if_any()
    return calendar


def _holiday(entry: str | Mapping[str, Any]) -> tuple[str, str | None]:
    return (entry, None) if isinstance(entry, str) else (entry["date"], entry.get("name"))


def calendar_document(calendar: WorkCalendar) -> dict[str, Any]:
    """Return the calendar as it is stored and shown."""
    return {
        "holidays": [{"date": on, "name": calendar.names.get(on)} for on in calendar.holidays],
        "workdays": list(calendar.workdays),
        "weekend": [WEEKDAYS[day] for day in calendar.weekend],
        "hours": hours_texts(calendar) or None,
    }


def stored_calendar(document: Mapping[str, Any]) -> WorkCalendar:
    """Return the calendar of a stored document."""
    entries: Sequence[Mapping[str, Any]] = document["holidays"]
    hours: Mapping[str, str] = document["hours"] or {}
    spec: dict[str, Any] = {**document, "holidays": [entry["date"] for entry in entries], "hours": hours}
    return from_spec(spec, {entry["date"]: entry["name"] for entry in entries if entry["name"]})
