"""When jobs fire next, for lists: read from their schedules' cursors, not reckoned anew for each."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from horai.db.jobs import JobRow, definition_of
from horai.db.pool import Connection
from horai.db.upcoming import next_slots

_MOMENT = timedelta(microseconds=1)


async def next_fire_times(connection: Connection, jobs: Sequence[JobRow]) -> dict[int, datetime]:
    """The next fire time of each job by its id; those that are paused, have no schedule, or are at its end have none."""
    slots = await next_slots(connection, [job.id for job in jobs])
    fires = {job.id: _fire(job, slots[job.id]) for job in jobs if job.id in slots}
    return {job_id: fire for job_id, fire in fires.items() if fire is not None}


def _fire(job: JobRow, slot: datetime) -> datetime | None:
    """The cursor is shared with other jobs: what it comes to next may be before this one begins, or behind its end."""
    timing = definition_of(job.document).timing
    if slot <= job.active_from or (timing.start_at is not None and slot < timing.start_at):
        return timing.next_after(max(slot - _MOMENT, job.active_from))
    return None if timing.end_at is not None and slot > timing.end_at else slot
