"""What may need somebody: one function per statement of sql/attention.sql."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from horai.db.catalog import sql
from horai.db.pool import Connection
from horai.time.durations import parse_duration

JOBS_LOOKED_AT = 1_001
REFRESHES_LOOKED_AT = 500


@dataclass(frozen=True, slots=True)
class AilingJob:
    """A job with instances that died, or that failed and are tried again: how many, and the last."""

    job_id: int
    job: str
    instances: int
    last_at: datetime
    error_code: str | None


async def dying_jobs(connection: Connection, tenant_id: int, since: datetime, limit: int) -> list[AilingJob]:
    """Jobs with dead letters since then that nobody has seen to, the most first."""
    return [AilingJob(*row.values()) for row in await connection.fetch(sql("dying_jobs"), tenant_id, since, limit)]


async def failing_jobs(connection: Connection, tenant_id: int, limit: int) -> list[AilingJob]:
    """Jobs whose instances are tried again, the most first."""
    return [AilingJob(*row.values()) for row in await connection.fetch(sql("failing_jobs"), tenant_id, limit)]


@dataclass(frozen=True, slots=True)
class LateInstance:
    """An instance that is due and that nobody has claimed; `instances`: how many such there are."""

    id: int
    job_id: int
    job: str
    key: str | None
    due: datetime
    instances: int


async def late_instances(connection: Connection, tenant_id: int, before: datetime, limit: int) -> list[LateInstance]:
    """Those that were due before then, the oldest first."""
    return [
        LateInstance(*row.values()) for row in await connection.fetch(sql("late_instances"), tenant_id, before, limit)
    ]


@dataclass(frozen=True, slots=True)
class PausedJob:
    """A job that is paused; `jobs`: how many such there are."""

    id: int
    name: str
    note: str | None
    paused_at: datetime | None
    jobs: int


async def paused_jobs(connection: Connection, tenant_id: int, limit: int) -> list[PausedJob]:
    """The last that were paused."""
    rows = await connection.fetch(sql("paused_jobs"), tenant_id, limit, JOBS_LOOKED_AT)
    return [PausedJob(*row.values()) for row in rows]


@dataclass(frozen=True, slots=True)
class PausedQueue:
    """A queue that is paused, and since when it is as it is."""

    name: str
    updated_at: datetime


async def paused_queues(connection: Connection, tenant_id: int, limit: int) -> list[PausedQueue]:
    """By name."""
    return [PausedQueue(*row.values()) for row in await connection.fetch(sql("paused_queues"), tenant_id, limit)]


@dataclass(frozen=True, slots=True)
class OpenBackfill:
    """A backfill that is not over."""

    id: int
    job_id: int
    job: str
    status: int
    total: int
    made: int
    ended: int


async def backfills_under_way(connection: Connection, tenant_id: int, limit: int) -> list[OpenBackfill]:
    """The newest first."""
    return [OpenBackfill(*row.values()) for row in await connection.fetch(sql("backfills_under_way"), tenant_id, limit)]


@dataclass(frozen=True, slots=True)
class Drift:
    """A reconciler whose last report has something to tell; `surplus` is None when nobody knows."""

    id: int
    name: str
    report_id: int
    started_at: datetime
    missing: int
    created: int
    surplus: int | None
    faulty: int
    error: str | None


async def drifting_reconcilers(connection: Connection, tenant_id: int, limit: int) -> list[Drift]:
    """By their last reports, the newest first."""
    return [Drift(*row.values()) for row in await connection.fetch(sql("drifting_reconcilers"), tenant_id, limit)]


@dataclass(frozen=True, slots=True)
class StaleRefresh:
    """A refresh job, its window, and since when its oldest entity has not been run."""

    job_id: int
    job: str
    window: timedelta
    oldest: datetime | None


async def refreshes(connection: Connection, tenant_id: int) -> list[StaleRefresh]:
    """All refresh jobs that are not paused, up to some hundreds."""
    return [
        StaleRefresh(id_, name, parse_duration(window), min((at for at in times if at is not None), default=None))
        for id_, name, window, *times in await connection.fetch(sql("refreshes"), tenant_id, REFRESHES_LOOKED_AT)
    ]
