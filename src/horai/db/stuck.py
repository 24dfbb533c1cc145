"""Runs that may be stuck, and the slots that they hold: one function per statement of sql/stuck.sql."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from horai.core.limits import SHARDS
from horai.core.stuck import LAST_RUNS, LongRun, UsualRun
from horai.db.catalog import sql
from horai.db.pool import AnyRead

ROWS_OF_A_SCAN = 100
"""Rows of a lane in a shard that are read at most."""
LANES = 1_000
"""Lanes of a tenant that are read at most."""
ROWS_BEFORE_A_WAITING_ONE = 1_000
"""Rows of a lane in a shard that are read at most to find the first one that waits: its running ones come first."""
LONG_RUNS = 10_000
FULL_QUEUES = 100


async def long_runs(connection: AnyRead, tenant_id: int, before: datetime) -> list[LongRun]:
    """Return the runs that were claimed before `before`, longest first."""
    rows = await connection.fetch(sql("long_runs"), tenant_id, before, SHARDS, ROWS_OF_A_SCAN, LANES, LONG_RUNS)
    return [LongRun(*row.values()) for row in rows]


async def running_instance(connection: AnyRead, tenant_id: int, instance_id: int, before: datetime) -> LongRun | None:
    """Return an instance that runs since before `before`, or None."""
    row = await connection.fetchrow(sql("running_instance"), tenant_id, instance_id, before)
    return None if row is None else LongRun(*row.values())


async def usual_durations(connection: AnyRead, job_ids: Collection[int], since: datetime) -> dict[int, UsualRun]:
    """Return how long runs of these jobs take, by job; a job without a success since `since` is absent."""
    rows = await connection.fetch(sql("usual_durations"), list(job_ids), since, LAST_RUNS)
    return {job_id: UsualRun(*usual) for job_id, *usual in rows}


@dataclass(frozen=True, slots=True)
class FullQueue:
    """A queue with as many long runs as slots."""

    id: int
    name: str
    slots: int
    holders: tuple[LongRun, ...]


async def full_queues(connection: AnyRead, tenant_id: int, before: datetime, name: str | None) -> list[FullQueue]:
    """Return the queues whose slots runs have held since before `before`; only that of this name unless it is None."""
    found: dict[tuple[int, str, int], list[LongRun]] = {}
    for queue_id, slots, *run in await connection.fetch(sql("long_holders"), tenant_id, before, name, FULL_QUEUES):
        holder = LongRun(*run)
        found.setdefault((queue_id, holder.queue, slots), []).append(holder)
    return [FullQueue(*queue, tuple(holders)) for queue, holders in found.items()]


@dataclass(frozen=True, slots=True)
class QueueAtLimit:
    """A queue without a free slot: since when its oldest due instance waits, how many wait, and its longest holders."""

    id: int
    name: str
    slots: int
    since: datetime
    waiting: int = 0
    holders: tuple[LongRun, ...] = ()


async def queues_at_limit(connection: AnyRead, tenant_id: int, before: datetime) -> list[QueueAtLimit]:
    """Return the queues without a free slot in which an instance waits since before `before`, without load and holders."""
    rows = await connection.fetch(sql("full_queues"), tenant_id, before, FULL_QUEUES, SHARDS, ROWS_BEFORE_A_WAITING_ONE)
    return [QueueAtLimit(*row.values()) for row in rows]


async def longest_holders(connection: AnyRead, queue_ids: Collection[int], each: int) -> dict[int, tuple[LongRun, ...]]:
    """Return up to `each` runs that hold slots of each of the queues, longest first."""
    found: dict[int, tuple[LongRun, ...]] = {}
    for queue_id, *run in await connection.fetch(sql("longest_holders"), list(queue_ids), each):
        found[queue_id] = (*found.get(queue_id, ()), LongRun(*run))
    return found


async def full_among(connection: AnyRead, tenant_id: int, names: Collection[str]) -> dict[str, int]:
    """Return those of the queues that have no free slot: their ids by name."""
    rows = await connection.fetch(sql("full_among"), tenant_id, list(names))
    return {row["name"]: row["id"] for row in rows}


async def nodes_behind(connection: AnyRead, instance_ids: Collection[int]) -> dict[int, int]:
    """Return how many nodes of its workflow run wait for each of the instances; other instances are absent."""
    rows = await connection.fetch(sql("nodes_behind"), list(instance_ids))
    return {row["cause"]: row["nodes"] for row in rows}
