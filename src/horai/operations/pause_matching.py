"""Bulk pause and resume of jobs that match a filter, in pages of `PORTION`, each in its own transaction.

A crash in between leaves the rest unchanged; the same request again changes the remaining jobs. If a job of the page is
locked, its jobs are changed one by one; jobs still locked are skipped.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from horai.core.job import JobStatus
from horai.db import jobs, nodes
from horai.db.jobs import JobFilter, JobRow
from horai.db.pool import Connection, acquire, limit_lock_wait, transaction
from horai.operations import job_schedule, move_waiting
from horai.operations.bulk import HELD_UP, PATIENCE
from horai.operations.job_schedule import JoinedSlots
from horai.operations.jobs import pause_held, resume_held
from horai.operations.scope import Scope, job_not_found

PORTION = 50
"""Jobs per transaction. Their schedules do not fire until it commits."""


@dataclass(slots=True)
class PauseSummary:
    """The result of a bulk change. `held`: locked by another transaction; `more`: further jobs may match."""

    matched: int = 0
    changed: int = 0
    held: int = 0
    more: bool = False


@dataclass(frozen=True, slots=True)
class Verb:
    """A change of status, with its event and note."""

    status: JobStatus
    event: str
    note: str | None

    @property
    def other(self) -> JobStatus:
        """Return the status of the jobs to change."""
        return JobStatus.ACTIVE if self.status is JobStatus.PAUSED else JobStatus.PAUSED


def pausing(note: str | None) -> Verb:
    """Return the verb that pauses."""
    return Verb(JobStatus.PAUSED, "JOB_PAUSED", note)


def resuming(note: str | None) -> Verb:
    """Return the verb that resumes."""
    return Verb(JobStatus.ACTIVE, "JOB_RESUMED", note)


async def change_matching(
    scope: Scope, verb: Verb, only: JobFilter, limit: int, *, dry_run: bool = False
) -> PauseSummary:
    """Change matching jobs that have the other status, oldest first, at most `limit`. A dry run only counts them."""
    await _require_names(scope, only)
    wanted, result = replace(only, status=verb.other), PauseSummary()
    after, ends_at = 0, time.monotonic() + scope.longest
    while True:
        size = min(limit - result.matched, PORTION)
        async with acquire(scope.pool) as connection:
            page = await jobs.list_jobs(connection, scope.tenant_id, after, max(size, 1), wanted)
        if size <= 0 or time.monotonic() >= ends_at:
            result.more = bool(page)
            return result
        ids = [job.id for job in page]
        result.matched += len(ids)
        if ids and not dry_run:
            await _change(scope, verb, ids, result)
        if len(ids) < size:
            return result
        after = ids[-1]


async def _require_names(scope: Scope, only: JobFilter) -> None:
    if only.names is None:
        return
    async with acquire(scope.pool) as connection:
        known = await jobs.jobs_by_name(connection, scope.tenant_id, only.names)
    for name in only.names:
        if name not in known:
            raise job_not_found(name)


async def _change(scope: Scope, verb: Verb, ids: Sequence[int], result: PauseSummary) -> None:
    try:
        result.changed += await _portion(scope, verb, ids)
    except HELD_UP:
        for id_ in ids:
            try:
                result.changed += await _portion(scope, verb, [id_])
            except HELD_UP:
                result.held += 1


async def _portion(scope: Scope, verb: Verb, ids: Sequence[int]) -> int:
    async with transaction(scope.pool) as connection:
        await limit_lock_wait(connection, PATIENCE)
        held = await jobs.lock_jobs(connection, scope.tenant_id, ids, verb.status)
        joined = await _write(connection, verb, held)
        changed = [job.id for job in held if job.ticks_for is None]
        await jobs.insert_events(connection, scope.tenant_id, changed, verb.event, {"note": verb.note})
    for each in joined:
        job_schedule.announce(scope, each, [])
    await move_waiting.move_waiting_now(scope, [job.id for job in held])
    return len(changed)


async def _write(connection: Connection, verb: Verb, held: Sequence[JobRow]) -> list[JoinedSlots]:
    """Write the jobs in the order of their schedules, so that two requests wait for schedules in the same order."""
    ordered = sorted(held, key=lambda job: (job.schedule_id or 0, job.id))
    if verb.status is JobStatus.PAUSED:
        for job in ordered:
            await pause_held(connection, job, verb.note)
        return []
    now = await nodes.database_time(connection)
    return [(await resume_held(connection, job, verb.note, now))[1] for job in ordered]
