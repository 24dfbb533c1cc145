"""The job beside a refresh job that makes its ticks: it is made, changed, moved and withdrawn with it, and by nobody else."""

from datetime import datetime

from horai.core.refresh import ticks_document
from horai.db import jobs, nodes
from horai.db.jobs import JobRow
from horai.db.pool import Connection
from horai.operations import job_rows, move_waiting
from horai.operations.job_rows import JobDocument
from horai.operations.job_schedule import JoinedSlots
from horai.operations.scope import Scope


async def add_ticks(connection: Connection, job: JobRow, now: datetime) -> JoinedSlots:
    """The job beside a refresh job that follows its schedule: its instances are the ticks."""
    document = ticks_document({**job.document, "status": job.status.name})
    definition = jobs.definition_of(document)
    write, joined = await job_rows.fresh(connection, job.tenant_id, definition, JobDocument(document, None), now)
    await jobs.insert_ticks(connection, job, write)
    return joined


async def follow_change(connection: Connection, job: JobRow) -> JoinedSlots | None:
    """A job was written anew: what makes its ticks is changed, made or withdrawn with it. None where it has no ticks."""
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
    """After the commit: what waits of a job, and of its ticks where it has any, goes where it belongs now."""
    await move_waiting.move_waiting_now(scope, [each.id for each in (job, ticks) if each is not None])
