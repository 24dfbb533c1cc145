"""Backfills: one function per statement of sql/backfills.sql."""

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache

import asyncpg

from horai.core.backfill_status import BackfillStatus
from horai.core.job import JobStatus, Priority
from horai.core.queue import Rate
from horai.core.settings import SHARDS
from horai.db.catalog import sql
from horai.db.claims import Claimable
from horai.db.pool import Connection
from horai.features.backfill.rules import Coming, KnownSlot, Mode, Progress
from horai.time.schedule import Schedule, from_spec, to_spec


@dataclass(frozen=True, slots=True)
class BackfillWrite:
    """A new backfill: what was asked for, and what it comes to. `first` is None when there is nothing to look at."""

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
    """A backfill as it is at `now`. `next_time`: its first slot that nobody has looked at; `end`: behind its last."""

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
    """A backfill that is held with its job."""

    row: BackfillRow
    is_job_paused: bool
    is_job_deleted: bool


@dataclass(frozen=True, slots=True)
class Ends:
    """How many have ended, by what they came to."""

    succeeded: int
    failed: int
    cancelled: int

    @property
    def count(self) -> int:
        """All of them."""
        return self.succeeded + self.failed + self.cancelled


@dataclass(frozen=True, slots=True)
class BackfillStep:
    """How far a backfill has come; `is_finished`: nothing is left to make, and nothing under way."""

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


async def insert_backfill(connection: Connection, tenant_id: int, job_id: int, write: BackfillWrite) -> int | None:
    """A new backfill; None when its request was made before."""
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
    connection: Connection, tenant_id: int, job_id: int, request_key: str
) -> tuple[int, bytes] | None:
    """The backfill that a request made, and the hash of the body it came with."""
    row = await connection.fetchrow(sql("backfill_of_request"), tenant_id, job_id, request_key)
    return None if row is None else (row["id"], row["request_hash"])


async def find_backfill(connection: Connection, tenant_id: int, backfill_id: int) -> BackfillRow | None:
    """A backfill by its id."""
    row = await connection.fetchrow(sql("backfill_by_id"), tenant_id, backfill_id)
    return None if row is None else _row(row)


async def lock_backfill(connection: Connection, tenant_id: int, backfill_id: int) -> BackfillRow | None:
    """Held alone, for a change by a user."""
    row = await connection.fetchrow(sql("lock_backfill"), tenant_id, backfill_id)
    return None if row is None else _row(row)


async def list_backfills(
    connection: Connection,
    tenant_id: int,
    page: tuple[int, int],
    job_id: int | None = None,
    status: BackfillStatus | None = None,
) -> list[BackfillRow]:
    """A page (before which id, how many), the newest first."""
    rows = await connection.fetch(
        sql("list_backfills"), tenant_id, *page, job_id, None if status is None else int(status)
    )
    return [_row(row) for row in rows]


async def set_backfill_status(
    connection: Connection, backfill_id: int, status: BackfillStatus, note: str | None
) -> None:
    """Pauses, resumes or cancels one that the caller holds; without a note the last one stays."""
    await connection.execute(sql("set_backfill_status"), backfill_id, int(status), note)


async def open_backfills(connection: Connection, shards: Collection[int]) -> list[int]:
    """Those of jobs of these shards that have something to make or under way."""
    return [row["id"] for row in await connection.fetch(sql("open_backfills"), list(shards), SHARDS)]


async def has_open_backfill(connection: Connection, job_id: int) -> bool:
    """Whether instances of a backfill may be among the job's."""
    return await connection.fetchval(sql("has_open_backfill"), job_id)


async def take_backfill(connection: Connection, backfill_id: int) -> Taken | None:
    """Held with its job until commit; None when somebody else works on either, or it is finished."""
    row = await connection.fetchrow(sql("take_backfill"), backfill_id)
    if row is None:
        return None
    return Taken(_row(row), row["job_status"] == JobStatus.PAUSED, row["is_job_deleted"])


async def settle_backfill(connection: Connection, backfill: BackfillRow) -> Ends:
    """What of it has ended since the last look, counted once."""
    row = await connection.fetchrow(sql("settle_backfill"), backfill.id, backfill.created_at)
    assert row is not None  # noqa: S101 — an aggregate has one row
    return Ends(row["succeeded"], row["failed"], row["cancelled"])


async def coming_slots(connection: Connection, job_id: int) -> Coming:
    """What the job will have by itself. Read it before `known_slots`."""
    row = await connection.fetchrow(sql("coming_slots"), job_id)
    assert row is not None  # noqa: S101 — jobs are never taken out of the table
    late = tuple(zip(row["late_from"], row["late_until"], strict=True))
    return Coming(row["active_from"], row["since"], late)


async def known_slots(
    connection: Connection, job_id: int, first: datetime, last: datetime
) -> dict[datetime, KnownSlot]:
    """The slots between these instants, both included, that were made."""
    rows = await connection.fetch(sql("known_slots"), job_id, first, last)
    return {row["fire_time"]: KnownSlot(row["generation"], row["is_live"], row["dead"]) for row in rows}


async def low_lane(connection: Connection, job_id: int) -> int:
    """The lane for what a job has to do beside its work of now."""
    for _ in range(2):
        lane = await connection.fetchval(sql("low_lane"), job_id, int(Priority.low))
        if lane is not None:
            return lane
    raise RuntimeError("a lane that is neither there nor can be made")


@dataclass(frozen=True, slots=True)
class SlotToMake:
    """A slot, the generation it is made in, and when it may start."""

    fire_time: datetime
    generation: int
    at: datetime


async def make_backfill_slots(
    connection: Connection, backfill: BackfillRow, lane: int, slots: Sequence[SlotToMake]
) -> list[Claimable]:
    """Makes slots of a backfill that is held; one that is there already is left alone."""
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


async def write_backfill(connection: Connection, backfill_id: int, step: BackfillStep) -> None:
    """Writes how far one that is held has come."""
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


async def waiting_of_backfill(connection: Connection, backfill_id: int) -> list[int]:
    """What it has made that does not run."""
    return [row["id"] for row in await connection.fetch(sql("waiting_of_backfill"), backfill_id)]
