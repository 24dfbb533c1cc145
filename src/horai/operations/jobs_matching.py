"""Bulk trigger and deletion of the jobs that match a filter: see operations/bulk.py.

A page has one job, so that a job that cannot be changed does not undo the change of another one. Triggered jobs match again: a request
returns where it stopped, and the next one continues there. So that a repeated request is told from a new one, both verbs need an
Idempotency-Key, and all pages of a request are savepoints of its one transaction.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime

from horai.core.errors import AlreadyFinal, Conflict, HoraiError, Invalid, NotFound
from horai.db import job_lists, jobs, nodes
from horai.db.job_lists import JobFilter
from horai.db.jobs import JobRow
from horai.operations import instances
from horai.operations import jobs as one_job
from horai.operations.bulk import PATIENCE, BulkPage, brief_transaction, change_pages
from horai.operations.scope import Scope, job_not_found
from horai.operations.spread_starts import Spread, Starts

COUNTED_AT_ONCE = 500
REASONS = 20
"""Skipped jobs that an answer names."""
SKIPS = (AlreadyFinal, Conflict, Invalid, NotFound)
"""The refusals of one job; any other error ends the request."""


@dataclass(frozen=True, slots=True)
class JobWish:
    """The jobs to change: those that match, with ids after `after`, at most `limit`."""

    only: JobFilter
    limit: int
    after: int = 0


@dataclass(frozen=True, slots=True)
class SkippedJob:
    """A job that matched and was left as it is, and the refusal."""

    job: str
    refusal: HoraiError


@dataclass(frozen=True, slots=True)
class JobBulkSummary:
    """The result. The next request continues after the job `reached`; None if no further job matches."""

    matched: int
    changed: int
    skipped: int
    held: int
    reached: int | None
    reasons: tuple[SkippedJob, ...] = ()
    next_start: datetime | None = None


async def trigger_matching(
    scope: Scope, wish: JobWish, payload: str | None, spread: Spread | None, *, dry_run: bool = False
) -> JobBulkSummary:
    """Run each matching job once, oldest job first. A dry run only counts them.

    Instances of paused jobs wait. `spread` gives each instance its time to start; a job that is skipped takes none.
    """
    async with scope.read() as connection:
        starts = Starts(await nodes.database_time(connection), spread)

    async def trigger(job: JobRow) -> None:
        async with brief_transaction(scope) as connection:
            made = await instances.trigger_in(connection, scope, str(job.id), payload, starts.next_at)
        starts.made += 1
        instances.publish_wakes(scope, [made])

    return await _change(_JobChange(scope, wish.only, trigger, dry_run), wish, starts)


async def delete_matching(scope: Scope, wish: JobWish, *, dry_run: bool = False) -> JobBulkSummary:
    """Delete the matching jobs, oldest first. A job that a workflow or another feature needs is skipped."""

    async def delete(job: JobRow) -> None:
        await one_job.delete_job(scope, str(job.id), patience=PATIENCE)

    return await _change(_JobChange(scope, wish.only, delete, dry_run), wish)


async def _change(change: "_JobChange", wish: JobWish, starts: Starts | None = None) -> JobBulkSummary:
    if wish.after == 0:  # later requests of a deletion no longer find the names of earlier ones
        await require_names(change.scope, wish.only)
    done = await change_pages(change.scope, change, wish.after, wish.limit, COUNTED_AT_ONCE if change.dry_run else 1)
    reached = done.next if done.next is not None and await change.find(done.next, 1) else None
    next_start = None if starts is None else starts.next_at
    return JobBulkSummary(
        done.matched, change.changed, change.skipped, done.held, reached, tuple(change.reasons), next_start
    )


async def require_names(scope: Scope, only: JobFilter) -> None:
    """Raise `NotFound` if a job that is given by name does not exist."""
    if only.names is None:
        return
    async with scope.read() as connection:
        known = await jobs.jobs_by_name(connection, scope.tenant_id, only.names)
    for name in only.names:
        if name not in known:
            raise job_not_found(name)


@dataclass(slots=True)
class _JobChange:
    scope: Scope
    only: JobFilter
    change: Callable[[JobRow], Awaitable[None]]
    dry_run: bool
    changed: int = 0
    skipped: int = 0
    reasons: list[SkippedJob] = field(default_factory=list[SkippedJob])

    async def find(self, after: int, size: int) -> list[JobRow]:
        async with self.scope.read() as connection:
            return await job_lists.list_jobs(connection, self.scope.tenant_id, after, size, self.only)

    async def change_page(self, page: BulkPage[JobRow, int]) -> int:
        page.rows = await self.find(page.start, page.size)
        page.next = page.rows[-1].id if len(page.rows) == page.size else None
        if not self.dry_run:
            for job in page.rows:
                await self.change_row(job)
        return len(page.rows)

    async def change_row(self, row: JobRow) -> int:
        try:
            await self.change(row)
        except SKIPS as error:
            self.skipped += 1
            if len(self.reasons) < REASONS:
                self.reasons.append(SkippedJob(row.name, error))
        else:
            self.changed += 1
        return 1
