"""Records of steps, waits and signals: one function per statement of store.sql."""

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple, TypeAlias

import asyncpg

from horai.core.calls import Call
from horai.db.catalog import sql
from horai.db.pool import Platform, TenantRead, TenantWrite
from horai.features.steps.rules import Kind, StepId, StepRecord, StepReport, StepState

Held: TypeAlias = tuple[int, int]
"""A claim that holds, as (instance id, fence)."""


class ReportOf(NamedTuple):
    """A record to write, of the attempt that made it."""

    call: Call
    report: StepReport


class WaitOf(NamedTuple):
    """A wait of an attempt. Without a timeout it has no deadline."""

    call: Call
    id: StepId
    timeout: timedelta | None


class StartOver(NamedTuple):
    """The wish of an attempt to begin again with another payload, as JSON text; None for the payload of the job."""

    call: Call
    payload: str | None


class StartedOver(NamedTuple):
    """The claims that hold with the time of the change, and those whose instances were cancelled with compensation."""

    at: dict[Held, datetime]
    rewound: set[Held]


class Recorded(NamedTuple):
    """The claims that hold, the times `until` of the records, and the claims whose instances were cancelled with compensation."""

    held: set[Held]
    until: dict[tuple[int, StepId], datetime | None]
    rewound: set[Held]


class SentSignal(NamedTuple):
    """A stored signal. `lane` and `due` are those of the instance if it was woken."""

    id: int
    is_new: bool
    lane: int | None
    due: datetime | None


def _record(row: asyncpg.Record) -> tuple[int, StepRecord]:
    instance_id, kind, name, n, state, tries, result, error_type, error_msg, until, is_over, child = row.values()
    id_ = StepId(Kind(kind), name, n)
    return instance_id, StepRecord(
        id_, StepState(state), tries, result, error_type, error_msg, until, is_over=bool(is_over), child=child
    )


def _guards(calls: Sequence[Call]) -> tuple[list[int], list[int], list[int], list[int]]:
    return (
        [call.instance_id for call in calls],
        [call.attempt for call in calls],
        [call.fence for call in calls],
        [call.node for call in calls],
    )


async def load_steps(connection: Platform, ids: Collection[int]) -> list[tuple[int, StepRecord]]:
    """Return the records of these instances, each with its instance."""
    return [_record(row) for row in await connection.fetch(sql("load_steps"), list(ids))]


async def record_steps(connection: Platform, batch: Sequence[ReportOf]) -> Recorded:
    """Write records of running instances. Records of claims that do not hold are not written."""
    reports = [report for _, report in batch]
    rows = await connection.fetch(
        sql("record_steps"),
        *_guards([call for call, _ in batch]),
        [report.id.kind for report in reports],
        [report.id.name for report in reports],
        [report.id.n for report in reports],
        [report.state for report in reports],
        [report.tries for report in reports],
        [report.delay for report in reports],
        [report.result for report in reports],
        [report.error_type for report in reports],
        [report.error_msg for report in reports],
        [report.took for report in reports],
    )
    until = {
        (row["id"], StepId(Kind(row["kind"]), row["name"], row["n"])): row["until"]
        for row in rows
        if row["kind"] is not None
    }
    rewound = {(row["id"], row["fence"]) for row in rows if row["is_rewound"]}
    return Recorded({(row["id"], row["fence"]) for row in rows}, until, rewound)


async def start_over(connection: Platform, batch: Sequence[StartOver]) -> StartedOver:
    """Give running instances other payloads and forget their records. Claims that do not hold change nothing."""
    rows = await connection.fetch(
        sql("start_over_if_running"), *_guards([wish.call for wish in batch]), [wish.payload for wish in batch]
    )
    return StartedOver(
        {(row["id"], row["fence"]): row["at"] for row in rows if not row["is_rewound"]},
        {(row["id"], row["fence"]) for row in rows if row["is_rewound"]},
    )


async def hold_waits(connection: Platform, calls: Sequence[Call]) -> set[Held]:
    """Lock the rows of running instances that ask for signals; return the claims that hold."""
    return {(row["id"], row["fence"]) for row in await connection.fetch(sql("hold_waits"), *_guards(calls))}


async def open_waits(connection: Platform, batch: Sequence[WaitOf]) -> None:
    """Record waits of held instances."""
    await connection.execute(
        sql("open_waits"),
        [wait.call.instance_id for wait in batch],
        [wait.id.name for wait in batch],
        [wait.id.n for wait in batch],
        [wait.timeout for wait in batch],
    )


async def take_signals(connection: Platform, ids: Collection[int]) -> None:
    """Give waiting signals of held instances to their open waits."""
    await connection.execute(sql("take_signals"), list(ids))


async def expire_waits(connection: Platform, ids: Collection[int]) -> None:
    """Finish open waits of held instances whose deadline has passed."""
    await connection.execute(sql("expire_waits"), list(ids))


async def waits_of(connection: Platform, ids: Collection[int]) -> list[tuple[int, StepRecord]]:
    """Return the waits of these instances."""
    return [_record(row) for row in await connection.fetch(sql("waits_of"), list(ids))]


async def send_signal(
    connection: TenantWrite, instance_id: int, tenant_id: int, name: str, payload: str | None, request_key: str | None
) -> SentSignal | None:
    """Store a signal for a live instance; return None if the instance is not live."""
    row = await connection.fetchrow(sql("send_signal"), instance_id, tenant_id, name, payload, request_key)
    return None if row is None else SentSignal(*row.values())


async def signalled_instance(connection: TenantRead, tenant_id: int, job_id: int, key: str) -> int | None:
    """Return the live instance of a key."""
    row = await connection.fetchrow(sql("signalled_instance"), tenant_id, job_id, key)
    return None if row is None else row["id"]


async def forget_steps(connection: Platform, above: int, limit: int) -> int | None:
    """Forget records of `limit` instances that have left the history; return the last instance that was looked at."""
    return await connection.fetchval(sql("forget_steps"), above, limit)


async def forget_signals(connection: Platform, above: int, limit: int) -> int | None:
    """Forget signals of `limit` instances that have left the history; return the last instance that was looked at."""
    return await connection.fetchval(sql("forget_signals"), above, limit)
