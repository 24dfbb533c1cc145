"""The entities of refresh jobs and the progress of ticks: one function per statement of features/refresh/store.sql."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import asyncpg

from horai.core.bounded_count import COUNTED, BoundedCount
from horai.core.limits import LISTED_PAYLOAD_BYTES
from horai.core.refresh import Due, Status
from horai.db import quotas
from horai.db.catalog import sql
from horai.db.instance_queries import FIRST, LAST, size_of
from horai.db.instances import InsertTarget
from horai.db.pool import AnyRead, AnyWrite, Platform, TenantRead, TenantWrite


@dataclass(frozen=True, slots=True)
class EntityRow:
    """A stored entity. `fresh_at` is the end of its last completed run, even while it runs again."""

    id: int
    job_id: int
    key: str
    status: Status
    start_time: datetime | None
    finish_time: datetime | None
    fresh_at: datetime | None
    remark: str | None
    batch_no: int | None
    instance_id: int | None
    payload: str | None
    payload_size: int | None
    create_time: datetime
    update_time: datetime

    @property
    def aged_from(self) -> datetime:
        """The start of its age: the end of its last run, or the time it was added if it never ran."""
        return self.fresh_at or self.create_time


def _entity(row: asyncpg.Record) -> EntityRow:
    return EntityRow(
        row["id"],
        row["job_id"],
        row["key"],
        Status(row["status"]),
        row["start_time"],
        row["finish_time"],
        row["fresh_at"],
        row["remark"],
        row["batch_no"],
        row["instance_id"],
        row["payload"],
        row.get("payload_size", size_of(row["payload"])),
        row["create_time"],
        row["update_time"],
    )


async def keep_entities(connection: TenantWrite, place: InsertTarget, items: Mapping[str, str | None]) -> int:
    """Add entities to a job that the caller has locked, or update known ones; return how many are new."""
    place.require_sealed(items.values())
    held = (place.job_id, place.tenant_id, place.lane, place.payload, place.is_metered)
    with quotas.translated():
        return await connection.fetchval(sql("keep_entities"), *held, list(items), list(items.values()))


async def drop_entity(connection: TenantWrite, job_id: int, key: str) -> bool:
    """Delete an entity and cancel its waiting run; return whether it existed."""
    return await connection.fetchval(sql("drop_entity"), job_id, key)


async def drop_entities(connection: TenantWrite, job_id: int, keys: Sequence[str]) -> int:
    """Delete entities and cancel their waiting runs; return how many existed."""
    return await connection.fetchval(sql("drop_entities"), job_id, list(keys))


async def clear_entities(connection: AnyWrite, job_id: int, limit: int) -> int:
    """Delete up to `limit` entities of a deleted job; return how many were deleted."""
    return len(await connection.fetch(sql("clear_entities"), job_id, limit))


async def has_entities(connection: AnyRead, job_id: int) -> bool:
    """Return whether a job has entities."""
    return await connection.fetchval(sql("has_entities"), job_id)


@dataclass(frozen=True, slots=True)
class DueSet:
    """The entities that a tick loads.

    These never ran and existed at the tick, or their last run ended at least a window before it.
    """

    job_id: int
    tick: datetime
    window: timedelta

    @property
    def arguments(self) -> tuple[int, datetime, datetime]:
        """The arguments of the statements."""
        return self.job_id, self.tick, self.tick - self.window


@dataclass(frozen=True, slots=True)
class Loaded:
    """An entity that a tick has loaded, and the payload of its run."""

    due: Due
    payload: str | None


async def load_entities(connection: Platform, due: DueSet, limit: int, batch_no: int) -> list[Loaded]:
    """Load up to `limit` due entities for a tick, longest unrefreshed first; no other tick loads them."""
    rows = await connection.fetch(sql("load_entities"), *due.arguments, limit, batch_no)
    return [Loaded(Due(row["key"], row["finish_time"]), row["payload"]) for row in rows]


async def next_due_entity(connection: Platform, due: DueSet) -> Due | None:
    """Return the first entity that a load would take; None if no entity is due."""
    row = await connection.fetchrow(sql("next_due_entity"), *due.arguments)
    return None if row is None else Due(row["key"], row["finish_time"])


async def count_due_entities(connection: Platform, due: DueSet) -> int:
    """Return the number of entities that are due for a tick."""
    return await connection.fetchval(sql("count_due_entities"), *due.arguments)


async def bind_entities(connection: Platform, job_id: int, instances: Mapping[str, int]) -> None:
    """Store the ids of the instances that run loaded entities."""
    await connection.execute(sql("bind_entities"), job_id, list(instances), list(instances.values()))


async def adopt_live(connection: Platform, job_id: int, keys: Sequence[str]) -> None:
    """Bind loaded entities to the live instances that their keys already had."""
    await connection.execute(sql("adopt_live"), job_id, list(keys))


@dataclass(frozen=True, slots=True)
class Finished:
    """The result of a page of running entities: the last id, the number checked, and the number that had ended."""

    last_id: int | None
    looked: int
    ended: int


async def finish_entities(connection: AnyWrite, job_id: int, after_id: int, limit: int) -> Finished:
    """Record the ends of runs for one page of entities; a second call changes nothing."""
    row = await connection.fetchrow(sql("finish_entities"), job_id, after_id, limit)
    assert row is not None  # noqa: S101 — it counts
    return Finished(*row.values())


async def refreshes_waiting(connection: Platform, job_id: int, most: int) -> int:
    """Return the number of runs of entities that are due but not started, up to `most`."""
    return await connection.fetchval(sql("refreshes_waiting"), job_id, most)


async def refreshed_by(connection: Platform, ticks_id: int) -> int | None:
    """Return the id of the refresh job whose ticks this job makes, locked against deletion; None if it is deleted."""
    return await connection.fetchval(sql("refreshed_by"), ticks_id)


@dataclass(frozen=True, slots=True)
class Batch:
    """The progress of a tick. `is_followed`: a later tick of its job has begun."""

    fire_time: datetime
    due: int
    loaded: int
    started_at: datetime
    ended_at: datetime | None
    now: datetime
    is_followed: bool


async def lock_batch(connection: Platform, job_id: int, batch_no: int) -> Batch | None:
    """Lock the progress of a tick until commit and return it; None if the tick has not begun."""
    row = await connection.fetchrow(sql("lock_batch"), job_id, batch_no)
    return None if row is None else Batch(*row.values())


async def begin_batch(connection: Platform, due: DueSet, batch_no: int, count: int) -> None:
    """Record the start of a tick with its number of due entities; a second call changes nothing.

    Also delete the progress of old ticks of the job.
    """
    await connection.execute(sql("begin_batch"), due.job_id, batch_no, due.tick, count)
    await connection.execute(sql("forget_batches"), due.job_id)


async def note_loaded(connection: Platform, job_id: int, batch_no: int, more: int) -> None:
    """Add to the number of entities that a tick has loaded."""
    await connection.execute(sql("note_loaded"), job_id, batch_no, more)


async def end_batch(connection: Platform, job_id: int, batch_no: int) -> None:
    """Record the end of a tick: all its entities have ended, or are left to a later tick."""
    await connection.execute(sql("end_batch"), job_id, batch_no)


@dataclass(frozen=True, slots=True)
class BatchCounts:
    """The states of the entities that a tick loaded."""

    running: int
    succeeded: int
    failed: int


async def batch_counts(connection: AnyRead, job_id: int, batch_no: int) -> BatchCounts:
    """Count the entities of a tick by state, without those that a later tick has loaded."""
    row = await connection.fetchrow(sql("batch_counts"), job_id, batch_no)
    assert row is not None  # noqa: S101 — it counts
    return BatchCounts(*row.values())


@dataclass(frozen=True, slots=True)
class LastBatch:
    """The last tick of a job."""

    batch_no: int
    fire_time: datetime
    due: int
    loaded: int
    started_at: datetime
    ended_at: datetime | None


async def last_batch(connection: TenantRead, job_id: int) -> LastBatch | None:
    """Return the last tick; None if there was none."""
    row = await connection.fetchrow(sql("last_batch"), job_id)
    return None if row is None else LastBatch(*row.values())


@dataclass(frozen=True, slots=True)
class RefreshCounts:
    """The number of entities of a job, in total and by state.

    `due`: a tick would load them now. `overdue`: older than promised. `stale`: the last run ended before the window.
    `failed`: the last run ended within the window and failed.
    """

    entities: int
    never_run: int
    running: int
    due: int
    overdue: int
    stale: int
    failed: int

    @property
    def fresh(self) -> int:
        """The number of entities whose last run ended within the window."""
        return self.entities - self.never_run - self.stale


async def refresh_counts(
    connection: TenantRead, job_id: int, fresh_since: datetime, overdue_before: datetime
) -> RefreshCounts:
    """Count the entities of a job with indexes: about 1 s for a million."""
    row = await connection.fetchrow(sql("refresh_counts"), job_id, fresh_since, overdue_before)
    assert row is not None  # noqa: S101 — it counts
    return RefreshCounts(*row.values())


async def oldest_entities(connection: TenantRead, job_id: int, limit: int) -> list[EntityRow]:
    """Return up to `limit` entities with the greatest age, oldest first."""
    found = [
        _entity(row) for row in await connection.fetch(sql("oldest_entities"), job_id, limit, LISTED_PAYLOAD_BYTES)
    ]
    return sorted(found, key=lambda entity: (entity.aged_from, entity.id))[:limit]


async def entity_by_key(connection: TenantRead, job_id: int, key: str) -> EntityRow | None:
    """Return one entity; None if there is none with this key."""
    row = await connection.fetchrow(sql("entity_by_key"), job_id, key)
    return None if row is None else _entity(row)


@dataclass(frozen=True, slots=True)
class EntityFilter:
    """The filter of a list of entities. `unrefreshed_since`: only entities whose age started before this time."""

    prefix: str | None = None
    status: Status | None = None
    unrefreshed_since: datetime | None = None
    batch_no: int | None = None
    keys: Sequence[str] | None = None
    """Only of these keys; for bulk changes."""

    @property
    def values(self) -> tuple[str | None, int | None, datetime | None, int | None]:
        """Return the values as the statements take them."""
        status = None if self.status is None else int(self.status)
        return self.prefix, status, self.unrefreshed_since, self.batch_no


async def list_entities(
    connection: TenantRead, job_id: int, after_key: str, limit: int, only: EntityFilter
) -> list[EntityRow]:
    """Return a page of entities in order of key."""
    page = (job_id, after_key, limit)
    return [
        _entity(row) for row in await connection.fetch(sql("list_entities"), *page, *only.values, LISTED_PAYLOAD_BYTES)
    ]


async def matching_keys(
    connection: TenantRead, job_id: int, after_key: str, limit: int, only: EntityFilter
) -> list[str]:
    """Return a page of the keys of matching entities in order."""
    rows = await connection.fetch(sql("matching_keys"), job_id, after_key, limit, *only.values, only.keys)
    return [row["key"] for row in rows]


async def count_entities(connection: TenantRead, job_id: int, only: EntityFilter) -> BoundedCount:
    """Count matching entities among the first `COUNTED` by key."""
    row = await connection.fetchrow(sql("count_entities"), job_id, *only.values, COUNTED + 1)
    assert row is not None  # noqa: S101 — an aggregate always has a row
    return BoundedCount.of(row["matched"], row["looked_at"], COUNTED)


@dataclass(frozen=True, slots=True)
class AgeStart:
    """The start of a page by age: after an entity with this `fresh_at` and id, None for the first page.

    Entities that have not run are the stalest: they are listed in the order of their ids.
    """

    position: tuple[datetime | None, int] | None = None
    freshest: bool = False

    @property
    def bounds(self) -> tuple[datetime, int, int]:
        """Return where entities that have run continue (time and id), and where the others do (id)."""
        if self.position is None:
            at, any_id = LAST if self.freshest else FIRST
            return at, any_id, any_id
        fresh_at, id_ = self.position
        return (*FIRST, id_) if fresh_at is None else (fresh_at, id_, LAST[1])


async def list_entities_by_age(
    connection: TenantRead, job_id: int, start: AgeStart, limit: int, only: EntityFilter
) -> list[EntityRow]:
    """Return a page of entities by the end of their last runs, the stalest or the freshest first."""
    statement = sql("list_entities_freshest" if start.freshest else "list_entities_stalest")
    page = (job_id, *start.bounds, limit)
    return [_entity(row) for row in await connection.fetch(statement, *page, *only.values, LISTED_PAYLOAD_BYTES)]
