"""Upcoming slots of jobs: one function per statement of sql/upcoming.sql."""

from collections.abc import Collection
from datetime import datetime

from horai.db.catalog import sql
from horai.db.pool import TenantRead


async def waiting_slot(connection: TenantRead, job_id: int) -> datetime | None:
    """Return the fire time of the first slot of a job that has not started, or None."""
    return await connection.fetchval(sql("waiting_slot"), job_id)


async def next_slots(connection: TenantRead, job_ids: Collection[int]) -> dict[int, datetime]:
    """Return the next slot that each job's schedule creates; jobs that are paused or have no schedule are absent."""
    return {row["id"]: row["fire_time"] for row in await connection.fetch(sql("next_slots"), list(job_ids))}
