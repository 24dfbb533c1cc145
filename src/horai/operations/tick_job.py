"""The tick job of a refresh job: it is created, changed, moved and withdrawn only together with the refresh job."""

from datetime import datetime

from horai.core.refresh import ticks_document
from horai.db import jobs, nodes
from horai.db.jobs import JobRow
from horai.db.pool import TenantWrite
from horai.operations import calendars, job_rows, move_waiting
from horai.operations.job_rows import JobDocument
from horai.operations.job_schedule import JoinedSlots
from horai.operations.scope import Scope


async def add_ticks(connection: TenantWrite, job: JobRow, now: datetime) -> JoinedSlots:
    """Create the tick job that follows the schedule of a refresh job: its instances are the ticks."""
    document = ticks_document({**job.document, "status": job.status.name})
    definition = await calendars.defined(connection, job.tenant_id, document)
    write, joined = await job_rows.fresh(connection, job.tenant_id, definition, JobDocument(document, None), now)
    await jobs.insert_ticks(connection, job, write)
    return joined


async def follow_change(connection: TenantWrite, job: JobRow) -> JoinedSlots | None:
    """Change, create or withdraw the tick job of a changed job. Return None if the job has no ticks."""
    ticks = await jobs.lock_ticks(connection, job.id)
    if job.document.get("refresh") is None:
        if ticks is not None:
            await job_rows.withdraw(connection, ticks, "JOB_CHANGED")
        return None
    if ticks is None:
        return await add_ticks(connection, job, await nodes.database_time(connection))
    told = ticks_document({**job.document, "status": job.status.name})
    return (await job_rows.rewrite(connection, ticks, told, None))[1]


async def move_both(scope: Scope, job: JobRow, ticks: JobRow | None) -> None:
    """Move the waiting rows of a job, and of its tick job if it has one. Call this after the commit."""
    await move_waiting.move_waiting_now(scope, [each.id for each in (job, ticks) if each is not None])
