"""The job hooks of backfills."""

from horai.db.pool import AnyWrite
from horai.features.backfill import store
from horai.operations.job_hooks import JobHooks


async def _waiting_lane(connection: AnyWrite, job_id: int) -> int | None:
    """Return the low-priority lane while a backfill of the job is open: its instances keep their low priority."""
    return await store.low_lane(connection, job_id) if await store.has_open_backfill(connection, job_id) else None


HOOKS = JobHooks(waiting_lane=_waiting_lane)
