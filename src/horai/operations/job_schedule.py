"""The slots of a job that is created, changed, paused or resumed: each is made, deferred, or skipped with a reason."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from horai.core.errors import Invalid
from horai.core.job import Definition, JobStatus
from horai.core.timing import NONE_BETWEEN, Timing
from horai.core.wakes import CatchupWake, ScheduleWake
from horai.db import catch_ups as deferred
from horai.db import schedules
from horai.db.calendars import definition_of
from horai.db.claims import Claimable
from horai.db.jobs import JobRow
from horai.db.pool import TenantWrite
from horai.db.schedules import ScheduleCursor
from horai.operations import catch_ups as catchups
from horai.operations.catch_ups import PassedSlots
from horai.operations.scope import Scope
from horai.text import Hint, Wrong
from horai.time.cron import NO_NEXT_FIRE
from horai.time.misfire import MOST_CATCHUP, Policy, catch_up
from horai.time.schedule import fires_between, next_after, next_from

_MOMENT = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class JoinedSlots:
    """A job's schedule, locked against the trigger until commit. `is_behind`: late slots of the job must be made."""

    cursor: ScheduleCursor | None = None
    is_behind: bool = False

    @property
    def schedule_id(self) -> int | None:
        """Return the id of the schedule, or None if the job follows none."""
        return None if self.cursor is None else self.cursor.schedule_id


def announce(scope: Scope, joined: JoinedSlots, woken: list[Claimable]) -> None:
    """Wake the claimers of the new instances, the trigger of the schedule, and the catch-up if slots are late."""
    scope.wakeups.announce_new(woken)
    if joined.cursor is not None:
        scope.wakeups.publish(ScheduleWake(joined.cursor.schedule_id, joined.cursor.fire_time))
    if joined.is_behind:
        scope.wakeups.publish(CatchupWake())


async def join(connection: TenantWrite, timing: Timing, now: datetime) -> JoinedSlots:
    """Lock the schedule of a job with this timing until commit, and create it if it is new."""
    next_fire = None if timing.rhythm is None else next_after(timing.rhythm.schedule, now)
    if timing.rhythm is None or next_fire is None:
        return JoinedSlots()
    return JoinedSlots(await schedules.join_schedule(connection, timing.rhythm, next_fire, now))


def require_a_slot(timing: Timing, now: datetime) -> None:
    """Raise `Invalid` if a newly written schedule has no fire ahead. A stored one may have reached its end."""
    if timing.schedule is None or timing.next_after(now) is not None:
        return
    if next_after(timing.schedule, now) is None:
        raise Invalid.field("cron", NO_NEXT_FIRE)
    raise Invalid.field("endAt", NONE_BETWEEN if timing.start_at else Wrong.NONE_FROM_NOW())


def counts_from(timing: Timing, now: datetime) -> datetime:
    """Return the time from which the slots of a new job count: now, or its past `startAt` with the misfire policy `all`.

    Raise `Invalid` if that policy would make more late slots than it may.
    """
    start, misfire = timing.start_at, timing.misfire
    if timing.rhythm is None or start is None or start > now or misfire.policy is not Policy.all:
        return now
    late = catch_up(timing.rhythm.schedule, misfire, next_from(timing.rhythm.schedule, start) or now, now).made
    if late is not None:
        following = fires_between(timing.rhythm.schedule, late.first, late.last, MOST_CATCHUP)
        if sum(1 for _ in following) >= MOST_CATCHUP:
            raise Invalid.field("startAt", Wrong.TOO_MANY_SINCE_START(most=MOST_CATCHUP), Hint.BOUND_THE_CATCHUP())
    return start - _MOMENT


async def make_up_since_start(
    connection: TenantWrite, job: JobRow, timing: Timing, joined: JoinedSlots, now: datetime
) -> JoinedSlots:
    """Apply the misfire policy to the slots of a new job from its past `startAt` on, as after a downtime.

    Those of a paused job wait for its resume.
    """
    if joined.cursor is None or timing.rhythm is None or job.active_from >= now or job.status is JobStatus.PAUSED:
        return joined
    passed = PassedSlots(job.id, timing.rhythm, job.active_from + _MOMENT, joined.cursor)
    return JoinedSlots(joined.cursor, await catchups.make_up_for(connection, passed, now, "MISFIRE"))


async def rejoin(
    connection: TenantWrite, job: JobRow, definition: Definition, now: datetime
) -> tuple[JoinedSlots, datetime]:
    """Return the schedule of a changed job, and the time from which its slots count. Account for each slot."""
    before, timing = (await definition_of(connection, job)).own_timing, definition.own_timing
    if before != timing:
        require_a_slot(timing, now)
    left = None if job.schedule_id is None else await schedules.share_schedule_of(connection, job.schedule_id)
    joined = await join(connection, timing, now)
    if joined.cursor is None or before.schedule != timing.schedule:
        await deferred.give_up_catchups(connection, job.id, "JOB_CHANGED")
        return joined, now if before.schedule != timing.schedule else job.active_from
    if _resumes(job, definition):
        return await make_up_for_pause(connection, job, timing, joined, now), decided_until(job, joined)
    if left is None or job.status is JobStatus.PAUSED or joined.schedule_id == job.schedule_id:
        return joined, job.active_from
    return await _change_over(connection, job, timing, left, joined, now)


async def _change_over(
    connection: TenantWrite, job: JobRow, timing: Timing, left: ScheduleCursor, joined: JoinedSlots, now: datetime
) -> tuple[JoinedSlots, datetime]:
    """Move the job to another schedule of the same calendar. Their cursors may differ: repeat and lose no slot."""
    assert joined.cursor is not None  # noqa: S101 — the caller checked it
    assert timing.rhythm is not None  # noqa: S101
    since = _not_made(job, left)
    passed = PassedSlots(job.id, timing.rhythm, max(since, job.active_from + _MOMENT), joined.cursor)
    is_behind = await catchups.make_up_for(connection, passed, now, "MISFIRE")
    return JoinedSlots(joined.cursor, is_behind), max(job.active_from, since - _MOMENT)


async def make_up_for_pause(
    connection: TenantWrite, job: JobRow, timing: Timing, joined: JoinedSlots, now: datetime
) -> JoinedSlots:
    """Apply the misfire policy to the slots of a pause that ends, as after a downtime."""
    if joined.cursor is None or timing.rhythm is None:
        return joined
    since = max(job.missed_from or job.active_from, job.active_from + _MOMENT)
    passed = PassedSlots(job.id, timing.rhythm, since, joined.cursor)
    return JoinedSlots(joined.cursor, await catchups.make_up_for(connection, passed, now, "PAUSED"))


def decided_until(job: JobRow, joined: JoinedSlots) -> datetime:
    """Return the time from which the job's slots count.

    A schedule that the job joined during a pause may be behind the one that it left.
    """
    if job.missed_from is None or joined.cursor is None or joined.cursor.fire_time >= job.missed_from:
        return job.active_from
    return max(job.active_from, job.missed_from - _MOMENT)


def _resumes(job: JobRow, definition: Definition) -> bool:
    return job.status is JobStatus.PAUSED and definition.status is JobStatus.ACTIVE


def missed_from(job: JobRow, cursor: ScheduleCursor | None) -> datetime | None:
    """Return the time from which a paused job misses slots. Its schedule, locked until commit, may itself be late."""
    if job.status is JobStatus.PAUSED:
        return job.missed_from
    return None if cursor is None else _not_made(job, cursor)


def _not_made(job: JobRow, cursor: ScheduleCursor) -> datetime:
    """Return the first instant whose slot a schedule has not made for the job.

    A partly made slot has passed the jobs with ids up to the cursor's `last_job`.
    """
    return cursor.fire_time + _MOMENT if 0 < job.id <= cursor.last_job else cursor.fire_time
