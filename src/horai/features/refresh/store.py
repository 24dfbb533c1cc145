"""The entities of refresh jobs, and how far their ticks have come: one function per statement of sql/entities.sql."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import asyncpg

from horai.core.refresh import Due, Status
from horai.core.settings import LISTED_PAYLOAD_BYTES
from horai.db.catalog import sql
from horai.db.instance_queries import size_of
from horai.db.instances import InsertTarget
from horai.db.pool import Connection


@dataclass(frozen=True, slots=True)
class EntityRow:
    """An entity as it is stored. `fresh_at` is the end of its last run, also while it runs again."""

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
        """From when on its age counts: that of one that never ran, from when it was added."""
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


async def keep_entities(connection: Connection, place: InsertTarget, items: Mapping[str, str | None]) -> int:
    """Adds entities to a job that the caller holds, or gives known ones their payload; how many are new."""
    given = (place.job_id, place.tenant_id, place.lane, place.payload, list(items), list(items.values()))
    return await connection.fetchval(sql("keep_entities"), *given)


async def drop_entity(connection: Connection, job_id: int, key: str) -> bool:
    """Takes an entity away and cancels what waits for it; whether it was one."""
    return await connection.fetchval(sql("drop_entity"), job_id, key)


async def clear_entities(connection: Connection, job_id: int, limit: int) -> int:
    """Takes some of a deleted job's entities away; how many."""
    return len(await connection.fetch(sql("clear_entities"), job_id, limit))


async def has_entities(connection: Connection, job_id: int) -> bool:
    """Whether a job has any."""
    return await connection.fetchval(sql("has_entities"), job_id)


@dataclass(frozen=True, slots=True)
class DueSet:
    """What a tick of a job is after: what never ran and was there when it came, and what ended a window before."""

    job_id: int
    tick: datetime
    window: timedelta

    @property
    def arguments(self) -> tuple[int, datetime, datetime]:
        """As the statements take it."""
        return self.job_id, self.tick, self.tick - self.window


@dataclass(frozen=True, slots=True)
class Loaded:
    """An entity that a tick has taken, and what its run gets."""

    due: Due
    payload: str | None


async def load_entities(connection: Connection, due: DueSet, limit: int, batch_no: int) -> list[Loaded]:
    """Takes up to `limit` due entities for a tick, longest unrefreshed first; no other tick takes them."""
    rows = await connection.fetch(sql("load_entities"), *due.arguments, limit, batch_no)
    return [Loaded(Due(row["key"], row["finish_time"]), row["payload"]) for row in rows]


async def next_due_entity(connection: Connection, due: DueSet) -> Due | None:
    """The first that a load would take."""
    row = await connection.fetchrow(sql("next_due_entity"), *due.arguments)
    return None if row is None else Due(row["key"], row["finish_time"])


async def count_due_entities(connection: Connection, due: DueSet) -> int:
    """How many a tick has before it."""
    return await connection.fetchval(sql("count_due_entities"), *due.arguments)


async def bind_entities(connection: Connection, job_id: int, instances: Mapping[str, int]) -> None:
    """Remembers by which instances loaded entities are run."""
    await connection.execute(sql("bind_entities"), job_id, list(instances), list(instances.values()))


async def adopt_live(connection: Connection, job_id: int, keys: Sequence[str]) -> None:
    """Has loaded entities wait for the live instances that their keys had already."""
    await connection.execute(sql("adopt_live"), job_id, list(keys))


@dataclass(frozen=True, slots=True)
class Finished:
    """A page of running entities that was looked at: its last id, how many they were, and how many had ended."""

    last_id: int | None
    looked: int
    ended: int


async def finish_entities(connection: Connection, job_id: int, after_id: int, limit: int) -> Finished:
    """Writes down how runs ended, a page at a time; asking again changes nothing."""
    row = await connection.fetchrow(sql("finish_entities"), job_id, after_id, limit)
    assert row is not None  # noqa: S101 — it counts
    return Finished(*row.values())


async def refreshes_waiting(connection: Connection, job_id: int, most: int) -> int:
    """How many runs of a job's entities are due and not begun, up to `most`."""
    return await connection.fetchval(sql("refreshes_waiting"), job_id, most)


async def refreshed_by(connection: Connection, ticks_id: int) -> int | None:
    """The refresh job that a job makes the ticks of, held while instances are added to it; None once it is deleted."""
    return await connection.fetchval(sql("refreshed_by"), ticks_id)


@dataclass(frozen=True, slots=True)
class Batch:
    """How far a tick has come. `is_followed`: a later one of its job has begun."""

    fire_time: datetime
    due: int
    loaded: int
    started_at: datetime
    ended_at: datetime | None
    now: datetime
    is_followed: bool


async def lock_batch(connection: Connection, job_id: int, batch_no: int) -> Batch | None:
    """How far a tick has come, held until commit; None before it has begun."""
    row = await connection.fetchrow(sql("lock_batch"), job_id, batch_no)
    return None if row is None else Batch(*row.values())


async def begin_batch(connection: Connection, due: DueSet, batch_no: int, count: int) -> None:
    """A tick has begun with so many due; beginning again changes nothing."""
    await connection.execute(sql("begin_batch"), due.job_id, batch_no, due.tick, count)
    await connection.execute(sql("forget_batches"), due.job_id)


async def note_loaded(connection: Connection, job_id: int, batch_no: int, more: int) -> None:
    """A tick has loaded more."""
    await connection.execute(sql("note_loaded"), job_id, batch_no, more)


async def end_batch(connection: Connection, job_id: int, batch_no: int) -> None:
    """All that a tick has loaded has ended, or is left to a later one."""
    await connection.execute(sql("end_batch"), job_id, batch_no)


@dataclass(frozen=True, slots=True)
class BatchCounts:
    """What has become of what a tick loaded."""

    running: int
    succeeded: int
    failed: int


async def batch_counts(connection: Connection, job_id: int, batch_no: int) -> BatchCounts:
    """What has become of the entities of a tick that no later one has loaded."""
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


async def last_batch(connection: Connection, job_id: int) -> LastBatch | None:
    """The tick that came last; None while there was none."""
    row = await connection.fetchrow(sql("last_batch"), job_id)
    return None if row is None else LastBatch(*row.values())


@dataclass(frozen=True, slots=True)
class RefreshCounts:
    """How many entities a job has, and how they are.

    `due`: what a tick would load. `overdue`: older than is promised. `stale`: run to an end, but not within the window.
    `failed`: run to an end within it, and failed.
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
        """Run to an end within the window."""
        return self.entities - self.never_run - self.stale


async def refresh_counts(
    connection: Connection, job_id: int, fresh_since: datetime, overdue_before: datetime
) -> RefreshCounts:
    """Counted by indexes: of a million in about a second."""
    row = await connection.fetchrow(sql("refresh_counts"), job_id, fresh_since, overdue_before)
    assert row is not None  # noqa: S101 — it counts
    return RefreshCounts(*row.values())


async def oldest_entities(connection: Connection, job_id: int, limit: int) -> list[EntityRow]:
    """The entities of the greatest age, oldest first."""
    found = [
        _entity(row) for row in await connection.fetch(sql("oldest_entities"), job_id, limit, LISTED_PAYLOAD_BYTES)
    ]
    return sorted(found, key=lambda entity: (entity.aged_from, entity.id))[:limit]


async def entity_by_key(connection: Connection, job_id: int, key: str) -> EntityRow | None:
    """One entity."""
    row = await connection.fetchrow(sql("entity_by_key"), job_id, key)
    return None if row is None else _entity(row)


@dataclass(frozen=True, slots=True)
class EntityFilter:
    """What a list of entities is narrowed to. `unrefreshed_since`: whose age counts from before."""

    prefix: str | None = None
    status: Status | None = None
    unrefreshed_since: datetime | None = None
    batch_no: int | None = None


async def list_entities(
    connection: Connection, job_id: int, after_key: str, limit: int, only: EntityFilter
) -> list[EntityRow]:
    """A page of entities by key."""
    status = None if only.status is None else int(only.status)
    narrowed = (only.prefix, status, only.unrefreshed_since, only.batch_no)
    page = (job_id, after_key, limit)
    return [
        _entity(row) for row in await connection.fetch(sql("list_entities"), *page, *narrowed, LISTED_PAYLOAD_BYTES)
    ]
