"""Operations on calendars: put, read, list and delete. A change gives all jobs that follow the calendar its new slots.

The change has the effect of a PATCH of their crons: instances that exist stay, slots of the new calendar count from now
on, and late slots that were not created yet are recorded as skipped.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from horai.core.audit import AuditVerb
from horai.core.calendars import calendar_document, checked_calendar, checked_name
from horai.core.errors import Conflict, Invalid, NotFound
from horai.core.job import Definition
from horai.core.timing import Timing
from horai.db import calendars, jobs, nodes, schedules
from horai.db.calendars import CalendarRow
from horai.db.pool import TenantRead, TenantWrite, retrying
from horai.features.calendars import store
from horai.features.calendars.ics import read_ics
from horai.features.calendars.store import CalendarFollowers
from horai.operations import audit, job_schedule
from horai.operations.job_schedule import JoinedSlots
from horai.operations.scope import Scope, require_version
from horai.text import Hint, Refused
from horai.time.work_calendar import WorkCalendar

MOST_CALENDARS = 1_000
MOST_NAMED = 10
"""Jobs or rules that the refusal of a deletion names."""


@dataclass(frozen=True, slots=True)
class PutCalendar:
    """A calendar that was written. `joined` are the schedules that its jobs follow now."""

    row: CalendarRow
    is_new: bool
    joined: Sequence[JoinedSlots] = ()


async def read_calendar(scope: Scope, name: str) -> tuple[CalendarRow, int]:
    """Return a calendar, and the number of jobs that follow it."""
    async with scope.read() as connection:
        row = None if "\x00" in name else await calendars.read_calendar(connection, scope.tenant_id, name)
        if row is None:
            raise _not_found(name)
        count, _ = await store.users_of_calendar(connection, scope.tenant_id, name, 0)
    return row, count


async def list_calendars(scope: Scope, after: str, limit: int) -> list[CalendarRow]:
    """Return a page of the tenant's calendars by name."""
    async with scope.read() as connection:
        return await store.list_calendars(connection, scope.tenant_id, after, limit)


async def put_calendar(scope: Scope, name: str, document: Mapping[str, Any], if_version: int | None) -> PutCalendar:
    """Create a calendar or replace its days. Raise `PreconditionFailed` if its version is not `if_version` (0: new)."""
    checked_name(name)
    async with scope.read() as connection:
        now = await nodes.database_time(connection)
    days = await asyncio.to_thread(written_days, document, now)  # a file of events may take long

    async def attempt() -> PutCalendar:
        async with scope.write() as connection:
            return await _put(connection, scope, name, days, if_version)

    put = await retrying(attempt)
    for joined in put.joined:
        job_schedule.announce(scope, joined, [])
    return put


def written_days(document: Mapping[str, Any], now: datetime) -> WorkCalendar:
    """Return the days that a request describes, those of its iCalendar file included."""
    if (ics := document.get("ics")) is None:
        return checked_calendar(document)
    imported = read_ics(ics, now.date())
    found = [{"date": on, "name": name} for on, name in imported.holidays.items()]
    return checked_calendar(
        {
            **document,
            "holidays": [*(document.get("holidays") or ()), *found],
            "workdays": [*(document.get("workdays") or ()), *imported.workdays],
        }
    )


async def _put(
    connection: TenantWrite, scope: Scope, name: str, days: WorkCalendar, if_version: int | None
) -> PutCalendar:
    await store.lock_calendar_names(connection, scope.tenant_id)
    before = await store.lock_calendar(connection, scope.tenant_id, name)
    require_version(f"calendar {name!r}", 0 if before is None else before.version, if_version)
    if before is None:
        if await store.count_calendars(connection, scope.tenant_id) >= MOST_CALENDARS:
            raise Conflict(Refused.CALENDARS_FULL(most=MOST_CALENDARS), Hint.DELETE_UNUSED_CALENDARS())
        row = await store.insert_calendar(connection, scope.tenant_id, name, days)
        await audit.record_write(connection, scope, AuditVerb.CALENDAR_CREATE, name, name, calendar_document(row.days))
        return PutCalendar(row, is_new=True)
    fields = calendar_document(before.days), calendar_document(days)
    if fields[0] == fields[1]:
        return PutCalendar(before, is_new=False)
    row = await store.update_calendar(connection, scope.tenant_id, name, days)
    await audit.record_change(connection, scope, AuditVerb.CALENDAR_CHANGE, name, name, *fields)
    moved = [] if before.days == days else await _follow(connection, scope, name, days)
    return PutCalendar(row, is_new=False, joined=moved)


async def _follow(connection: TenantWrite, scope: Scope, name: str, days: WorkCalendar) -> list[JoinedSlots]:
    """Give the jobs of a changed calendar the schedules of its new days, in the transaction of the change."""
    now = await nodes.database_time(connection)
    joined: list[JoinedSlots] = []
    for group in await store.lock_followers(connection, scope.tenant_id, name):
        definition = _still_fires(group, days)
        if definition.own_timing != Timing():  # the slots of a refresh job are those of its tick job
            joined.append(await _move(connection, scope, group, definition, now))
            changed = {"fields": ["calendar"], "calendar": name}
            await jobs.insert_events(connection, scope.tenant_id, group.ids, "JOB_CHANGED", changed)
    return joined


def _still_fires(group: CalendarFollowers, days: WorkCalendar) -> Definition:
    """Return the definition of jobs by the new days. Raise `Conflict` if they would never fire."""
    try:
        return jobs.definition_of(group.document, days)
    except Invalid as error:
        job = group.document["name"]
        raise Conflict(Refused.CALENDAR_CLOSES_JOB(job=job), Hint.CHANGE_CALENDAR_USERS()) from error


async def _move(
    connection: TenantWrite, scope: Scope, group: CalendarFollowers, definition: Definition, now: datetime
) -> JoinedSlots:
    if group.schedule_id is not None:
        await schedules.share_schedule_of(connection, group.schedule_id)
    joined = await job_schedule.join(connection, definition.own_timing, now)
    await store.give_up_catchups_of(connection, scope.tenant_id, group.ids)
    await store.move_followers(connection, scope.tenant_id, group.ids, joined.schedule_id, now)
    return joined


async def delete_calendar(scope: Scope, name: str, if_version: int | None = None) -> None:
    """Delete a calendar. Raise `Conflict` with the names of jobs that follow it, or of alert rules that use it.

    A job or a rule that begins to follow the calendar locks it meanwhile, so this check runs before or after that.
    """
    async with scope.write() as connection:
        row = None if "\x00" in name else await store.lock_calendar(connection, scope.tenant_id, name)
        if row is None:
            raise _not_found(name)
        require_version(f"calendar {name!r}", row.version, if_version)
        await _require_unused(connection, scope, name)
        await store.delete_calendar(connection, scope.tenant_id, name)
        await audit.record_write(connection, scope, AuditVerb.CALENDAR_DELETE, name, name)


async def _require_unused(connection: TenantRead, scope: Scope, name: str) -> None:
    count, names = await store.users_of_calendar(connection, scope.tenant_id, name, MOST_NAMED)
    if not count:
        rules = await store.rules_of_calendar(connection, scope.tenant_id, name, MOST_NAMED)
        if rules:
            in_use = Refused.CALENDAR_IN_USE_BY_RULES(name=name, rules=", ".join(rules))
            raise Conflict(in_use, Hint.CHANGE_RULES_FIRST())
        return
    shown = ", ".join(names)
    if count > len(names):
        more = Refused.CALENDAR_IN_USE_BY_MORE(name=name, jobs=shown, count=count - len(names))
        raise Conflict(more, Hint.CHANGE_CALENDAR_USERS())
    raise Conflict(Refused.CALENDAR_IN_USE(name=name, jobs=shown), Hint.CHANGE_CALENDAR_USERS())


def _not_found(name: str) -> NotFound:
    return NotFound(Refused.NO_CALENDAR(name=name[:64]), Hint.LISTED_AT(path="/api/v1/calendars"))
