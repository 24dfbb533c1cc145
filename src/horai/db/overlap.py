"""Jobs whose runs depend on one another: one function per statement of sql/overlap.sql."""

import json
from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

import asyncpg

from horai.core.job import JobStatus
from horai.core.limits import SHARDS
from horai.core.timing import Timing
from horai.db.calendars import defined
from horai.db.catalog import sql
from horai.db.claims import Claimable
from horai.db.pool import AnyRead, AnyWrite, Platform
from horai.time.overlap import Overlap, Row


@dataclass(frozen=True, slots=True)
class Gate:
    """A job that is locked while its slots are decided. `timing` is set if the job counts from the end of its runs."""

    job_id: int
    is_paused: bool
    lane: int
    overlap: Overlap
    active_from: datetime
    timing: Timing | None


async def lock_gates(connection: AnyWrite, job_ids: Collection[int]) -> list[Gate]:
    """Lock the gates of these jobs until commit and return them; skip jobs without a gate and locked ones."""
    return [await _gate(connection, row) for row in await connection.fetch(sql("lock_gates"), list(job_ids))]


async def _gate(connection: AnyRead, row: asyncpg.Record) -> Gate:
    document = None if row["definition"] is None else json.loads(row["definition"])
    return Gate(
        row["id"],
        row["status"] == JobStatus.PAUSED,
        row["lane_id"],
        Overlap(row["overlap"]),
        row["active_from"],
        None if document is None else (await defined(connection, row["tenant_id"], document)).timing,
    )


async def with_gates(connection: AnyRead, job_ids: Collection[int]) -> set[int]:
    """Return those of the jobs that have a gate, locked or not."""
    return {row["id"] for row in await connection.fetch(sql("with_gates"), list(job_ids))}


async def rows_at_gates(connection: AnyRead, job_ids: Collection[int]) -> dict[int, list[Row]]:
    """Return the live instances without a key of each job."""
    found: dict[int, list[Row]] = defaultdict(list)
    for row in await connection.fetch(sql("rows_at_gates"), list(job_ids)):
        found[row["job_id"]].append(Row(row["id"], row["fire_time"], row["is_held"], row["is_slot"], row["is_begun"]))
    return found


async def let_go(connection: AnyWrite, rows: Sequence[tuple[int, int]]) -> list[Claimable]:
    """Move held rows, given as (id, lane), to their lanes; return the rows that moved."""
    found = await connection.fetch(sql("let_go"), [i for i, _ in rows], [lane for _, lane in rows])
    return [Claimable(*row.values()) for row in found]


async def last_ends(connection: AnyRead, job_ids: Collection[int]) -> dict[int, datetime]:
    """Return the end of the last slot of each job; a job that never had one is absent."""
    return {row["id"]: row["finished_at"] for row in await connection.fetch(sql("last_ends"), list(job_ids))}


async def has_gates(connection: Platform) -> bool:
    """Return whether any job has a gate."""
    return await connection.fetchval(sql("has_gates"))


async def stuck_gates(connection: Platform, after: int, limit: int, shards: Collection[int]) -> list[int]:
    """Return a page of jobs of these shards whose gates may have a pending decision."""
    return [row["id"] for row in await connection.fetch(sql("stuck_gates"), after, limit, list(shards), SHARDS)]
