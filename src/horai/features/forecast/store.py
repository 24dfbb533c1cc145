"""Counts for a forecast: one function per statement of store.sql, and the crowds built from their rows."""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from horai.core.job import BUILTIN
from horai.core.timing import Rhythm
from horai.db.catalog import sql
from horai.db.pool import TenantRead
from horai.features.forecast import Crowd
from horai.time.schedule import Schedule


@dataclass(frozen=True, slots=True)
class Followers:
    """The number of jobs that follow a schedule with that jitter, in minutes."""

    schedule_id: int
    spec: str
    jitter: int
    jobs: int


@dataclass(frozen=True, slots=True)
class BoundedFollowers:
    """The number of followers with these bounds; `is_absent`: they have no slot in the requested time."""

    schedule_id: int
    jitter: int
    start_at: datetime | None
    end_at: datetime | None
    is_absent: bool
    jobs: int


async def followers(connection: TenantRead, tenant_id: int) -> list[Followers]:
    """Count the tenant's active jobs by schedule and jitter."""
    return [Followers(*row.values()) for row in await connection.fetch(sql("followers"), tenant_id)]


async def bounded_followers(
    connection: TenantRead, tenant_id: int, since: datetime, until: datetime
) -> list[BoundedFollowers]:
    """Count the followers that start after `since` or end before `until`."""
    rows = await connection.fetch(sql("bounded_followers"), tenant_id, since, until)
    return [BoundedFollowers(*row.values()) for row in rows]


async def count_after_finish(connection: TenantRead, tenant_id: int) -> int:
    """Count the active jobs of the tenant whose interval begins at the end of their last run."""
    return await connection.fetchval(sql("count_after_finish"), tenant_id)


@dataclass(frozen=True, slots=True)
class HighestMeasured:
    """The minute with the most starts that was measured, and their number."""

    at: datetime
    starts: int


async def highest_measured(connection: TenantRead, tenant_id: int, period: timedelta) -> HighestMeasured | None:
    """Return the most starts per minute of the period; None if no start was measured."""
    row = await connection.fetchrow(sql("highest_measured"), tenant_id, period)
    return None if row is None else HighestMeasured(*row.values())


async def examples(
    connection: TenantRead, tenant_id: int, schedule_ids: Sequence[int], most: int
) -> Mapping[int, list[str]]:
    """Return the names of at most `most` jobs of each schedule."""
    found: defaultdict[int, list[str]] = defaultdict(list)
    for schedule_id, name in await connection.fetch(sql("examples"), tenant_id, schedule_ids, BUILTIN, most):
        found[schedule_id].append(name)
    return found


@dataclass(frozen=True, slots=True)
class Follower:
    """A job of a schedule: its name and its jitter."""

    name: str
    jitter: timedelta


async def jobs_of_schedules(
    connection: TenantRead, tenant_id: int, schedule_ids: Sequence[int], most: int
) -> Mapping[int, list[Follower]]:
    """Return the first jobs of each schedule, at most `most`."""
    found: defaultdict[int, list[Follower]] = defaultdict(list)
    for schedule_id, name, ms in await connection.fetch(
        sql("jobs_of_schedules"), tenant_id, schedule_ids, BUILTIN, most
    ):
        found[schedule_id].append(Follower(name, timedelta(milliseconds=ms)))
    return found


def schedules_of(all_followers: Sequence[Followers]) -> dict[int, Schedule]:
    """Return the followed schedules by id; several ids may have the same one, and differ in their misfire policy."""
    specs = {row.schedule_id: row.spec for row in all_followers}
    return {schedule_id: Rhythm.from_spec(json.loads(spec)).schedule for schedule_id, spec in specs.items()}


def crowds_of(
    parsed: Mapping[int, Schedule], all_followers: Sequence[Followers], bounded: Sequence[BoundedFollowers]
) -> list[Crowd]:
    """Build crowds that contain every job once: with its bounds if it has some, otherwise without."""
    unbounded = {(row.schedule_id, row.jitter): row.jobs for row in all_followers}
    for row in bounded:
        unbounded[row.schedule_id, row.jitter] -= row.jobs
    crowds = [Crowd(parsed[schedule_id], jobs, jitter) for (schedule_id, jitter), jobs in unbounded.items() if jobs]
    return crowds + [
        Crowd(parsed[row.schedule_id], row.jobs, row.jitter, row.start_at, row.end_at)
        for row in bounded
        if not row.is_absent
    ]
