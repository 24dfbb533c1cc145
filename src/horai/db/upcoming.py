"""What waits for its time: one function per statement of sql/coming.sql."""

from collections.abc import Collection
from datetime import datetime

from horai.db.catalog import sql
from horai.db.pool import Connection


async def waiting_slot(connection: Connection, job_id: int) -> datetime | None:
    """The fire time of the first slot of a job that has not begun; None when there is none."""
    return await connection.fetchval(sql("waiting_slot"), job_id)


async def next_slots(connection: Connection, job_ids: Collection[int]) -> dict[int, datetime]:
    """The slot that the schedule of each job makes next; none of jobs that are paused, or follow no schedule."""
    return {row["id"]: row["fire_time"] for row in await connection.fetch(sql("next_slots"), list(job_ids))}
