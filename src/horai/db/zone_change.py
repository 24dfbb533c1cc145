"""Schedules that were computed by other zone rules: one function per statement of sql/rezone.sql."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from horai.core.settings import SHARDS
from horai.db.catalog import sql
from horai.db.pool import Connection
from horai.db.schedules import ScheduleCursor
from horai.time.zone_change import ZoneMark
from horai.time.zones import version


@dataclass(frozen=True, slots=True)
class StaleSchedule:
    """A schedule held by whoever brings it to the rules of now; `mark` is None where nobody kept one."""

    cursor: ScheduleCursor
    spec: Mapping[str, Any]
    mark: ZoneMark | None


@dataclass(frozen=True, slots=True)
class Move:
    """Where a cursor stands by the rules of now; None: it never fires again."""

    cursor: ScheduleCursor
    next_fire: datetime | None


async def stale_schedules(connection: Connection, behind: int, shards: Collection[int], limit: int) -> list[int]:
    """The next ids of these shards whose coming slot was computed by other rules than ours, in order."""
    rows = await connection.fetch(sql("stale_schedules"), behind, version(), list(shards), SHARDS, limit)
    return [row["id"] for row in rows]


async def lock_stale_schedules(connection: Connection, ids: Sequence[int]) -> list[StaleSchedule]:
    """Those of `ids` that are still stale and that nobody else works on, locked."""
    rows = await connection.fetch(sql("lock_stale_schedules"), list(ids), version())
    return [
        StaleSchedule(
            ScheduleCursor(row["id"], row["fire_time"], row["last_job"]),
            json.loads(row["spec"]),
            None if row["passed"] is None or row["wall"] is None else ZoneMark(row["passed"], row["wall"]),
        )
        for row in rows
    ]


async def rezone_schedules(connection: Connection, moves: Sequence[Move]) -> set[int]:
    """Moves cursors that still stand where they were seen, and notes our rules; their ids."""
    rows = await connection.fetch(
        sql("rezone_schedules"),
        [move.cursor.schedule_id for move in moves],
        [move.cursor.fire_time for move in moves],
        [move.cursor.last_job for move in moves],
        [move.next_fire for move in moves],
        version(),
    )
    return {row["id"] for row in rows}
