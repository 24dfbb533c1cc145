"""The row of a job and its slots, written from a definition in the caller's transaction."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from horai.core.job import Definition, JobStatus, document_of
from horai.core.masking import shown_target
from horai.db import catch_ups as deferred
from horai.db import claim_lanes, jobs, nodes
from horai.db.calendars import definition_of
from horai.db.jobs import JobRow, JobWrite
from horai.db.pool import TenantWrite
from horai.operations import calendars, job_schedule
from horai.operations.job_schedule import JoinedSlots


@dataclass(frozen=True, slots=True)
class JobDocument:
    """A definition as the user wrote it: the checked document and its payload as JSON text."""

    document: Mapping[str, Any]
    payload: str | None


async def fresh(
    connection: TenantWrite, tenant_id: int, definition: Definition, written: JobDocument, now: datetime
) -> tuple[JobWrite, JoinedSlots]:
    """Return the row of a new job and the schedule that it joined."""
    job_schedule.require_a_slot(definition.timing, now)
    active_from = job_schedule.counts_from(definition.own_timing, now)
    joined = await job_schedule.join(connection, definition.own_timing, now)
    write = JobWrite(
        definition.status,
        joined.schedule_id,
        await claim_lanes.lane_of(connection, tenant_id, definition),
        document_of(definition, written.document),
        written.payload,
        definition.tags,
        active_from,
        definition.own_timing,
    )
    return write, joined


async def rewrite(
    connection: TenantWrite, job: JobRow, document: Mapping[str, Any], payload: str | None
) -> tuple[JobRow, JoinedSlots]:
    """Write another definition for a job that the caller has locked.

    The previous definition decides which of the job's slots continue.
    """
    definition = await calendars.defined(connection, job.tenant_id, document, job.document)
    now = await nodes.database_time(connection)
    joined, active_from = await job_schedule.rejoin(connection, job, definition, now)
    write = JobWrite(
        definition.status,
        joined.schedule_id,
        await claim_lanes.lane_of(connection, job.tenant_id, definition),
        document_of(definition, document),
        payload,
        definition.tags,
        active_from,
        definition.own_timing,
        job_schedule.missed_from(job, joined.cursor) if definition.status is JobStatus.PAUSED else None,
        job.note,
    )
    return await jobs.update_job(connection, job.id, write), joined


async def as_is(connection: TenantWrite, job: JobRow) -> JobWrite:
    """Return the row that leaves the job unchanged."""
    return JobWrite(
        job.status,
        job.schedule_id,
        job.lane_id,
        job.document,
        job.payload,
        job.tags,
        job.active_from,
        (await definition_of(connection, job)).own_timing,
        note=job.note,
    )


async def withdraw(connection: TenantWrite, job: JobRow, reason: str) -> None:
    """Delete a job and wipe the secrets of its target. The caller moves its waiting rows after the commit."""
    await jobs.delete_job(connection, job.id, {**job.document, "target": shown_target(job.document["target"])})
    await deferred.give_up_catchups(connection, job.id, reason)
