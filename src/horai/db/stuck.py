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
    return {job_id: UsualRun(samples, p95) for job_id, samples, p95 in rows}


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
