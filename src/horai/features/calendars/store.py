"""Calendars and the jobs that follow them: one function per statement of store.sql."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from horai.core.calendars import calendar_document
from horai.db.calendars import CalendarRow, calendar_row
from horai.db.catalog import sql
from horai.db.pool import TenantRead, TenantWrite
from horai.time.work_calendar import WorkCalendar


@dataclass(frozen=True, slots=True)
class CalendarFollowers:
    """The jobs that follow a calendar with one schedule. `document` is the definition of the first of them."""

    schedule_id: int | None
    ids: Sequence[int]
    document: Mapping[str, Any]


async def lock_calendar_names(connection: TenantWrite, tenant_id: int) -> None:
    """Make other transactions that add calendars of the tenant wait until commit."""
    await connection.execute(sql("lock_calendar_names"), tenant_id)


async def count_calendars(connection: TenantRead, tenant_id: int) -> int:
    """Return the number of the tenant's calendars."""
    return await connection.fetchval(sql("count_calendars"), tenant_id)


async def lock_calendar(connection: TenantWrite, tenant_id: int, name: str) -> CalendarRow | None:
    """Lock a calendar until commit: no job begins to follow it meanwhile. Return None if there is none."""
    row = await connection.fetchrow(sql("lock_calendar"), tenant_id, name)
    return None if row is None else calendar_row(row)


async def insert_calendar(connection: TenantWrite, tenant_id: int, name: str, days: WorkCalendar) -> CalendarRow:
    """Insert a calendar. The caller has locked the names and found none of this name."""
    return await _written(connection, "insert_calendar", tenant_id, name, days)


async def update_calendar(connection: TenantWrite, tenant_id: int, name: str, days: WorkCalendar) -> CalendarRow:
    """Write other days into a calendar that the caller has locked."""
    return await _written(connection, "update_calendar", tenant_id, name, days)


async def _written(
    connection: TenantWrite, statement: str, tenant_id: int, name: str, days: WorkCalendar
) -> CalendarRow:
    text = json.dumps(calendar_document(days), ensure_ascii=False)
    row = await connection.fetchrow(sql(statement), tenant_id, name, text)
    assert row is not None  # noqa: S101 — both statements return the row
    return calendar_row(row)


async def delete_calendar(connection: TenantWrite, tenant_id: int, name: str) -> None:
    """Delete a calendar that the caller has locked."""
    await connection.execute(sql("delete_calendar"), tenant_id, name)


async def list_calendars(connection: TenantRead, tenant_id: int, after: str, limit: int) -> list[CalendarRow]:
    """Return a page of calendars by name."""
    return [calendar_row(row) for row in await connection.fetch(sql("list_calendars"), tenant_id, after, limit)]


async def users_of_calendar(connection: TenantRead, tenant_id: int, name: str, most: int) -> tuple[int, list[str]]:
    """Return how many jobs follow the calendar, and the names of at most `most` of them."""
    row = await connection.fetchrow(sql("users_of_calendar"), tenant_id, name, most)
    assert row is not None  # noqa: S101 — an aggregate returns a row
    return row["count"], list(row["names"] or ())


async def rules_of_calendar(connection: TenantRead, tenant_id: int, name: str, most: int) -> list[str]:
    """Return the names of at most `most` alert rules that use the calendar."""
    return [row["name"] for row in await connection.fetch(sql("rules_of_calendar"), tenant_id, name, most)]


async def lock_followers(connection: TenantWrite, tenant_id: int, name: str) -> list[CalendarFollowers]:
    """Lock the jobs that follow the calendar until commit, and return them by schedule."""
    rows = await connection.fetch(sql("lock_followers"), tenant_id, name)
    return [CalendarFollowers(row["schedule_id"], row["ids"], json.loads(row["definition"])) for row in rows]


async def move_followers(
    connection: TenantWrite, tenant_id: int, ids: Sequence[int], schedule_id: int | None, active_from: datetime
) -> None:
    """Give locked jobs another schedule, whose slots count after `active_from`."""
    await connection.execute(sql("move_followers"), tenant_id, list(ids), schedule_id, active_from)


async def give_up_catchups_of(connection: TenantWrite, tenant_id: int, ids: Sequence[int]) -> None:
    """Delete the catch-ups of these jobs and record their slots as skipped."""
    await connection.execute(sql("give_up_catchups_of"), tenant_id, list(ids))
