"""Jobs whose runs depend on one another: one function per statement of sql/gates.sql."""

import json
from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

import asyncpg

from horai.core.job import JobStatus
from horai.core.settings import SHARDS
from horai.core.timing import Timing
from horai.db.catalog import sql
from horai.db.claims import Claimable
from horai.db.jobs import definition_of
from horai.db.pool import Connection
from horai.time.overlap import Overlap, Row


@dataclass(frozen=True, slots=True)
class Gate:
    """A job that is held while its slots are decided on. `timing`: of one that counts from the end of its runs."""

    job_id: int
    is_paused: bool
    lane: int
    overlap: Overlap
    active_from: datetime
    timing: Timing | None


async def lock_gates(connection: Connection, job_ids: Collection[int]) -> list[Gate]:
    """Those of the jobs that have a gate and that nobody holds, held until commit."""
    return [_gate(row) for row in await connection.fetch(sql("lock_gates"), list(job_ids))]


def _gate(row: asyncpg.Record) -> Gate:
    return Gate(
        row["id"],
        row["status"] == JobStatus.PAUSED,
        row["lane_id"],
        Overlap(row["overlap"]),
        row["active_from"],
        None if row["definition"] is None else definition_of(json.loads(row["definition"])).timing,
    )


async def with_gates(connection: Connection, job_ids: Collection[int]) -> set[int]:
    """Those of the jobs that have a gate, whoever holds them."""
    return {row["id"] for row in await connection.fetch(sql("with_gates"), list(job_ids))}


async def rows_at_gates(connection: Connection, job_ids: Collection[int]) -> dict[int, list[Row]]:
    """What each of the jobs has under way without a key."""
    found: dict[int, list[Row]] = defaultdict(list)
    for row in await connection.fetch(sql("rows_at_gates"), list(job_ids)):
        found[row["job_id"]].append(Row(row["id"], row["fire_time"], row["is_held"], row["is_slot"], row["is_begun"]))
    return found


async def let_go(connection: Connection, rows: Sequence[tuple[int, int]]) -> list[Claimable]:
    """Held rows to their lanes: (id, lane)."""
    found = await connection.fetch(sql("let_go"), [i for i, _ in rows], [lane for _, lane in rows])
    return [Claimable(*row.values()) for row in found]


async def last_ends(connection: Connection, job_ids: Collection[int]) -> dict[int, datetime]:
    """When the last slot of each job ended; a job that never had one is absent."""
    return {row["id"]: row["finished_at"] for row in await connection.fetch(sql("last_ends"), list(job_ids))}


async def has_gates(connection: Connection) -> bool:
    """Whether there is a job with a gate at all."""
    return await connection.fetchval(sql("has_gates"))


async def stuck_gates(connection: Connection, after: int, limit: int, shards: Collection[int]) -> list[int]:
    """A page of jobs of these shards whose gates may have something to decide."""
    return [row["id"] for row in await connection.fetch(sql("stuck_gates"), after, limit, list(shards), SHARDS)]
