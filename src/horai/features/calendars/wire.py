"""Calendars on the wire."""

from datetime import date, datetime
from typing import Annotated, Literal

from pydantic import Field

from horai.wire.encode import As
from horai.wire.fields import Model, Text

WeekdayName = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
HoursText = Annotated[Text, Field(max_length=200)]
Dates = Annotated[list[Text], Field(max_length=1_000)]
PlainDate = Annotated[str, As(date.isoformat)]


class Holiday(Model):
    """A holiday: a day, a range such as 2026-10-01/2026-10-07, or a day of every year such as 12-25."""

    date: Text
    name: Annotated[Text, Field(max_length=100)] | None = None


class CalendarIn(Model):
    """`PUT /api/v1/calendars/{name}`: the whole calendar. `ics` is an iCalendar file whose all-day events are added."""

    holidays: Annotated[list[Text | Holiday], Field(max_length=1_000)] | None = None
    workdays: Dates | None = None
    """Make-up working days: they are working days even if they are holidays or on a weekend."""
    weekend: Annotated[list[WeekdayName], Field(max_length=7)] | None = None
    """Days of each week that are off; Saturday and Sunday if absent, none if empty."""
    hours: HoursText | Annotated[dict[Text, HoursText], Field(max_length=8)] | None = None
    """Business hours such as 09:00-12:00,13:00-18:00: of all working days, or by weekday with a `default`."""
    ics: Text | None = None


class CalendarOut(Model):
    """A calendar. Its dates have no zone: the zone of a job says when a day begins."""

    name: str
    holidays: list[Holiday]
    workdays: list[str]
    weekend: list[WeekdayName]
    hours: dict[str, str] | None
    jobs: int | None = None
    """The number of jobs that follow it; absent in lists."""
    version: int
    created_at: datetime
    updated_at: datetime


class CalendarList(Model):
    """A page of calendars, by name."""

    items: list[CalendarOut]
    next_cursor: str | None


class CalendarDay(Model):
    """A day of a calendar. `kind`: WORKDAY, MAKE_UP, WEEKEND or HOLIDAY; `hours` only on working days."""

    date: PlainDate
    weekday: WeekdayName
    working: bool
    kind: Literal["WORKDAY", "MAKE_UP", "WEEKEND", "HOLIDAY"]
    name: str | None
    hours: str | None


class CalendarDays(Model):
    """The days of a calendar, in order."""

    days: list[CalendarDay]
