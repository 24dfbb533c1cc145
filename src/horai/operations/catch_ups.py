"""The slots that a schedule passed without one of its jobs.

The job was paused, or followed another schedule of the same calendar until now. The job's misfire policy decides about
these slots, as after a downtime.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from horai.core.timing import Rhythm
from horai.db import catch_ups, schedules
from horai.db.pool import TenantWrite
from horai.db.schedules import ScheduleCursor, SkippedRange
from horai.time.misfire import CatchUpPlan, Policy, Stretch, catch_up, latest_until
from horai.time.schedule import next_from

Cause = Literal["MISFIRE", "PAUSED"]

_MOMENT = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class PassedSlots:
    """A job's slots from `since` on that its schedule will not make: those before `cursor`, where it continues."""

    job_id: int
    rhythm: Rhythm
    since: datetime
    cursor: ScheduleCursor

    @property
    def until(self) -> datetime:
        """Return the first instant whose slot the schedule makes for the job.

        A partly made slot has passed the jobs with ids up to the cursor's `last_job`.
        """
        is_passed = 0 < self.job_id <= self.cursor.last_job
        return self.cursor.fire_time + _MOMENT if is_passed else self.cursor.fire_time


def reason_of(cause: Cause, policy: Policy) -> str:
    """Return the code stored as the reason for which slots were skipped."""
    return f"{cause}_{policy.upper()}"


async def make_up_for(connection: TenantWrite, passed: PassedSlots, now: datetime, cause: Cause) -> bool:
    """Skip or defer the passed slots by the job's misfire policy. Return whether slots were deferred."""
    schedule, misfire = passed.rhythm.schedule, passed.rhythm.misfire
    first = next_from(schedule, passed.since)
    if first is None or first >= passed.until:
        return False
    last = latest_until(schedule, passed.until - _MOMENT, first)
    plan = _plan(passed, first, last, now)
    schedule_id = passed.cursor.schedule_id
    if plan.skipped is not None:
        skipped = SkippedRange(
            plan.skipped.first, plan.skipped.last, plan.skipped.slots, reason_of(cause, misfire.policy)
        )
        await schedules.insert_skip(connection, schedule_id, passed.job_id, skipped)
    made_from = plan.goes_on_at if plan.made is None else plan.made.first
    if made_from is None or made_from > last:
        return False
    await catch_ups.defer_slots_of_job(connection, passed.job_id, schedule_id, made_from, last)
    return True


def _plan(passed: PassedSlots, first: datetime, last: datetime, now: datetime) -> CatchUpPlan:
    """Return the plan for the passed slots.

    While the schedule itself is late, the one slot of `once` is among those that the schedule still has to make.
    """
    misfire = passed.rhythm.misfire
    if misfire.policy is Policy.once and passed.cursor.fire_time < now - misfire.after:
        return CatchUpPlan(None, None, Stretch(first, last))
    return catch_up(passed.rhythm.schedule, misfire, first, now)
