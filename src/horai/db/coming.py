"""What waits for its time: one function per statement of sql/coming.sql."""

from datetime import datetime

from horai.db.catalog import sql
from horai.db.pool import Connection


async def waiting_slot(connection: Connection, job_id: int) -> datetime | None:
    """The fire time of the first slot of a job that has not begun; None when there is none."""
    return await connection.fetchval(sql("waiting_slot"), job_id)
