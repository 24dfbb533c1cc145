"""Queries about instances: one function per statement of sql/instance_queries.sql."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import asyncpg

from horai.core.calls import instance_key, slot_key
from horai.core.job import Priority
from horai.core.states import CancelReason, State
from horai.core.stored_text import TRUNCATED
from horai.db.catalog import sql
from horai.db.pool import AnyRead, Platform, TenantRead

LAST = (datetime(9999, 12, 31, tzinfo=UTC), 2**63 - 1)
"""The start of a list with the newest instance first."""
FIRST = (datetime(1970, 1, 1, tzinfo=UTC), 0)
"""The start of a list with the oldest instance first."""
ATTEMPTS_SHOWN = 500


@dataclass(frozen=True, slots=True)
class InstanceRow:
    """An instance, live or finished. `payload_size` is the size of the payload in bytes.

    In a list, `payload` is None if it is larger than `LISTED_PAYLOAD_BYTES`. `bytes` is the approximate size of the
    instance in a list.
    """

    id: int
    job_id: int
    job: str
    key: str | None
    state: State
    reason: CancelReason | None
    fire_time: datetime
    execute_time: datetime
    due: datetime | None
    attempt: int
    retry_count: int
    fence: int
    node: str | None
    incarnation: int | None
    version: int | None
    supersedes: int | None
    replay_of: int | None
    queue: str
    priority: Priority
    payload: str | None
    payload_size: int | None
    result: str | None
    error_code: str | None
    error_msg: str | None
    created_at: datetime
    claimed_at: datetime | None
    finished_at: datetime | None
    idem_key: str
    bytes: int = 0
    is_encrypted: bool = False
    """True if payload, result and error text are sealed."""
    concurrency_key: str | None = None
    """The key of which only some instances run at once."""
    expires_at: datetime | None = None
    """No attempt begins at this time or later."""
    timezone: str | None = None
    """The zone of the cron schedule of the job. Lists and single reads have it."""

    @property
    def is_result_truncated(self) -> bool:
        """Return whether the target's result was not kept."""
        return self.result == TRUNCATED

    @property
    def kept_result(self) -> str | None:
        """Return the result as JSON text; None without one, or if it was not kept."""
        return None if self.result == TRUNCATED else self.result


@dataclass(frozen=True, slots=True)
class AttemptRow:
    """One attempt. The table has the failed and the late ones; the row of the instance describes its last one."""

    attempt: int
    fence: int
    node: int | None
    started_at: datetime | None
    finished_at: datetime | None
    late: bool
    outcome: str
    error_code: str | None
    error_msg: str | None


@dataclass(frozen=True, slots=True)
class EventRow:
    """One event of an instance."""

    seq: int | None
    at: datetime
    kind: str
    data: str | None


def instance_of(row: asyncpg.Record) -> InstanceRow:
    """Convert a row of any statement that returns all columns of an instance."""
    slot, job_id = row["slot"], row["job_id"]
    idem = slot_key(job_id, row["fire_time"], slot) if slot >= 0 else instance_key(job_id, row["born_for"], row["id"])
    return InstanceRow(
        id=row["id"],
        job_id=job_id,
        job=row["job"],
        key=row["key"],
        state=State(row["state"]),
        reason=None if row["reason"] is None else CancelReason(row["reason"]),
        fire_time=row["fire_time"],
        execute_time=row["execute_time"],
        due=row["due"],
        attempt=row["attempt"],
        retry_count=row["retry_count"],
        fence=row["fence"],
        node=row["node_name"],
        incarnation=row["node"],
        version=row["version"],
        supersedes=row["supersedes"],
        replay_of=row["replay_of"],
        queue=row["queue"],
        priority=Priority(row["priority"]),
        payload=row["payload"],
        payload_size=row.get("payload_size", size_of(row["payload"])),
        result=row["result"],
        error_code=row["error_code"],
        error_msg=row["error_msg"],
        created_at=row["created_at"],
        claimed_at=row["claimed_at"],
        finished_at=row["finished_at"],
        idem_key=idem,
        bytes=row.get("bytes", 0),
        is_encrypted=row["encrypted"],
        concurrency_key=row.get("concurrency_key"),
        expires_at=row.get("expires_at"),
        timezone=row.get("timezone"),
    )


def size_of(payload: str | None) -> int | None:
    """Return the size of a payload in bytes, None without a payload."""
    return None if payload is None else len(payload.encode())


async def instance_by_id(connection: TenantRead, tenant_id: int, instance_id: int) -> InstanceRow | None:
    """Return an instance, live or finished.

    Queries twice: one query of two tables can miss a row that moves between them.
    """
    for _ in range(2):
        if row := await connection.fetchrow(sql("instance_by_id"), tenant_id, instance_id):
            return instance_of(row)
    return None


async def live_instances(connection: TenantRead, ids: Sequence[int]) -> dict[int, InstanceRow]:
    """Return instances by id; those that have ended are absent."""
    rows = await connection.fetch(sql("live_by_ids"), list(ids))
    return {row["id"]: instance_of(row) for row in rows}


async def remembered_instance(connection: TenantRead, tenant_id: int, job_id: int, key: str) -> InstanceRow | None:
    """Return the last instance of a key that has left history: without its payload, its result and its error."""
    row = await connection.fetchrow(sql("remembered_instance"), tenant_id, job_id, key)
    return None if row is None else instance_of(row)


async def made_just_now(connection: TenantRead, instance_id: int) -> InstanceRow:
    """Return an instance that the caller's transaction has inserted."""
    row = await connection.fetchrow(sql("live_by_ids"), [instance_id])
    assert row is not None  # noqa: S101 — no other transaction can see the row yet
    return instance_of(row)


async def attempts_of(connection: TenantRead, instance_id: int) -> Sequence[AttemptRow]:
    """Return the first `ATTEMPTS_SHOWN` failed and late attempts of an instance, in order."""
    rows = await connection.fetch(sql("attempts_of"), instance_id, ATTEMPTS_SHOWN)
    return [AttemptRow(*row.values()) for row in rows]


async def timeline_of(connection: TenantRead, instance_id: int) -> Sequence[EventRow]:
    """Return the first 500 events of an instance, in order."""
    return [EventRow(*row.values()) for row in await connection.fetch(sql("timeline_of"), instance_id)]


async def dead_letters_since(connection: Platform, tenant_id: int, span: timedelta) -> int:
    """Return the number of dead letters of the last `span`."""
    return await connection.fetchval(sql("dead_letters_since"), tenant_id, span)


async def retry_backlog(connection: Platform) -> int:
    """Return the number of instances that wait for a retry. Counts the hot table, so call it rarely."""
    return await connection.fetchval(sql("retry_backlog"))


@dataclass(frozen=True, slots=True)
class EndedInstance:
    """The final state and the outcome of an instance."""

    id: int
    state: State
    reason: CancelReason | None
    result: str | None
    error_code: str | None
    error_msg: str | None
    sealed_for: str | None = None
    """The name of the job if it is encrypted: result and error text are sealed."""


async def ended(connection: AnyRead, tenant_id: int, instance_ids: Sequence[int]) -> list[EndedInstance]:
    """Return those of the instances that are final."""
    return [
        EndedInstance(id_, State(state), None if reason is None else CancelReason(reason), *rest)
        for id_, state, reason, *rest in await connection.fetch(sql("ended"), tenant_id, list(instance_ids))
    ]
