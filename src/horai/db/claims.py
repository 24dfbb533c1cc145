"""Claims and their settlement: one function per statement of sql/claims.sql."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

import asyncpg

from horai.core.fingerprints import fingerprint_of
from horai.core.limits import SHARDS
from horai.core.outcome import Bury, Complete, Release, RetryAt, Suspend
from horai.core.states import CancelReason
from horai.db.catalog import sql
from horai.db.pool import AnyWrite, Platform, TenantRead, TenantWrite


class Claim(NamedTuple):
    """The right to settle one claimed instance. Every guarded write compares these values."""

    id: int
    job_id: int
    attempt: int
    fence: int
    node: int
    retry_count: int
    claimed_at: datetime | None = None
    has_slot: bool = False
    """True if the claim holds a permit of a limited queue, which is freed when its call has ended."""
    lost: int = 0
    """The number of earlier attempts that were lost with their nodes."""
    concurrency_key: str | None = None
    """The key whose place the claim holds while its row is RUNNING."""


class ClaimedRow(NamedTuple):
    """A claimed row with the columns that a dispatcher needs."""

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
        """Return the shard of the instance."""
        return self.held.id % SHARDS


class Position(NamedTuple):
    """The cursor of the scan of one (shard, lane): it continues after (due, id)."""

    shard: int
    lane: int
    due: datetime
    id: int


@dataclass(frozen=True, slots=True)
class Claimable:
    """A row that became claimable, with its lane and its due time."""

    id: int
    lane: int
    due: datetime


def columns(positions: Sequence[Position]) -> tuple[list[int], list[int], list[datetime], list[int]]:
    """Return the positions as four columns, the form that the statements take."""
    return (
        [position.shard for position in positions],
        [position.lane for position in positions],
        [position.due for position in positions],
        [position.id for position in positions],
    )


@dataclass(frozen=True, slots=True)
class ClaimedBy:
    """The claimer: the incarnation of the node, the number of the claim, and the database time as the node knows it."""

    node: int
    claim: int
    at: datetime


def claimed_rows(rows: Sequence[asyncpg.Record], by: ClaimedBy) -> list[ClaimedRow]:
    """Convert the rows of a claiming statement.

    This is the hottest code: `tuple.__new__` creates a named tuple in half the time of its own constructor.
    """
    node, at = by.node, by.at
    new: Any = getattr(tuple, "__new__")  # noqa: B009 — `tuple.__new__` would be typed as a tuple of unknowns
    return [
        new(
            ClaimedRow,
            (
                new(Claim, (id_, job_id, attempt, fence, node, retry_count, at, False, lost, None)),
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
    connection: Platform, by: ClaimedBy, positions: Sequence[Position], rows: Sequence[int]
) -> list[ClaimedRow]:
    """Claim up to `rows` due rows of each scan; none if this node is fenced."""
    found = await connection.fetch(sql("claim_due"), by.node, by.claim, *columns(positions), rows)
    return claimed_rows(found, by)


async def payload_of(connection: Platform, held: Claim) -> str | None:
    """Return a payload that was too large to return with the claim. Raises `LookupError` if the claim has ended."""
    row = await connection.fetchrow(sql("payload_of"), held.id, held.fence, held.node)
    if row is None:
        raise LookupError(f"instance {held.id} is no longer held by fence {held.fence}")
    return row["payload"]


async def next_due(
    connection: Platform, positions: Sequence[Position], rows: int
) -> list[tuple[int, int, list[datetime]]]:
    """Return (shard, lane, due times) of the first `rows` claimable rows of each scan; scans without any are absent."""
    found = await connection.fetch(sql("next_due"), *columns(positions), rows)
    return [(shard, lane, due) for shard, lane, due in found]


class ShutRows(NamedTuple):
    """The end of the due rows of shut jobs that follow a scan's cursor, and how many they are."""

    shard: int
    lane: int
    due: datetime
    id: int
    passed: int


async def shut_rows_ahead(
    connection: Platform, positions: Sequence[Position], job_ids: Iterable[int], limits: Sequence[int]
) -> list[ShutRows]:
    """Return where the rows of these jobs end that each scan would read next; read at most `limits` rows of each scan."""
    rows = await connection.fetch(sql("shut_rows_ahead"), *columns(positions), list(job_ids), limits)
    return [ShutRows(*row.values()) for row in rows]


class LeftBehind(NamedTuple):
    """A row that a cursor has passed: claimable (`claim` is None), or running on this node."""

    shard: int
    lane: int
    due: datetime
    held: Claim
    claim: int | None


async def left_behind(
    connection: Platform, positions: Sequence[Position], node: int | None, limit: int
) -> list[LeftBehind]:
    """Return one page per scan of due rows that are not claimed, and with `node` also of rows that run on it."""
    rows = await connection.fetch(sql("left_behind"), *columns(positions), node, limit)
    return [
        LeftBehind(
            row["shard"],
            row["lane"],
            row["due"],
            Claim(
                row["id"],
                row["job_id"],
                row["attempt"],
                row["fence"],
                row["node"] or 0,
                row["retry_count"],
                concurrency_key=row["concurrency_key"],
            ),
            row["claim"],
        )
        for row in rows
    ]


def guards(held: Sequence[Claim]) -> tuple[list[int], list[int], list[int], list[int]]:
    """Return the values that every guarded write compares, as four columns."""
    return ([h.id for h in held], [h.attempt for h in held], [h.fence for h in held], [h.node for h in held])


def _array(numbers: Iterable[int]) -> str:
    """Return an array in PostgreSQL's text format."""
    return "{" + ",".join(map(str, numbers)) + "}"


async def finish_if_running(connection: Platform, node: int, batch: Sequence[tuple[Claim, Complete]]) -> set[int]:
    """Settle claims of one node, RUNNING → SUCCESS; return the ids that were settled.

    Waits for locked rows up to lock_timeout. Rows are locked in the given order: pass them by id, another order may
    deadlock.
    """
    outputs = [decision.output for _, decision in batch]
    rows = await connection.fetch(
        sql("finish_if_running"),
        _array(held.id for held, _ in batch),
        _array(held.attempt for held, _ in batch),
        _array(held.fence for held, _ in batch),
        node,
        outputs if any(outputs) else [],  # unnest fills a shorter array with nulls
    )
    return {row[0] for row in rows}


async def finish_if_free(connection: AnyWrite, batch: Sequence[tuple[Claim, Complete]]) -> set[int]:
    """Settle claims, RUNNING → SUCCESS, and skip locked rows; return the ids that were settled."""
    rows = await connection.fetch(
        sql("finish_if_free"), *guards([held for held, _ in batch]), [decision.output for _, decision in batch]
    )
    return {row["id"] for row in rows}


async def fail_if_running(connection: AnyWrite, batch: Sequence[tuple[Claim, RetryAt]]) -> list[Claimable]:
    """Settle claims, RUNNING → FAIL; return the rows with the due time of their retry."""
    rows = await connection.fetch(
        sql("fail_if_running"),
        *guards([held for held, _ in batch]),
        [decision.delay for _, decision in batch],
        [decision.code for _, decision in batch],
        [decision.message for _, decision in batch],
        [decision.is_loss for _, decision in batch],
    )
    return [Claimable(row["id"], row["lane"], row["due"]) for row in rows]


async def bury_if_running(connection: AnyWrite, batch: Sequence[tuple[Claim, Bury]]) -> set[int]:
    """Settle claims, RUNNING → DEAD, with a dead letter; return the ids that were settled."""
    rows = await connection.fetch(
        sql("bury_if_running"),
        *guards([held for held, _ in batch]),
        [decision.code for _, decision in batch],
        [decision.message for _, decision in batch],
        [",".join(decision.tags) for _, decision in batch],
        [
            decision.fingerprint or fingerprint_of(held.job_id, decision.code, decision.message)
            for held, decision in batch
        ],
        [decision.is_loss for _, decision in batch],
    )
    return {row["id"] for row in rows}


async def release_if_running(connection: AnyWrite, batch: Sequence[tuple[Claim, Release]]) -> list[Claimable]:
    """Release claims, RUNNING → INIT; return the rows with their new due time."""
    rows = await connection.fetch(
        sql("release_if_running"),
        *guards([held for held, _ in batch]),
        [decision.delay for _, decision in batch],
        [decision.postponed for _, decision in batch],
        [decision.is_quiet for _, decision in batch],
    )
    return [Claimable(row["id"], row["lane"], row["due"]) for row in rows]


async def hold_running(connection: AnyWrite, batch: Sequence[Claim]) -> list[int]:
    """Lock the rows of claims that hold until the transaction ends; return their ids. Locked rows are skipped."""
    return [row["id"] for row in await connection.fetch(sql("hold_running"), *guards(batch))]


async def suspend_if_running(connection: AnyWrite, batch: Sequence[tuple[Claim, Suspend]]) -> list[Claimable]:
    """Suspend claims, RUNNING → INIT, in the caller's transaction; return the rows with their new due time."""
    which = guards([held for held, _ in batch])
    held = await hold_running(connection, [held for held, _ in batch])
    rows = await connection.fetch(sql("suspend_if_running"), *which, [decision.until for _, decision in batch], held)
    return [Claimable(row["id"], row["lane"], row["due"]) for row in rows]


async def park_if_running(connection: Platform, batch: Sequence[Claim]) -> set[int]:
    """Park claims of paused jobs, RUNNING → INIT in the parking lane; return the ids that were parked."""
    rows = await connection.fetch(sql("park_if_running"), *guards(batch))
    return {row["id"] for row in rows}


async def cancel_if_running(
    connection: AnyWrite, batch: Sequence[Claim], reason: CancelReason = CancelReason.JOB_DELETED
) -> set[int]:
    """Cancel claims, RUNNING → CANCELLED; return the ids that were cancelled."""
    rows = await connection.fetch(sql("cancel_if_running"), *guards(batch), int(reason), reason.name)
    return {row["id"] for row in rows}


async def still_running(connection: Platform, batch: Sequence[Claim]) -> set[int]:
    """Return the ids of claims that have not ended, locked or not."""
    return {row["id"] for row in await connection.fetch(sql("still_running"), *guards(batch))}


async def ended_claims(connection: Platform, batch: Sequence[Claim]) -> set[tuple[int, int]]:
    """Return the claims that have ended, as (instance id, fence): their outcomes no longer count."""
    return {(row["id"], row["fence"]) for row in await connection.fetch(sql("ended_claims"), *guards(batch))}


async def is_awaited(connection: Platform, held: Claim) -> bool:
    """Return whether the work that an accepted call has started may still be in progress."""
    return await connection.fetchval(sql("is_awaited"), held.id, held.attempt, held.fence, held.node)


async def lock_instance(connection: TenantWrite, instance_id: int) -> bool:
    """Lock one live row, waiting up to the connection's lock_timeout; return False if it does not exist."""
    return await connection.fetchval(sql("lock_instance"), instance_id) is not None


@dataclass(frozen=True, slots=True)
class LateResult:
    """An outcome that was reported after its claim had ended."""

    held: Claim
    outcome: str
    code: str | None
    message: str | None


async def keep_late(connection: AnyWrite, late: Sequence[LateResult]) -> set[int]:
    """Record outcomes of ended claims as late attempts, once each; return the ids that were recorded."""
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


async def running_by_fence(connection: TenantRead, tenant_id: int, instance_id: int, fence: int) -> Claim | None:
    """Return the running claim with this fence."""
    row = await connection.fetchrow(sql("running_by_fence"), tenant_id, instance_id, fence)
    return Claim(*row.values()) if row else None


@dataclass(frozen=True, slots=True)
class RunningRow:
    """A RUNNING row of a node, and the number of the claim that started it."""

    held: Claim
    claim: int
    born_for: datetime
    slot: int


async def running_of_node(connection: Platform, node: int, after_id: int, limit: int) -> list[RunningRow]:
    """Return a page of the running rows of `node`, by id."""
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
                concurrency_key=r["concurrency_key"],
            ),
            r["claim"],
            r["born_for"],
            r["slot"],
        )
        for r in rows
    ]
