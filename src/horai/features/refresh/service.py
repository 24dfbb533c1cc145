"""Operations on the entities of a refresh job: add, remove, list, and report their freshness."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from horai.core.bounded_count import BoundedCount
from horai.core.errors import Invalid, NotFound
from horai.core.job import Definition, JobStatus
from horai.core.refresh import RefreshRule
from horai.core.timing import Timing
from horai.db import jobs, nodes
from horai.db.calendars import definition_of
from horai.db.instances import target_of
from horai.db.jobs import JobRow
from horai.db.pool import Plans, TenantRead, retrying
from horai.features.refresh import store as entities
from horai.features.refresh.remove_matching import RemovalSummary, remove_matching
from horai.features.refresh.sealed_entities import readable_entities
from horai.features.refresh.store import AgeStart, BatchCounts, EntityFilter, EntityRow, LastBatch, RefreshCounts
from horai.features.refresh.tick import finish_some, period_after
from horai.operations.new_payloads import sealed_payloads
from horai.operations.scope import Scope, job_not_found, require_job
from horai.text import Hint, Refused

PAGES_AT_ONCE = 10
"""The number of pages of ended runs that are recorded before a response: 10,000 runs; ticks record the rest."""
OLDEST = 5


async def add_entities(scope: Scope, reference: str, items: Mapping[str, str | None]) -> int:
    """Add entities with their payloads, all or none; return how many are new. Known entities get the new payload."""

    async def attempt() -> int:
        async with scope.write() as connection:
            found = await _require_refresh(connection, scope, reference)
            job = await jobs.share_job(connection, found.id)
            if job is None:
                raise job_not_found(reference)
            place = target_of(job)
            stored = await sealed_payloads(connection, scope, place, list(items.values()))
            return await entities.keep_entities(connection, place, dict(zip(items, stored, strict=True)))

    return await retrying(attempt)


async def remove_entity(scope: Scope, reference: str, key: str) -> bool:
    """Remove an entity: its waiting run is cancelled, a current run finishes. Return whether it existed."""

    async def attempt() -> bool:
        async with scope.write() as connection:
            job = await _require_refresh(connection, scope, reference)
            return await entities.drop_entity(connection, job.id, key)

    return await retrying(attempt)


async def read_entity(scope: Scope, reference: str, key: str) -> EntityRow:
    """Return one entity, after recording ended runs. Raises `NotFound` if there is none."""
    async with scope.write(Plans.FRESH, autocommit=True) as connection:
        job = await _require_refresh(connection, scope, reference)
        await finish_some(connection, job.id, PAGES_AT_ONCE)
        found = await entities.entity_by_key(connection, job.id, key)
        if found is None:
            raise no_entity(reference, key)
        return (await readable_entities(connection, scope, job, [found]))[0]


def no_entity(reference: str, key: str) -> NotFound:
    """Return the error for a key that is not an entity of the job."""
    return NotFound(
        Refused.NO_ENTITY(job=reference[:128], key=key[:128]), Hint.LISTED_AT(path="/api/v1/jobs/{job}/entities")
    )


@dataclass(frozen=True, slots=True)
class EntityPage:
    """A page request: up to `limit` entities after the key `after`, optionally only those older than an age.

    With an `AgeStart` in place of the key, the list is in the order of age.
    """

    after: str | AgeStart = ""
    limit: int = 100
    only: EntityFilter = field(default_factory=EntityFilter)
    older_than: timedelta | None = None


async def list_entities(scope: Scope, reference: str, page: EntityPage) -> Sequence[EntityRow]:
    """Return a page of entities in order of key or of age, after recording ended runs."""
    async with scope.write(Plans.FRESH, autocommit=True) as connection:
        job = await _require_refresh(connection, scope, reference)
        await finish_some(connection, job.id, PAGES_AT_ONCE)
        only = await _aged(connection, page.only, page.older_than)
        if isinstance(page.after, AgeStart):
            rows = await entities.list_entities_by_age(connection, job.id, page.after, page.limit, only)
        else:
            rows = await entities.list_entities(connection, job.id, page.after, page.limit, only)
        return await readable_entities(connection, scope, job, rows)


async def remove_entities(scope: Scope, reference: str, wanted: EntityPage, *, dry_run: bool = False) -> RemovalSummary:
    """Remove the entities that match, after recording ended runs. A dry run only counts them."""
    async with scope.write(Plans.FRESH, autocommit=True) as connection:
        job = await _require_refresh(connection, scope, reference)
        await finish_some(connection, job.id, PAGES_AT_ONCE)
        only = await _aged(connection, wanted.only, wanted.older_than)
    return await remove_matching(scope, job, only, wanted.limit, dry_run=dry_run)


async def count_entities(
    scope: Scope, reference: str, only: EntityFilter, older_than: timedelta | None
) -> BoundedCount:
    """Count matching entities, after recording ended runs."""
    async with scope.write(Plans.FRESH, autocommit=True) as connection:
        job = await _require_refresh(connection, scope, reference)
        await finish_some(connection, job.id, PAGES_AT_ONCE)
        return await entities.count_entities(connection, job.id, await _aged(connection, only, older_than))


async def _aged(connection: TenantRead, only: EntityFilter, older_than: timedelta | None) -> EntityFilter:
    """Return the filter limited to entities whose age is greater than `older_than` by the clock of the database."""
    if older_than is None:
        return only
    return replace(only, unrefreshed_since=await nodes.database_time(connection) - older_than)


@dataclass(frozen=True, slots=True)
class Freshness:
    """The state of a refresh job at one moment."""

    job: JobRow
    refresh: RefreshRule
    now: datetime
    counts: RefreshCounts
    oldest: Sequence[EntityRow]
    last_tick: LastBatch | None
    progress: BatchCounts | None
    next_tick: datetime | None

    @property
    def coverage(self) -> float | None:
        """The share of entities whose last run ended within the window; None without entities."""
        return self.counts.fresh / self.counts.entities if self.counts.entities else None

    @property
    def max_age(self) -> timedelta | None:
        """The age of the oldest entity, since its last run ended or since it was added; None without entities."""
        return max(self.now - self.oldest[0].aged_from, timedelta(0)) if self.oldest else None


async def freshness(scope: Scope, reference: str) -> Freshness:
    """Return the freshness of a refresh job, counted now: each count is one index scan."""
    async with scope.write(Plans.FRESH, autocommit=True) as connection:
        job = await _require_refresh(connection, scope, reference)
        definition = await definition_of(connection, job)
        assert definition.refresh is not None  # noqa: S101 — it was required
        await finish_some(connection, job.id, PAGES_AT_ONCE)
        now = await nodes.database_time(connection)
        last = await entities.last_batch(connection, job.id)
        return Freshness(
            job,
            definition.refresh,
            now,
            await _counts(connection, job, definition, now),
            await readable_entities(connection, scope, job, await entities.oldest_entities(connection, job.id, OLDEST)),
            last,
            None if last is None else await entities.batch_counts(connection, job.id, last.batch_no),
            _next_tick(job, definition.timing, now),
        )


async def _counts(connection: TenantRead, job: JobRow, definition: Definition, now: datetime) -> RefreshCounts:
    """Count the entities. An entity is overdue if it is older than window + tick; Horai promises that none is."""
    assert definition.refresh is not None  # noqa: S101 — it was required
    window = definition.refresh.window
    period = period_after(definition.timing, definition.timing.next_after(now) or now, window)
    return await entities.refresh_counts(connection, job.id, now - window, now - window - period)


def _next_tick(job: JobRow, timing: Timing, now: datetime) -> datetime | None:
    return None if job.status is JobStatus.PAUSED else timing.next_after(now)


async def _require_refresh(connection: TenantRead, scope: Scope, reference: str) -> JobRow:
    job = await require_job(connection, scope, reference)
    if job.document.get("refresh") is None:
        raise Invalid(
            Refused.NO_REFRESH_JOB(job=job.name),
            Hint.REFRESH_JOB_HAS(),
        )
    return job
