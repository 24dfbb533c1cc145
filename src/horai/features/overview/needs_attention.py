"""Conditions that may need attention: one function per statement of needs_attention.sql."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta

from horai.core.backfill_status import BackfillStatus
from horai.db import queues
from horai.db.catalog import sql
from horai.db.pool import TenantRead
from horai.db.queues import QueueLoad
from horai.time.durations import parse_duration

JOBS_LOOKED_AT = 1_001
REFRESHES_LOOKED_AT = 500


@dataclass(frozen=True, slots=True)
class AilingJob:
    """A job with instances that died, or that failed and are retried: their number, and the last one."""

    job_id: int
    job: str
    instances: int
    last_at: datetime
    error_code: str | None


async def dying_jobs(connection: TenantRead, tenant_id: int, since: datetime, limit: int) -> list[AilingJob]:
    """Return jobs with open dead letters since `since`, those with the most first."""
    return [AilingJob(*row.values()) for row in await connection.fetch(sql("dying_jobs"), tenant_id, since, limit)]


async def failing_jobs(connection: TenantRead, tenant_id: int, limit: int) -> list[AilingJob]:
    """Return jobs whose instances are retried, those with the most first."""
    return [AilingJob(*row.values()) for row in await connection.fetch(sql("failing_jobs"), tenant_id, limit)]


@dataclass(frozen=True, slots=True)
class LateInstance:
    """An instance that is due and not claimed; `instances`: the number of such instances."""

    id: int
    job_id: int
    job: str
    key: str | None
    due: datetime
    instances: int


async def late_instances(
    connection: TenantRead, tenant_id: int, before: datetime, jammed: Collection[int], limit: int
) -> list[LateInstance]:
    """Return unclaimed instances that were due before `before`, oldest first; those of the queues `jammed` are left out."""
    rows = await connection.fetch(sql("late_instances"), tenant_id, before, list(jammed), limit)
    return [LateInstance(*row.values()) for row in rows]


@dataclass(frozen=True, slots=True)
class HeldCount:
    """The number of due instances that a pause holds. `more`: not all were counted."""

    count: int
    more: bool


@dataclass(frozen=True, slots=True)
class PausedJob:
    """A paused job; `jobs`: the number of paused jobs."""

    id: int
    name: str
    note: str | None
    paused_at: datetime | None
    jobs: int
    waiting: HeldCount


async def paused_jobs(connection: TenantRead, tenant_id: int, limit: int) -> list[PausedJob]:
    """Return the jobs that were paused last."""
    rows = await connection.fetch(sql("paused_jobs"), tenant_id, limit, JOBS_LOOKED_AT)
    return [
        PausedJob(
            row["id"],
            row["name"],
            row["note"],
            row["paused_at"],
            row["jobs"],
            HeldCount(row["waiting"], row["is_more"]),
        )
        for row in rows
    ]


@dataclass(frozen=True, slots=True)
class PausedQueue:
    """A paused queue, the time of its last change, the reason, and the due instances that it holds."""

    name: str
    updated_at: datetime
    note: str | None
    waiting: HeldCount


async def paused_queues(connection: TenantRead, tenant_id: int, limit: int) -> list[PausedQueue]:
    """Return paused queues, by name."""
    rows = await connection.fetch(sql("paused_queues"), tenant_id, limit)
    loads = await queues.loads_of_queues(connection, [row["id"] for row in rows]) if rows else {}
    return [PausedQueue(row["name"], row["updated_at"], row["note"], _held_by(loads.get(row["id"]))) for row in rows]


def _held_by(load: QueueLoad | None) -> HeldCount:
    return HeldCount(0, more=False) if load is None else HeldCount(load.waiting, more=load.running is None)


@dataclass(frozen=True, slots=True)
class OpenBackfill:
    """A backfill that is not finished."""

    id: int
    job_id: int
    job: str
    status: BackfillStatus
    total: int
    made: int
    ended: int
    created_at: datetime


async def backfills_under_way(connection: TenantRead, tenant_id: int, limit: int) -> list[OpenBackfill]:
    """Return open backfills, newest first."""
    rows = await connection.fetch(sql("backfills_under_way"), tenant_id, limit)
    return [OpenBackfill(id_, job_id, job, BackfillStatus(status), *rest) for id_, job_id, job, status, *rest in rows]


@dataclass(frozen=True, slots=True)
class Drift:
    """A reconciler whose last report has findings or an error; `surplus` is None if it is unknown."""

    id: int
    name: str
    report_id: int
    started_at: datetime
    missing: int
    created: int
    surplus: int | None
    faulty: int
    error: str | None


async def drifting_reconcilers(connection: TenantRead, tenant_id: int, limit: int) -> list[Drift]:
    """Return drifting reconcilers by their last reports, newest first."""
    return [Drift(*row.values()) for row in await connection.fetch(sql("drifting_reconcilers"), tenant_id, limit)]


@dataclass(frozen=True, slots=True)
class FailingChannel:
    """An alert channel that takes no messages: the message that it refused first, or the last one, which was given up."""

    name: str
    kind: str
    status: str
    attempt: int
    http_status: int | None
    error: str | None
    since: datetime


async def failing_channels(
    connection: TenantRead, tenant_id: int, before: datetime, limit: int
) -> list[FailingChannel]:
    """Return channels that refuse a message since before `before`, or whose last message was given up."""
    rows = await connection.fetch(sql("failing_channels"), tenant_id, before, limit)
    return [FailingChannel(*row.values()) for row in rows]


@dataclass(frozen=True, slots=True)
class ParkedSink:
    """A sink that is parked, and its last error."""

    name: str
    kind: str
    failures: int
    failing_since: datetime | None
    last_error: str | None


async def parked_sinks(connection: TenantRead, tenant_id: int, limit: int) -> list[ParkedSink]:
    """Return the parked sinks, those that have failed longest first."""
    return [ParkedSink(*row.values()) for row in await connection.fetch(sql("parked_sinks"), tenant_id, limit)]


@dataclass(frozen=True, slots=True)
class StaleRefresh:
    """A refresh job, its window, and the time since which its oldest entity has not run."""

    job_id: int
    job: str
    window: timedelta
    oldest: datetime | None


async def refreshes(connection: TenantRead, tenant_id: int) -> list[StaleRefresh]:
    """Return the refresh jobs that are not paused, at most `REFRESHES_LOOKED_AT`."""
    return [
        StaleRefresh(id_, name, parse_duration(window), min((at for at in times if at is not None), default=None))
        for id_, name, window, *times in await connection.fetch(sql("refreshes"), tenant_id, REFRESHES_LOOKED_AT)
    ]
