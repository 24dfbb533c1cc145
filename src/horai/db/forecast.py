"""What a forecast counts: one function per statement of sql/forecast.sql, and the crowds their rows come to."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from horai.core.forecast import Crowd
from horai.core.timing import Rhythm
from horai.db.catalog import sql
from horai.db.pool import Connection


@dataclass(frozen=True, slots=True)
class Followers:
    """How many jobs follow a schedule with that jitter, in minutes."""

    schedule_id: int
    spec: str
    jitter: int
    jobs: int


@dataclass(frozen=True, slots=True)
class BoundedFollowers:
    """How many of the followers have these bounds; `is_absent`: they have no slot in the time that was asked for."""

    schedule_id: int
    jitter: int
    start_at: datetime | None
    end_at: datetime | None
    is_absent: bool
    jobs: int


async def followers(connection: Connection, tenant_id: int) -> list[Followers]:
    """The tenant's active jobs, by schedule and jitter."""
    return [Followers(*row.values()) for row in await connection.fetch(sql("followers"), tenant_id)]


async def bounded_followers(
    connection: Connection, tenant_id: int, since: datetime, until: datetime
) -> list[BoundedFollowers]:
    """Those of the followers that are not there all the time from `since` until `until`."""
    rows = await connection.fetch(sql("bounded_followers"), tenant_id, since, until)
    return [BoundedFollowers(*row.values()) for row in rows]


async def count_after_finish(connection: Connection, tenant_id: int) -> int:
    """How many active jobs of the tenant count from the end of their last run."""
    return await connection.fetchval(sql("count_after_finish"), tenant_id)


def crowds_of(all_followers: Sequence[Followers], bounded: Sequence[BoundedFollowers]) -> list[Crowd]:
    """Every job once: with its bounds where it has some, else with those that are always there."""
    schedules = {row.schedule_id: row.spec for row in all_followers}
    parsed = {schedule_id: Rhythm.from_spec(json.loads(spec)).schedule for schedule_id, spec in schedules.items()}
    unbounded = {(row.schedule_id, row.jitter): row.jobs for row in all_followers}
    for row in bounded:
        unbounded[row.schedule_id, row.jitter] -= row.jobs
    crowds = [Crowd(parsed[schedule_id], jobs, jitter) for (schedule_id, jitter), jobs in unbounded.items() if jobs]
    return crowds + [
        Crowd(parsed[row.schedule_id], row.jobs, row.jitter, row.start_at, row.end_at)
        for row in bounded
        if not row.is_absent
    ]
