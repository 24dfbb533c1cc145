"""Schedules that were computed with other zone rules: one function per statement of sql/zone_change.sql."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from horai.core.settings import SHARDS
from horai.db.catalog import sql
from horai.db.pool import Platform
from horai.db.schedules import ScheduleCursor
from horai.time.zone_change import ZoneMark
from horai.time.zones import version


@dataclass(frozen=True, slots=True)
class StaleSchedule:
    """A locked schedule that has to be recomputed with the current zone rules. `mark` is None if none was stored."""

    cursor: ScheduleCursor
    spec: Mapping[str, Any]
    mark: ZoneMark | None


@dataclass(frozen=True, slots=True)
class Move:
    """The next fire time of a cursor by the current zone rules; None: it never fires again."""

    cursor: ScheduleCursor
    next_fire: datetime | None


async def stale_schedules(connection: Platform, behind: int, shards: Collection[int], limit: int) -> list[int]:
    """Return the next ids, in order, of these shards' schedules that were computed with other zone rules than ours."""
    rows = await connection.fetch(sql("stale_schedules"), behind, version(), list(shards), SHARDS, limit)
    return [row["id"] for row in rows]


async def lock_stale_schedules(connection: Platform, ids: Sequence[int]) -> list[StaleSchedule]:
    """Lock and return those of `ids` that are still stale; skip schedules that another transaction has locked."""
    rows = await connection.fetch(sql("lock_stale_schedules"), list(ids), version())
    return [
        StaleSchedule(
            ScheduleCursor(row["id"], row["fire_time"], row["last_job"]),
            json.loads(row["spec"]),
            None if row["passed"] is None or row["wall"] is None else ZoneMark(row["passed"], row["wall"]),
        )
        for row in rows
    ]


async def rezone_schedules(connection: Platform, moves: Sequence[Move]) -> set[int]:
    """Move cursors that have not changed since they were read, and store our rules version; return their ids."""
    rows = await connection.fetch(
        sql("rezone_schedules"),
        [move.cursor.schedule_id for move in moves],
        [move.cursor.fire_time for move in moves],
        [move.cursor.last_job for move in moves],
        [move.next_fire for move in moves],
        version(),
    )
    return {row["id"] for row in rows}
