"""Named calendars, and the definitions of jobs that follow one: one function per statement of sql/calendars.sql.

A transaction that has locked a job reads the calendar in a statement of its own after the lock: a change of the
calendar locks its jobs, so the calendar that is read here is the one whose schedule the job has.
"""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any

import asyncpg

from horai.core.calendars import stored_calendar
from horai.core.job import Definition
from horai.core.timing import calendar_named
from horai.db import jobs
from horai.db.catalog import sql
from horai.db.jobs import JobRow
from horai.db.pool import AnyRead, AnyWrite
from horai.time.work_calendar import WorkCalendar


@dataclass(frozen=True, slots=True)
class CalendarRow:
    """A stored calendar."""

    name: str
    version: int
    days: WorkCalendar
    created_at: datetime
    updated_at: datetime


def calendar_row(row: asyncpg.Record) -> CalendarRow:
    """Return the calendar of a row with the columns of `read_calendar`."""
    return CalendarRow(row["name"], row["version"], days_of(row["days"]), row["created_at"], row["updated_at"])


@lru_cache(maxsize=1_000)
def days_of(text: str) -> WorkCalendar:
    """Parse a stored calendar. Jobs with the same calendar share its computed years."""
    return stored_calendar(json.loads(text))


async def read_calendar(connection: AnyRead, tenant_id: int, name: str) -> CalendarRow | None:
    """Return a calendar of the tenant by its name, or None."""
    row = await connection.fetchrow(sql("read_calendar"), tenant_id, name)
    return None if row is None else calendar_row(row)


async def read_calendars(connection: AnyRead, tenant_id: int, names: Collection[str]) -> dict[str, WorkCalendar]:
    """Return the tenant's calendars of these names; those that do not exist are absent."""
    rows = await connection.fetch(sql("read_calendars"), tenant_id, list(names))
    return {row["name"]: days_of(row["days"]) for row in rows}


async def share_calendar(connection: AnyWrite, tenant_id: int, name: str) -> CalendarRow | None:
    """Return a calendar, and keep it from being changed or deleted until commit."""
    row = await connection.fetchrow(sql("share_calendar"), tenant_id, name)
    return None if row is None else calendar_row(row)


async def definition_of(connection: AnyRead, job: JobRow) -> Definition:
    """Return the definition of a job with the days of the calendar that it names. Most jobs name none."""
    return await defined(connection, job.tenant_id, job.document)


async def defined(connection: AnyRead, tenant_id: int, document: Mapping[str, Any]) -> Definition:
    """Return the definition that a stored document describes, with the days of the calendar that it names."""
    name = calendar_named(document)
    row = None if name is None else await read_calendar(connection, tenant_id, name)
    return jobs.definition_of(document, None if row is None else row.days)
