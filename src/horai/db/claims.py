"""Claims and their settlement: one function per statement of sql/claims.sql."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

import asyncpg

from horai.core.fingerprints import fingerprint_of
from horai.core.outcome import Bury, Complete, Release, RetryAt
from horai.core.settings import SHARDS
from horai.db.catalog import sql
from horai.db.pool import Connection


class Claim(NamedTuple):
    """The right to settle one claimed instance: what every guarded write compares."""

    id: int
    job_id: int
    attempt: int
    fence: int
    node: int
    retry_count: int
    claimed_at: datetime | None = None
    has_slot: bool = False
    """Whether it holds a slot of a limited queue, which is freed when its call has ended."""
    lost: int = 0
    """How many attempts were lost with their nodes before this one."""


class ClaimedRow(NamedTuple):
    """A claimed row, as a dispatcher needs it."""

    held: Claim
    lane: int
    due: datetime
    slot: int
    key: str | None
    fire_time: datetime
    execute_time: datetime
    born_for: datetime
    payload: str | None
    has_large_payload: bool | None

    @property
    def shard(self) -> int:
        """Where it lies."""
        return self.held.id % SHARDS


class Position(NamedTuple):
    """Where the scan of one (shard, lane) goes on: after (due, id)."""

    shard: int
    lane: int
    due: datetime
    id: int


@dataclass(frozen=True, slots=True)
class Claimable:
    """A row that became claimable: its lane and when."""

    id: int
    lane: int
    due: datetime


def columns(positions: Sequence[Position]) -> tuple[list[int], list[int], list[datetime], list[int]]:
    """As the statements take them."""
    return (
        [position.shard for position in positions],
        [position.lane for position in positions],
        [position.due for position in positions],
        [position.id for position in positions],
    )


@dataclass(frozen=True, slots=True)
class ClaimedBy:
    """Who claims: the node's incarnation, the number of the claim, and the database's time as the node knows it."""

    node: int
    claim: int
    at: datetime


def claimed_rows(rows: Sequence[asyncpg.Record], by: ClaimedBy, *, has_slot: bool = False) -> list[ClaimedRow]:
    """What a claiming statement returned.

    The hottest code there is: `tuple.__new__` makes a named tuple in half the time that its own constructor takes.
    """
    node, at = by.node, by.at
    new: Any = getattr(tuple, "__new__")  # noqa: B009 — typed, it would be a tuple of unknowns
    return [
        new(
            ClaimedRow,
            (
                new(Claim, (id_, job_id, attempt, fence, node, retry_count, at, has_slot, lost)),
                lane,
                due,
                slot,
                key,
                fire_time,
                execute_time or fire_time,
                born_for or fire_time,
                payload,
                is_large,
            ),
        )
        for (
            id_, job_id, lane, due, attempt, fence, retry_count, slot, key, fire_time, execute_time, born_for, payload, is_large, lost
        ) in rows
    ]  # fmt: skip


async def claim_due(
    connection: Connection, by: ClaimedBy, positions: Sequence[Position], rows: Sequence[int]
) -> list[ClaimedRow]:
    """Claims up to `rows` due rows of each scan; none when this node has been fenced."""
    found = await connection.fetch(sql("claim_due"), by.node, by.claim, *columns(positions), rows)
    return claimed_rows(found, by)


async def payload_of(connection: Connection, held: Claim) -> str | None:
    """The payload of a claim that was too large to travel with it. Raises LookupError when the claim is over."""
    row = await connection.fetchrow(sql("payload_of"), held.id, held.fence, held.node)
    if row is None:
        raise LookupError(f"instance {held.id} is no longer held by fence {held.fence}")
    return row["payload"]


async def next_due(connection: Connection, positions: Sequence[Position]) -> list[tuple[int, int, datetime]]:
    """When each of the scans has something claimable next, as (shard, lane, due); those with nothing are absent."""
    return [(shard, lane, due) for shard, lane, due in await connection.fetch(sql("next_due"), *columns(positions))]


class LeftBehind(NamedTuple):
    """A row behind a cursor: claimable (`claim` is None), or running for this node."""

    shard: int
    lane: int
    due: datetime
    held: Claim
    claim: int | None


async def left_behind(
    connection: Connection, positions: Sequence[Position], node: int | None, limit: int
) -> list[LeftBehind]:
    """A page per scan of what is due and not claimed, and with `node` of what runs for it."""
    rows = await connection.fetch(sql("left_behind"), *columns(positions), node, limit)
    return [
        LeftBehind(
            row["shard"],
            row["lane"],
            row["due"],
            Claim(row["id"], row["job_id"], row["attempt"], row["fence"], row["node"] or 0, row["retry_count"]),
            row["claim"],
        )
        for row in rows
    ]


def _guards(held: Sequence[Claim]) -> tuple[list[int], list[int], list[int], list[int]]:
    return ([h.id for h in held], [h.attempt for h in held], [h.fence for h in held], [h.node for h in held])


def _array(numbers: Iterable[int]) -> str:
    """An array as PostgreSQL writes it."""
    return "{" + ",".join(map(str, numbers)) + "}"


async def finish_if_running(connection: Connection, node: int, batch: Sequence[tuple[Claim, Complete]]) -> set[int]:
    """RUNNING → SUCCESS for claims of one node, in the order of their ids; the ids that were.

    Waits for locked rows up to lock_timeout. Rows are locked in the order given: another order may deadlock.
    """
    outputs = [decision.output for _, decision in batch]
    rows = await connection.fetch(
        sql("finish_if_running"),
        _array(held.id for held, _ in batch),
        _array(held.attempt for held, _ in batch),
        _array(held.fence for held, _ in batch),
        node,
        outputs if any(outputs) else [],  # shorter than the others means null
    )
    return {row[0] for row in rows}


async def finish_if_free(connection: Connection, batch: Sequence[tuple[Claim, Complete]]) -> set[int]:
    """RUNNING → SUCCESS, passing over rows that somebody holds; the ids that were."""
    rows = await connection.fetch(
        sql("finish_if_free"), *_guards([held for held, _ in batch]), [decision.output for _, decision in batch]
    )
    return {row["id"] for row in rows}


async def fail_if_running(connection: Connection, batch: Sequence[tuple[Claim, RetryAt]]) -> list[Claimable]:
    """RUNNING → FAIL; what will be due again, and when."""
    rows = await connection.fetch(
        sql("fail_if_running"),
        *_guards([held for held, _ in batch]),
        [decision.delay for _, decision in batch],
        [decision.code for _, decision in batch],
        [decision.message for _, decision in batch],
        [decision.is_loss for _, decision in batch],
    )
    return [Claimable(row["id"], row["lane"], row["due"]) for row in rows]


async def bury_if_running(connection: Connection, batch: Sequence[tuple[Claim, Bury]]) -> set[int]:
    """RUNNING → DEAD, with a dead letter; the ids that were."""
    rows = await connection.fetch(
        sql("bury_if_running"),
        *_guards([held for held, _ in batch]),
        [decision.code for _, decision in batch],
        [decision.message for _, decision in batch],
        [",".join(decision.tags) for _, decision in batch],
        [fingerprint_of(held.job_id, decision.code, decision.message) for held, decision in batch],
        [decision.is_loss for _, decision in batch],
    )
    return {row["id"] for row in rows}


async def release_if_running(connection: Connection, batch: Sequence[tuple[Claim, Release]]) -> list[Claimable]:
    """RUNNING → INIT; what is claimable again, and when."""
    rows = await connection.fetch(
        sql("release_if_running"),
        *_guards([held for held, _ in batch]),
        [decision.delay for _, decision in batch],
        [decision.postponed for _, decision in batch],
        [decision.is_quiet for _, decision in batch],
    )
    return [Claimable(row["id"], row["lane"], row["due"]) for row in rows]


async def park_if_running(connection: Connection, batch: Sequence[Claim]) -> set[int]:
    """RUNNING → INIT in the parking lane, while the job is paused; the ids that were."""
    rows = await connection.fetch(sql("park_if_running"), *_guards(batch))
    return {row["id"] for row in rows}


async def cancel_if_running(connection: Connection, batch: Sequence[Claim]) -> set[int]:
    """RUNNING → CANCELLED (JOB_DELETED); the ids that were."""
    rows = await connection.fetch(sql("cancel_if_running"), *_guards(batch))
    return {row["id"] for row in rows}


async def still_running(connection: Connection, batch: Sequence[Claim]) -> set[int]:
    """Those that are still their holder's, whoever has them locked."""
    return {row["id"] for row in await connection.fetch(sql("still_running"), *_guards(batch))}


async def ended_claims(connection: Connection, batch: Sequence[Claim]) -> set[tuple[int, int]]:
    """Those that are over, as (instance id, fence): nobody waits for their outcomes."""
    return {(row["id"], row["fence"]) for row in await connection.fetch(sql("ended_claims"), *_guards(batch))}


async def is_awaited(connection: Connection, held: Claim) -> bool:
    """Whether what an accepted call has set going may still be under way."""
    return await connection.fetchval(sql("is_awaited"), held.id, held.attempt, held.fence, held.node)


async def lock_instance(connection: Connection, instance_id: int) -> bool:
    """Waits for one live row up to the connection's lock_timeout; False when there is none."""
    return await connection.fetchval(sql("lock_instance"), instance_id) is not None


@dataclass(frozen=True, slots=True)
class LateResult:
    """An outcome that came after its row had moved on."""

    held: Claim
    outcome: str
    code: str | None
    message: str | None


async def keep_late(connection: Connection, late: Sequence[LateResult]) -> set[int]:
    """Keeps outcomes that lost their say as late attempts, once each; the ids kept."""
    rows = await connection.fetch(
        sql("keep_late"),
        [result.held.id for result in late],
        [result.held.job_id for result in late],
        [result.held.attempt for result in late],
        [result.held.fence for result in late],
        [result.held.node for result in late],
        [result.held.claimed_at for result in late],
        [result.outcome for result in late],
        [result.code for result in late],
        [result.message for result in late],
    )
    return {row["instance_id"] for row in rows}


async def running_by_fence(connection: Connection, tenant_id: int, instance_id: int, fence: int) -> Claim | None:
    """The running claim that this fence belongs to."""
    row = await connection.fetchrow(sql("running_by_fence"), tenant_id, instance_id, fence)
    return Claim(*row.values()) if row else None


@dataclass(frozen=True, slots=True)
class RunningRow:
    """A RUNNING row found by its owner, and the claim that made it so."""

    held: Claim
    claim: int
    born_for: datetime
    slot: int


async def running_of_node(connection: Connection, node: int, after_id: int, limit: int) -> list[RunningRow]:
    """A page of what `node` holds, by id."""
    rows = await connection.fetch(sql("running_of_node"), node, after_id, limit)
    return [
        RunningRow(
            Claim(
                r["id"],
                r["job_id"],
                r["attempt"],
                r["fence"],
                r["node"],
                r["retry_count"],
                r["claimed_at"],
                lost=r["lost"],
            ),
            r["claim"],
            r["born_for"],
            r["slot"],
        )
        for r in rows
    ]
