"""Next fire times of jobs, for lists: read from the cursors of their schedules instead of computed for each job."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from horai.core.timing import calendar_named
from horai.db.calendars import read_calendars
from horai.db.jobs import JobRow, definition_of
from horai.db.pool import TenantRead
from horai.db.upcoming import next_slots
from horai.time.work_calendar import WorkCalendar

_MOMENT = timedelta(microseconds=1)


async def next_fire_times(connection: TenantRead, jobs: Sequence[JobRow]) -> dict[int, datetime]:
    """Return the next fire time of each job by its id.

    Jobs that are paused, have no schedule, or are at the end of it are left out.
    """
    slots = await next_slots(connection, [job.id for job in jobs])
    names = {name for job in jobs if job.id in slots and (name := calendar_named(job.document)) is not None}
    days = await read_calendars(connection, jobs[0].tenant_id, names) if names else {}
    fires = {job.id: _fire(job, slots[job.id], days) for job in jobs if job.id in slots}
    return {job_id: fire for job_id, fire in fires.items() if fire is not None}


def _fire(job: JobRow, slot: datetime, days: Mapping[str, WorkCalendar]) -> datetime | None:
    """Return the job's next fire time, or None after its end.

    The cursor is shared with other jobs: its next slot may be before this job begins, or after its end.
    """
    timing = definition_of(job.document, days.get(calendar_named(job.document) or "")).timing
    if slot <= job.active_from or (timing.start_at is not None and slot < timing.start_at):
        return timing.next_after(max(slot - _MOMENT, job.active_from))
    return None if timing.end_at is not None and slot > timing.end_at else slot
