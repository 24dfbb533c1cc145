"""Claims and their settlement: one function per statement of sql/claims.sql."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import asyncpg

from horai.core.calls import instance_key, slot_key
from horai.core.settlement import Bury, Complete, Release, Retry
from horai.db.catalog import sql
from horai.db.pool import Connection


@dataclass(frozen=True, slots=True)
class Held:
    """The right to settle one claimed instance: what every guarded write compares."""

    id: int
    job_id: int
    tenant_id: int
    attempt: int
    fence: int
    node: int
    retry_count: int
    claimed_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Claimed:
    """A claimed row, as a dispatcher needs it."""

    held: Held
    shard: int
    lane: int
    due: datetime
    key: str | None
    fire_time: datetime
    execute_time: datetime
    born_for: datetime
    slot: int
    payload: str | None

    @property
    def idempotency_key(self) -> str:
        """Fixed at birth, the same for every attempt."""
        if self.slot >= 0:
            return slot_key(self.held.job_id, self.fire_time, self.slot)
        return instance_key(self.held.job_id, self.born_for, self.held.id)


@dataclass(frozen=True, slots=True)
class Position:
    """Where the scan of one (shard, lane) goes on: after (due, id)."""

    shard: int
    lane: int
    due: datetime
    id: int


@dataclass(frozen=True, slots=True)
class Woken:
    """A row that became claimable: its lane and when."""

    id: int
    lane: int
    due: datetime


def _columns(positions: Sequence[Position]) -> tuple[list[int], list[int], list[datetime], list[int]]:
    return (
        [position.shard for position in positions],
        [position.lane for position in positions],
        [position.due for position in positions],
        [position.id for position in positions],
    )


def _claimed(row: asyncpg.Record) -> Claimed:
    held = Held(row[0], row[1], row[2], row[6], row[7], row[8], row[9], row[16])
    return Claimed(held, row[3], row[4], row[5], row[10], row[11], row[12], row[13], row[14], row[15])


async def claim_due(
    connection: Connection, node: int, claim: int, positions: Sequence[Position], per_lane: int
) -> list[Claimed]:
    """Claims up to `per_lane` due rows of each lane; none when this node has been fenced."""
    rows = await connection.fetch(sql("claim_due"), node, claim, *_columns(positions), per_lane)
    return [_claimed(row) for row in rows]


async def next_due(connection: Connection, positions: Sequence[Position]) -> dict[int, datetime]:
    """When each of the lanes has something claimable next; lanes with nothing are absent."""
    rows = await connection.fetch(sql("next_due"), *_columns(positions))
    return {row["lane"]: row["due"] for row in rows}


def _guards(held: Sequence[Held]) -> tuple[list[int], list[int], list[int], list[int]]:
    return ([h.id for h in held], [h.attempt for h in held], [h.fence for h in held], [h.node for h in held])


async def finish_if_running(connection: Connection, batch: Sequence[tuple[Held, Complete]]) -> set[int]:
    """RUNNING → SUCCESS; the ids that were."""
    rows = await connection.fetch(
        sql("finish_if_running"), *_guards([held for held, _ in batch]), [decision.output for _, decision in batch]
    )
    return {row["id"] for row in rows}


async def fail_if_running(connection: Connection, batch: Sequence[tuple[Held, Retry]]) -> list[Woken]:
    """RUNNING → FAIL; what will be due again, and when."""
    rows = await connection.fetch(
        sql("fail_if_running"),
        *_guards([held for held, _ in batch]),
        [decision.delay for _, decision in batch],
        [decision.code for _, decision in batch],
        [decision.message for _, decision in batch],
    )
    return [Woken(row["id"], row["lane"], row["due"]) for row in rows]


async def bury_if_running(connection: Connection, batch: Sequence[tuple[Held, Bury]]) -> set[int]:
    """RUNNING → DEAD, with a dead letter; the ids that were."""
    rows = await connection.fetch(
        sql("bury_if_running"),
        *_guards([held for held, _ in batch]),
        [decision.code for _, decision in batch],
        [decision.message for _, decision in batch],
        [",".join(decision.tags) for _, decision in batch],
    )
    return {row["id"] for row in rows}


async def release_if_running(connection: Connection, batch: Sequence[tuple[Held, Release]]) -> list[Woken]:
    """RUNNING → INIT; what is claimable again, and when."""
    rows = await connection.fetch(
        sql("release_if_running"),
        *_guards([held for held, _ in batch]),
        [decision.delay for _, decision in batch],
        [decision.postponed for _, decision in batch],
    )
    return [Woken(row["id"], row["lane"], row["due"]) for row in rows]


async def park_if_running(connection: Connection, batch: Sequence[Held]) -> set[int]:
    """RUNNING → INIT in the parking lane, while the job is paused; the ids that were."""
    rows = await connection.fetch(sql("park_if_running"), *_guards(batch))
    return {row["id"] for row in rows}


async def cancel_if_running(connection: Connection, batch: Sequence[Held]) -> set[int]:
    """RUNNING → CANCELLED (JOB_DELETED); the ids that were."""
    rows = await connection.fetch(sql("cancel_if_running"), *_guards(batch))
    return {row["id"] for row in rows}


async def still_running(connection: Connection, batch: Sequence[Held]) -> set[int]:
    """Those that are still their holder's, whoever has them locked."""
    return {row["id"] for row in await connection.fetch(sql("still_running"), *_guards(batch))}


async def lock_instance(connection: Connection, instance_id: int) -> bool:
    """Waits for one live row up to the connection's lock_timeout; False when there is none."""
    return await connection.fetchval(sql("lock_instance"), instance_id) is not None


@dataclass(frozen=True, slots=True)
class LateResult:
    """An outcome that came after its row had moved on."""

    held: Held
    outcome: str
    code: str | None
    message: str | None


async def keep_late(connection: Connection, late: Sequence[LateResult]) -> set[int]:
    """Keeps outcomes that lost their say as late attempts, once each; the ids kept."""
    rows = await connection.fetch(
        sql("keep_late"),
        [result.held.id for result in late],
        [result.held.job_id for result in late],
        [result.held.tenant_id for result in late],
        [result.held.attempt for result in late],
        [result.held.fence for result in late],
        [result.held.node for result in late],
        [result.held.claimed_at for result in late],
        [result.outcome for result in late],
        [result.code for result in late],
        [result.message for result in late],
    )
    return {row["instance_id"] for row in rows}


async def running_by_fence(connection: Connection, tenant_id: int, instance_id: int, fence: int) -> Held | None:
    """The running claim that this fence belongs to."""
    row = await connection.fetchrow(sql("running_by_fence"), tenant_id, instance_id, fence)
    return Held(*row.values()) if row else None


@dataclass(frozen=True, slots=True)
class RunningRow:
    """A RUNNING row found by its owner, and the claim that made it so."""

    held: Held
    claim: int


async def running_of_node(connection: Connection, node: int, after_id: int, limit: int) -> list[RunningRow]:
    """A page of what `node` holds, by id."""
    rows = await connection.fetch(sql("running_of_node"), node, after_id, limit)
    return [
        RunningRow(
            Held(r["id"], r["job_id"], r["tenant_id"], r["attempt"], r["fence"], r["node"], r["retry_count"]),
            r["claim"],
        )
        for r in rows
    ]
