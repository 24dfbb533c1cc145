"""Queues, their permits (rows of queue_slot) and their tokens: one function per statement of sql/queues.sql."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import asyncpg

from horai.core.job import Priority
from horai.core.limits import SHARDS
from horai.core.queue import QueueSettings, Rate
from horai.db.catalog import sql
from horai.db.claims import ClaimedBy, Position, columns
from horai.db.concurrency_keys import KeyedRows, keyed_rows
from horai.db.pool import AnyRead, AnyWrite, Platform, TenantRead, TenantWrite


@dataclass(frozen=True, slots=True)
class QueueRow:
    """A stored queue. Version 0: it was never configured. `running` is None while it has no limit."""

    id: int
    name: str
    settings: QueueSettings
    version: int
    updated_at: datetime
    running: int | None
    is_held: bool = False
    """The platform has paused the tenant."""
    declared_by: str | None = None
    """The application whose code declares it."""


@dataclass(frozen=True, slots=True)
class PoolRow:
    """The permits of a tenant with the quota `concurrency`. `limit` is None after the quota was removed."""

    id: int
    version: int
    limit: int | None
    running: int


LOADS_COUNTED = 2_000
"""Rows of a queue that are read at most to count its load."""


@dataclass(frozen=True, slots=True)
class QueueLoad:
    """The due instances of a queue. `running` is None if it has `LOADS_COUNTED` due rows or more."""

    waiting: int = 0
    running: int | None = 0


@dataclass(frozen=True, slots=True)
class Grant:
    """The number of instances that may start; if none, the time until one may start."""

    granted: int
    wait: timedelta


def _settings(row: asyncpg.Record) -> QueueSettings:
    return QueueSettings(
        None if row["priority"] is None else Priority(row["priority"]),
        row["max_concurrency"],
        None if row["rate_count"] is None else Rate(row["rate_count"], row["rate_per"]),
        row["paused"],
        row["note"],
        row["title"],
        row["description"],
        row["owner"],
    )


def _queue(row: asyncpg.Record) -> QueueRow:
    return QueueRow(
        row["id"],
        row["name"],
        _settings(row),
        row["version"],
        row["updated_at"],
        row["running"],
        row["held"],
        row["declared_by"],
    )


async def make_queue(connection: TenantWrite, tenant_id: int, name: str) -> None:
    """Insert a queue with default settings, unless it exists."""
    await connection.execute(sql("make_queue"), tenant_id, name)


async def lock_queue(connection: TenantWrite, tenant_id: int, name: str) -> QueueRow | None:
    """Lock the queue for update; `running` is not counted."""
    row = await connection.fetchrow(sql("lock_queue"), tenant_id, name)
    return _queue(row) if row else None


async def find_queue(connection: TenantRead, tenant_id: int, name: str) -> QueueRow | None:
    """Return a queue by its name, or None."""
    row = await connection.fetchrow(sql("queue_by_name"), tenant_id, name)
    return _queue(row) if row else None


async def queues_of_application(
    connection: TenantRead, tenant_id: int, names: Sequence[str], application: str | None
) -> list[QueueRow]:
    """Return the queues of these names and those that the application declared, by name; `running` is not counted."""
    rows = await connection.fetch(sql("queues_of_application"), tenant_id, list(names), application)
    return [_queue(row) for row in rows]


async def list_queues(connection: TenantRead, tenant_id: int, after_id: int, limit: int) -> list[QueueRow]:
    """Return a page of queues by id."""
    return [_queue(row) for row in await connection.fetch(sql("list_queues"), tenant_id, after_id, limit)]


async def loads_of_queues(connection: AnyRead, queue_ids: Sequence[int]) -> dict[int, QueueLoad]:
    """Return the waiting and running instances of each queue; a queue without due rows is absent.

    Instances of paused jobs are in the parking lane and count in no queue.
    """
    rows = await connection.fetch(sql("loads_of_queues"), list(queue_ids), SHARDS, LOADS_COUNTED)
    return {
        id_: QueueLoad(waiting, running if waiting + running < LOADS_COUNTED else None)
        for id_, waiting, running in rows
    }


async def find_pool(connection: AnyRead, tenant_id: int) -> PoolRow | None:
    """Return the pool of a tenant; None if it never had the quota `concurrency`."""
    row = await connection.fetchrow(sql("pool_of_tenant"), tenant_id)
    return PoolRow(*row.values()) if row else None


async def set_pool(connection: Platform, tenant_id: int, limit: int | None) -> int:
    """Let at most `limit` instances of a tenant run at once, over all of its queues. Return the id of the pool.

    The caller has locked the tenant and shut its queues: no queue appears and no claim is under way.
    """
    await connection.execute(sql("make_pool"), tenant_id)
    pool = await find_pool(connection, tenant_id)
    assert pool is not None  # noqa: S101 — it was made, and goes only with its tenant
    if pool.limit is None and limit is not None:
        await connection.execute(sql("adopt_running_of_tenant"), tenant_id, pool.id)
    await lock_slots(connection, pool.id)
    await arrange_slots(connection, pool.id, limit, pool.version + 1)
    await connection.execute(sql("join_pool"), tenant_id, None if limit is None else pool.id)
    await connection.execute(sql("write_pool"), pool.id, limit)
    return pool.id


async def shut_queue(connection: TenantWrite, queue_id: int) -> None:
    """Wait for claims in progress, and block claims without a permit until the transaction ends."""
    await connection.execute(sql("shut_queue"), queue_id)


async def adopt_running(connection: TenantWrite, queue_id: int) -> None:
    """Add a permit for each RUNNING row of a queue that had no limit until now."""
    await connection.execute(sql("adopt_running"), queue_id, SHARDS)


async def lock_slots(connection: AnyWrite, queue_id: int) -> int:
    """Lock all permits, waiting for claims that take some; return their number."""
    return await connection.fetchval(sql("lock_slots"), queue_id)


async def arrange_slots(connection: AnyWrite, queue_id: int, limit: int | None, version: int) -> None:
    """Adjust the permits to the limit.

    The caller has locked the queue and its permits; `version` is its next version.
    """
    await connection.execute(sql("arrange_slots"), queue_id, limit, version)


async def write_queue(
    connection: TenantWrite, queue_id: int, settings: QueueSettings, declared_by: str | None = None
) -> QueueRow:
    """Update a queue that the caller has locked, and increase its version. Without `declared_by` its owner stays."""
    row = await connection.fetchrow(
        sql("write_queue"),
        queue_id,
        None if settings.priority is None else int(settings.priority),
        settings.max_concurrency,
        settings.rate.count if settings.rate else None,
        settings.rate.per if settings.rate else None,
        settings.paused,
        settings.note,
        settings.title,
        settings.description,
        settings.owner,
        declared_by,
    )
    assert row is not None  # noqa: S101 — the caller has locked the row
    return _queue(row)


async def relane_queue(connection: TenantWrite, queue_id: int, priority: Priority) -> None:
    """Set the priority of the queue's jobs that set none."""
    await connection.execute(sql("relane_queue"), queue_id, int(priority))


async def claim_limited(
    connection: Platform,
    by: ClaimedBy,
    queue_id: int,
    positions: Sequence[Position],
    limit: int,
    urgencies: Sequence[int] | None = None,
) -> KeyedRows:
    """Claim up to `limit` due rows of a limited queue's lanes, each with its permits; none while it is paused or full.

    The most urgent rows come first (0 before 3), by the urgency of each position; without `urgencies`, all are equal.

    A row takes a permit of the queue if the queue has a limit, and one of the pool if the tenant has `concurrency`. A row
    whose concurrency key has no place takes none.
    """
    given = urgencies or [0] * len(positions)
    rows = await connection.fetch(sql("claim_limited"), by.node, by.claim, queue_id, *columns(positions), limit, given)
    return keyed_rows(rows, by, has_slot=True)


async def free_slots(connection: Platform, ended: Sequence[tuple[int, int]], node: int) -> set[int]:
    """Free the permits of claims of `node`, by (instance id, fence); return the queues that may have room again."""
    rows = await connection.fetch(
        sql("free_slots"), [instance_id for instance_id, _ in ended], [fence for _, fence in ended], node
    )
    return {row["queue_id"] for row in rows}


async def free_slots_of_node(connection: Platform, incarnation: int) -> set[int]:
    """Free the permits of a dead node; return the queues that may have room again."""
    held = [(instance_id, fence) for _, instance_id, fence in await held_slots(connection, incarnation)]
    return await free_slots(connection, held, incarnation) if held else set()


async def free_slots_adrift(connection: Platform) -> set[int]:
    """Free the permits of nodes whose rescue is complete; return the queues that may have room again."""
    adrift: dict[int, list[tuple[int, int]]] = {}
    for node, instance_id, fence in await connection.fetch(sql("slots_adrift")):
        adrift.setdefault(node, []).append((instance_id, fence))
    freed: set[int] = set()
    for node, ended in adrift.items():
        freed |= await free_slots(connection, ended, node)
    return freed


async def held_slots(connection: Platform, node: int) -> list[tuple[int, int, int]]:
    """Return the permits that `node` holds in the table, as (queue id, instance id, fence)."""
    rows = await connection.fetch(sql("held_slots"), node)
    return [(row["queue_id"], row["instance_id"], row["fence"]) for row in rows]


async def grant(connection: Platform, queue_id: int, wanted: int) -> Grant:
    """Take up to `wanted` tokens of the queue's rate; grant all if the queue has no rate."""
    row = await connection.fetchrow(sql("grant_tokens"), queue_id, wanted)
    if row is None:
        return Grant(wanted, timedelta(0))
    rate = Rate(row["rate_count"], row["rate_per"])
    return Grant(row["granted"], timedelta(0) if row["granted"] else rate.wait(row["tokens"]))


async def return_tokens(connection: Platform, queue_id: int, unused: int) -> None:
    """Return tokens that were granted and not used."""
    await connection.execute(sql("return_tokens"), queue_id, unused)
