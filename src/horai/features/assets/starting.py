"""From successes to updates, and from updates to instances: each step is one transaction that can be repeated.

The history row of a success is its update: reading it again finds the update recorded. A job that waits starts once per
set of updates, because the transaction that inserts its instance also marks them.
"""

from dataclasses import dataclass, field
from datetime import UTC, datetime

from horai.core.horizon import ClockWatch, HorizonSample, earliest_row, kept_samples
from horai.core.job import JobStatus
from horai.db import instances, jobs
from horai.db.claims import Claimable
from horai.db.pool import Platform
from horai.features.assets import engine_store as store
from horai.features.assets.rules import payload_with
from horai.features.assets.store import pending_updates

SUCCESSES_AT_ONCE = 1_000
JOBS_AT_ONCE = 100
_FIRST = datetime(1970, 1, 1, tzinfo=UTC)


async def read_successes(connection: Platform, watch: ClockWatch) -> bool:
    """Record the updates of new successes. Return False if there may be more, or another process is reading.

    A transaction that is still open may add an older success: the cursor keeps a time that is before all of these.
    """
    async with connection.transaction():
        cursor = await store.lock_asset_cursor(connection)
        if cursor is None:
            return False
        earliest = earliest_row(cursor.samples, watch.overlap(cursor.now)) or _FIRST
        found = await store.new_successes(connection, earliest, SUCCESSES_AT_ONCE)
        if found:
            await store.add_asset_updates(connection, found)
        if len(found) == SUCCESSES_AT_ONCE:
            return False
        known = cursor.samples
        if (
            not known or known[-1].next_id > cursor.next_id
        ):  # a new cursor, or transaction ids that began again with a restored dump
            known = (HorizonSample(earliest, 0),)
        newest = HorizonSample(cursor.now, cursor.next_id)
        await store.move_asset_cursor(connection, kept_samples(known, newest, cursor.oldest_open))
    return True


@dataclass(slots=True)
class StartedJobs:
    """The new instances, and whether other jobs may be ready."""

    woken: list[Claimable] = field(default_factory=list[Claimable])
    has_more: bool = False


async def start_ready(connection: Platform) -> StartedJobs:
    """Start the jobs whose assets were updated, each once with all updates since its last start."""
    started = StartedJobs()
    async with connection.transaction():
        ready = await store.ready_jobs(connection, JOBS_AT_ONCE)
        started.has_more = len(ready) == JOBS_AT_ONCE
        for job_id in ready:
            started.woken += await _start(connection, job_id)
    return started


async def _start(connection: Platform, job_id: int) -> list[Claimable]:
    job = await jobs.share_job(connection, job_id)
    if job is None or job.status is JobStatus.PAUSED:
        return []
    updates = await pending_updates(connection, job_id)
    made = await instances.insert_many(
        connection, instances.target_of(job, is_charged=False), [(None, payload_with(job.payload, updates))]
    )
    await store.note_start(connection, job_id, made[0].id, [update.id for update in updates])
    return made
