"""Bulk pause and resume of jobs that match a filter, in pages of `PORTION`: see operations/bulk.py."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from horai.core.audit import AuditVerb
from horai.core.job import JobStatus
from horai.db import job_lists, jobs, nodes
from horai.db.job_lists import JobFilter
from horai.db.jobs import JobRow
from horai.db.pool import TenantWrite
from horai.operations import audit, job_schedule, move_waiting
from horai.operations.bulk import BulkPage, brief_transaction, change_pages
from horai.operations.job_schedule import JoinedSlots
from horai.operations.jobs import pause_held, resume_held
from horai.operations.jobs_matching import require_names
from horai.operations.scope import Scope

PORTION = 50
"""Jobs per transaction. Their schedules do not fire until it commits."""


@dataclass(frozen=True, slots=True)
class PauseSummary:
    """The result of a bulk change. `held`: locked by another transaction; `more`: further jobs may match."""

    matched: int
    changed: int
    held: int
    more: bool


@dataclass(frozen=True, slots=True)
class Verb:
    """A change of status, with its event and note."""

    status: JobStatus
    event: str
    audited: AuditVerb
    note: str | None

    @property
    def other(self) -> JobStatus:
        """Return the status of the jobs to change."""
        return JobStatus.ACTIVE if self.status is JobStatus.PAUSED else JobStatus.PAUSED


def pausing(note: str | None) -> Verb:
    """Return the verb that pauses."""
    return Verb(JobStatus.PAUSED, "JOB_PAUSED", AuditVerb.JOBS_PAUSE_MATCHING, note)


def resuming(note: str | None) -> Verb:
    """Return the verb that resumes."""
    return Verb(JobStatus.ACTIVE, "JOB_RESUMED", AuditVerb.JOBS_RESUME_MATCHING, note)


async def change_matching(
    scope: Scope, verb: Verb, only: JobFilter, limit: int, *, dry_run: bool = False
) -> PauseSummary:
    """Change matching jobs that have the other status, oldest first, at most `limit`. A dry run only counts them."""
    await require_names(scope, only)
    change = _Change(scope, verb, replace(only, status=verb.other), dry_run)
    done = await change_pages(scope, change, 0, limit, PORTION)
    more = done.next is not None and bool(await change.find(done.next, 1))
    return PauseSummary(done.matched, change.changed, done.held, more)


@dataclass(slots=True)
class _Change:
    scope: Scope
    verb: Verb
    only: JobFilter
    dry_run: bool
    changed: int = 0

    async def find(self, after: int, size: int) -> list[JobRow]:
        async with self.scope.read() as connection:
            return await job_lists.list_jobs(connection, self.scope.tenant_id, after, size, self.only)

    async def change_page(self, page: BulkPage[int, int]) -> int:
        page.rows = [job.id for job in await self.find(page.start, page.size)]
        page.next = page.rows[-1] if len(page.rows) == page.size else None
        if page.rows and not self.dry_run:
            await self._change(page.rows)
        return len(page.rows)

    async def change_row(self, row: int) -> int:
        await self._change([row])
        return 1

    async def _change(self, ids: Sequence[int]) -> None:
        scope, verb = self.scope, self.verb
        async with brief_transaction(scope) as connection:
            held = await jobs.lock_jobs(connection, scope.tenant_id, ids, verb.status)
            joined = await _write(connection, verb, held)
            changed = [job.id for job in held if job.ticks_for is None]
            await jobs.insert_events(connection, scope.tenant_id, changed, verb.event, {"note": verb.note})
            if changed:
                counts = {"jobs": len(changed)}
                await audit.record_write(connection, scope, verb.audited, "", "", {"note": verb.note}, counts)
        for each in joined:
            job_schedule.announce(scope, each, [])
        await move_waiting.move_waiting_now(scope, [job.id for job in held])
        self.changed += len(changed)


async def _write(connection: TenantWrite, verb: Verb, held: Sequence[JobRow]) -> list[JoinedSlots]:
    """Write the jobs in the order of their schedules, so that two requests wait for schedules in the same order."""
    ordered = sorted(held, key=lambda job: (job.schedule_id or 0, job.id))
    if verb.status is JobStatus.PAUSED:
        for job in ordered:
            await pause_held(connection, job, verb.note)
        return []
    now = await nodes.database_time(connection)
    return [(await resume_held(connection, job, verb.note, now))[1] for job in ordered]
