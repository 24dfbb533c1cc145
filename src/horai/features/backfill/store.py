"""Statements on backfills: one function per statement of store.sql."""

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache

import asyncpg

from horai.core.backfill_status import BackfillStatus
from horai.core.job import JobStatus, Priority
from horai.core.limits import SHARDS
from horai.core.queue import Rate
from horai.db.catalog import sql
from horai.db.claims import Claimable
from horai.db.pool import AnyRead, AnyWrite, Platform, TenantRead, TenantWrite
from horai.features.backfill.rules import Coming, KnownSlot, Mode, Progress
from horai.time.schedule import Schedule, from_spec, to_spec


@dataclass(frozen=True, slots=True)
class BackfillWrite:
    """A new backfill: the request and its counts. `first` is None if there is no slot to check."""

    schedule: Schedule
    since: datetime
    until: datetime
    first: datetime | None
    end: datetime
    mode: Mode
    max_concurrency: int
    rate: Rate | None
    slots: int
    total: int
    note: str | None = None
    request_key: str | None = None
    request_hash: bytes | None = None


@dataclass(frozen=True, slots=True)
class BackfillRow:
    """A backfill as of `now`. `next_time`: its first slot not checked yet; `end`: the end of its slots, excluded."""

    id: int
    tenant_id: int
    job_id: int
    job: str
    schedule: Schedule
    since: datetime
    until: datetime
    next_time: datetime | None
    end: datetime
    mode: Mode
    status: BackfillStatus
    max_concurrency: int
    rate: Rate | None
    next_start: datetime | None
    progress: Progress
    note: str | None
    looked_at: datetime
    created_at: datetime
    updated_at: datetime
    finished_at: datetime | None
    now: datetime


@dataclass(frozen=True, slots=True)
class Taken:
    """A backfill that this transaction has locked with its job."""

    row: BackfillRow
    is_job_paused: bool
    is_job_deleted: bool


@dataclass(frozen=True, slots=True)
class Ends:
    """The number of ended instances, by outcome."""

    succeeded: int
    failed: int
    cancelled: int

    @property
    def count(self) -> int:
        """Return the total."""
        return self.succeeded + self.failed + self.cancelled


@dataclass(frozen=True, slots=True)
class BackfillStep:
    """The new progress of a backfill; `is_finished`: no slot is left to create and no instance is live."""

    next_time: datetime | None
    next_start: datetime | None
    progress: Progress
    status: BackfillStatus
    note: str | None = None
    is_finished: bool = False


def _row(row: asyncpg.Record) -> BackfillRow:
    return BackfillRow(
        row["id"],
        row["tenant_id"],
        row["job_id"],
        row["job"],
        _schedule(row["spec"]),
        row["from_time"],
        row["to_time"],
        row["next_time"],
        row["until_time"],
        Mode(row["mode"]),
        BackfillStatus(row["status"]),
        row["max_concurrency"],
        None if row["rate_count"] is None else Rate(row["rate_count"], row["rate_per"]),
        row["next_start"],
        _progress(row),
        row["note"],
        row["looked_at"],
        row["created_at"],
        row["updated_at"],
        row["finished_at"],
        row["now"],
    )


def _progress(row: asyncpg.Record) -> Progress:
    return Progress(
        row["slots"],
        row["total"],
        row["made"],
        row["skipped"],
        row["succeeded"],
        row["failed"],
        row["cancelled"],
        row["pace"],
    )


@lru_cache(maxsize=1_000)
def _schedule(spec: str) -> Schedule:
    return from_spec(json.loads(spec))


async def insert_backfill(connection: TenantWrite, tenant_id: int, job_id: int, write: BackfillWrite) -> int | None:
    """Insert a backfill and return its id; None if its request was made before."""
    return await connection.fetchval(
        sql("insert_backfill"),
        tenant_id,
        job_id,
        json.dumps(to_spec(write.schedule)),
        write.since,
        write.until,
        write.first,
        write.end,
        int(write.mode),
        write.max_concurrency,
        write.rate.count if write.rate else None,
        write.rate.per if write.rate else None,
        write.slots,
        write.total,
        write.note,
        write.request_key,
        write.request_hash,
    )


async def backfill_of_request(
    connection: TenantRead, tenant_id: int, job_id: int, request_key: str
) -> tuple[int, bytes] | None:
    """Return the backfill that a request created, and the hash of the request body."""
    row = await connection.fetchrow(sql("backfill_of_request"), tenant_id, job_id, request_key)
    return None if row is None else (row["id"], row["request_hash"])


async def find_backfill(connection: TenantRead, tenant_id: int, backfill_id: int) -> BackfillRow | None:
    """Return a backfill by its id."""
    row = await connection.fetchrow(sql("backfill_by_id"), tenant_id, backfill_id)
    return None if row is None else _row(row)


async def lock_backfill(connection: TenantWrite, tenant_id: int, backfill_id: int) -> BackfillRow | None:
    """Lock a backfill for a change by a user."""
    row = await connection.fetchrow(sql("lock_backfill"), tenant_id, backfill_id)
    return None if row is None else _row(row)


async def list_backfills(
    connection: TenantRead,
    tenant_id: int,
    page: tuple[int, int],
    job_id: int | None = None,
    status: BackfillStatus | None = None,
) -> list[BackfillRow]:
    """Return a page, newest first. `page`: the id before which it starts, and the number of rows."""
    rows = await connection.fetch(
        sql("list_backfills"), tenant_id, *page, job_id, None if status is None else int(status)
    )
    return [_row(row) for row in rows]


async def set_backfill_status(
    connection: TenantWrite, backfill_id: int, status: BackfillStatus, note: str | None
) -> None:
    """Pause, resume or cancel a backfill that the caller has locked; without a note the last one stays."""
    await connection.execute(sql("set_backfill_status"), backfill_id, int(status), note)


async def open_backfills(connection: Platform, shards: Collection[int]) -> list[int]:
    """Return backfills of jobs of these shards with slots to create, live instances, or a status to close."""
    return [row["id"] for row in await connection.fetch(sql("open_backfills"), list(shards), SHARDS)]


async def has_open_backfill(connection: AnyRead, job_id: int) -> bool:
    """Return whether the job may have instances of a backfill."""
    return await connection.fetchval(sql("has_open_backfill"), job_id)


async def take_backfill(connection: Platform, backfill_id: int) -> Taken | None:
    """Lock a backfill and its job until commit; None if another transaction has locked either, or it is finished."""
    row = await connection.fetchrow(sql("take_backfill"), backfill_id)
    if row is None:
        return None
    return Taken(_row(row), row["job_status"] == JobStatus.PAUSED, row["is_job_deleted"])


async def settle_backfill(connection: Platform, backfill: BackfillRow) -> Ends:
    """Count the instances that have ended since the last step, each once."""
    row = await connection.fetchrow(sql("settle_backfill"), backfill.id, backfill.created_at)
    assert row is not None  # noqa: S101 — an aggregate has one row
    return Ends(row["succeeded"], row["failed"], row["cancelled"])


async def coming_slots(connection: AnyRead, job_id: int) -> Coming:
    """Return the slots that the job gets without a backfill. Call it before `known_slots`."""
    row = await connection.fetchrow(sql("coming_slots"), job_id)
    assert row is not None  # noqa: S101 — job rows are never deleted
    late = tuple(zip(row["late_from"], row["late_until"], strict=True))
    forgotten = None if row["kept_from"] is None else (row["created_at"], row["kept_from"])
    return Coming(row["active_from"], row["since"], late, forgotten)


async def known_slots(connection: AnyRead, job_id: int, first: datetime, last: datetime) -> dict[datetime, KnownSlot]:
    """Return the slots that were created between these instants, both included."""
    rows = await connection.fetch(sql("known_slots"), job_id, first, last)
    return {row["fire_time"]: KnownSlot(row["generation"], row["is_live"], row["dead"]) for row in rows}


async def low_lane(connection: AnyWrite, job_id: int) -> int:
    """Return the low-priority lane for work beside the current work of a job; create it if needed."""
    for _ in range(2):
        lane = await connection.fetchval(sql("low_lane"), job_id, int(Priority.low))
        if lane is not None:
            return lane
    raise RuntimeError("the low-priority lane can be neither found nor created")


@dataclass(frozen=True, slots=True)
class SlotToMake:
    """A slot, the generation in which it is created, and when it may start."""

    fire_time: datetime
    generation: int
    at: datetime


async def make_backfill_slots(
    connection: Platform, backfill: BackfillRow, lane: int, slots: Sequence[SlotToMake]
) -> list[Claimable]:
    """Insert slots of a locked backfill; leave slots that exist unchanged."""
    rows = await connection.fetch(
        sql("make_backfill_slots"),
        backfill.id,
        backfill.job_id,
        lane,
        SHARDS,
        [slot.fire_time for slot in slots],
        [slot.generation for slot in slots],
        [slot.at for slot in slots],
    )
    return [Claimable(row["id"], row["lane"], row["due"]) for row in rows]


async def write_backfill(connection: Platform, backfill_id: int, step: BackfillStep) -> None:
    """Write the progress of a locked backfill."""
    progress = step.progress
    await connection.execute(
        sql("write_backfill"),
        backfill_id,
        step.next_time,
        step.next_start,
        progress.made,
        progress.skipped,
        progress.succeeded,
        progress.failed,
        progress.cancelled,
        progress.pace,
        int(step.status),
        step.note,
        step.is_finished,
    )


async def waiting_of_backfill(connection: TenantRead, backfill_id: int) -> list[int]:
    """Return the instances of a backfill that are live and not running."""
    return [row["id"] for row in await connection.fetch(sql("waiting_of_backfill"), backfill_id)]
