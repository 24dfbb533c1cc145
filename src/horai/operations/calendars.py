"""The calendar that a definition names: read with the job, and locked when a job begins to follow it."""

from collections.abc import Mapping
from typing import Any

from horai.core.errors import Invalid
from horai.core.job import Definition
from horai.core.timing import calendar_named
from horai.db import calendars, jobs
from horai.db.calendars import CalendarRow
from horai.db.pool import AnyWrite, TenantRead, TenantWrite
from horai.text import Hint, Wrong


async def defined(
    connection: TenantWrite, tenant_id: int, document: Mapping[str, Any], before: Mapping[str, Any] | None = None
) -> Definition:
    """Return the definition of a document to write, with the days of the calendar that it names.

    `before` is the stored document of a job that the caller has locked. A job that begins to follow a calendar locks
    it until commit. A job that goes on with one does not: a change of the calendar waits for the locked job.
    """
    name = calendar_named(document)
    if name is None or jobs.definition_of(document).timing.schedule is None:
        return jobs.definition_of(document)
    is_new = before is None or calendar_named(before) != name
    read = calendars.share_calendar if is_new else calendars.read_calendar
    return jobs.definition_of(document, _found(name, await read(connection, tenant_id, name)).days)


async def require_calendar(connection: TenantRead, tenant_id: int, name: str) -> CalendarRow:
    """Return the calendar that a request names. Raise `Invalid` if there is none."""
    return _found(name, await calendars.read_calendar(connection, tenant_id, name))


async def hold_calendar(connection: AnyWrite, tenant_id: int, name: str) -> None:
    """Keep the calendar that a request names until commit. Raise `Invalid` if there is none."""
    _found(name, await calendars.share_calendar(connection, tenant_id, name))


def _found(name: str, row: CalendarRow | None) -> CalendarRow:
    if row is None:
        raise Invalid.field("calendar", Wrong.NO_CALENDAR_NAMED(name=name[:64]), Hint.CREATE_CALENDAR_FIRST())
    return row
