"""Schedules that were computed with other zone rules: one function per statement of sql/zone_change.sql."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from horai.core.limits import SHARDS
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


async def stale_schedules(
    connection: Platform, behind: int, shards: Collection[int], portion: int
) -> tuple[int | None, list[int]]:
    """Read up to `portion` schedules with an id above `behind`; return the last id, and those of these shards that are stale.

    A stale schedule was computed with other zone rules than ours. The last id is None if no schedule is left after them.
    """
    row = await connection.fetchrow(sql("stale_schedules"), behind, version(), list(shards), SHARDS, portion)
    assert row is not None  # noqa: S101 - an aggregate always returns a row
    return row["last_id"], row["stale"]


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
