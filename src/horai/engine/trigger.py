"""The trigger: the stage that makes the slots of schedules at their fire times.

The trigger computes a fire once per distinct schedule and makes it for all jobs of the schedule with one INSERT …
SELECT per chunk, in the transaction that moves the schedule's cursor: either the slot is made once, or the cursor has
not moved. The wheel holds the fires of the coming minute. It is a cache of the index on `fire_time` and is refilled
before it runs out.

A late schedule continues at its first slot that is not late. Of the late slots, the trigger makes a single one itself
and leaves several to the catch-up; slots that the misfire policy leaves out are recorded as a range.

A node handles the schedules of its shards. The shards only save other nodes the same work: the lock on the schedule's
row and its cursor keep two triggers on one schedule apart.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import structlog

from horai.core.controls import ControlBoard, is_left_out
from horai.core.limits import SHARDS
from horai.core.settings import EngineSettings
from horai.core.shards import Duty
from horai.core.wakes import CatchupWake, LaneWake, OverlapWake, ScheduleWake
from horai.db import catch_ups, schedules
from horai.db.pool import Platform
from horai.db.schedules import LockedSchedule, MadeSlots, ScheduleCursor, SkippedRange, Step
from horai.db.stage_connection import StageConnection
from horai.db.wakeups import Wakeups
from horai.engine.dispatch.scans import TICK, from_micros, to_micros
from horai.engine.lease import Lease
from horai.engine.zone_change import ZoneChange, rezone_now
from horai.operations.catch_ups import reason_of
from horai.operations.traces import Traces
from horai.time.misfire import CatchUpPlan, catch_up
from horai.time.schedule import next_after, next_from
from horai.time.wheel import Wheel
from horai.time.zone_change import next_undone

log = structlog.get_logger(__name__)

SCHEDULES_AT_ONCE = 20
FILL_LIMIT = 100_000
HELD_PAUSE = timedelta(milliseconds=20)
NOT_TRUSTED_PAUSE = timedelta(milliseconds=200)


class Trigger:
    """The stage that makes slots."""

    name = "trigger"

    def __init__(
        self,
        line: StageConnection,
        lease: Lease,
        wakeups: Wakeups,
        settings: EngineSettings,
        now: datetime,
        controls: ControlBoard | None = None,
    ) -> None:
        self.line = line
        self.signal = asyncio.Event()
        self._lease = lease
        self._wakeups = wakeups
        self._settings = settings
        self._controls = controls or ControlBoard()
        self._wheel: Wheel[int] = Wheel(TICK, to_micros(now))
        self._fill_at = now
        self._shards: frozenset[int] = frozenset()
        self._is_stale = False
        self._rezoning = ZoneChange()
        self.traces: Traces | None = None

    def hear(self, wake: ScheduleWake) -> None:
        """Add a schedule that is new or active again to the wheel. Ignore schedules of other nodes' shards."""
        if wake.schedule_id % SHARDS in self._shards:
            self._wheel.put(wake.schedule_id, to_micros(wake.fire_time))
            self.signal.set()

    def reload(self) -> None:
        """Reload the wheel from the table: the shards have changed, or wakes may have been missed."""
        self._is_stale = True
        self.signal.set()

    async def step(self, now: datetime) -> datetime:
        """Make every due slot of the node's shards."""
        if not self._lease.holds():
            return now + NOT_TRUSTED_PAUSE
        shards = self._lease.shards(Duty.trigger)
        if self._is_stale or shards != self._shards:
            self._start_over(shards, now)
        if not shards:
            return now + self._settings.horizon / 2
        connection = await self.line.get()
        for schedule_id, fire_time in (await self._rezoning.step(connection, shards, now)).items():
            self._wheel.put(schedule_id, to_micros(fire_time))
        if now >= self._fill_at:
            await self._fill(connection, now)
        due = self._wheel.advance(to_micros(now))
        for first in range(0, len(due), SCHEDULES_AT_ONCE):
            some = due[first : first + SCHEDULES_AT_ONCE]
            try:
                await self._fire_readable(connection, some, now)
            except BaseException:
                for schedule_id in due[first:]:
                    self._wheel.put(schedule_id, to_micros(now))
                raise
        upcoming = self._wheel.next_at()
        next_fire = self._fill_at if upcoming is None else from_micros(upcoming)
        return min(self._fill_at, next_fire, self._rezoning.next_at or self._fill_at)

    def _start_over(self, shards: frozenset[int], now: datetime) -> None:
        """Clear the wheel. The next fill loads overdue fires and those within the horizon for these shards."""
        self._is_stale = False
        self._shards = shards
        self._wheel = Wheel(TICK, to_micros(now))
        self._fill_at = now
        self._rezoning.begin(now)

    async def _fill(self, connection: Platform, now: datetime) -> None:
        coming = await schedules.coming_schedules(connection, now + self._settings.horizon, FILL_LIMIT, self._shards)
        for schedule_id, fire_time in coming:
            self._wheel.put(schedule_id, to_micros(fire_time))
        self._fill_at = now + self._settings.horizon / 2

    async def _fire_readable(self, connection: Platform, ids: Sequence[int], now: datetime) -> None:
        """Fire all schedules together, or one by one if one of them cannot be read here.

        A schedule cannot be read if, for example, our rules lack its zone. The others do not wait for it; it is retried
        with the next fill.
        """
        try:
            await self._fire(connection, ids, now)
        except ValueError as error:
            if len(ids) == 1:
                log.error("schedule cannot be read; its slots wait", schedule=ids[0], error=str(error))
                return
            for schedule_id in ids:
                await self._fire_readable(connection, [schedule_id], now)

    async def _fire(self, connection: Platform, ids: Sequence[int], now: datetime) -> None:
        """Lock the schedules, make their slots and advance their cursors in one transaction.

        If a slot was computed by other zone rules, recompute it and check it again.
        """
        begun = 0 if self.traces is None else self.traces.now()
        async with connection.transaction():
            held = await schedules.lock_schedules(connection, ids)
            stale = [row.cursor.schedule_id for row in held if row.is_stale and not row.cursor.last_job]
            rezoned = await rezone_now(connection, stale) if stale else {}
            locked = {row.cursor.schedule_id: row for row in held if row.cursor.schedule_id not in stale}
            ways = {schedule_id: _way(row) for schedule_id, row in locked.items() if row.is_due}
            slots = [slot for way in ways.values() if (slot := way.slot_cursor) is not None]
            chunk, thinned = self._settings.slot_chunk, self._thinned(ways)
            made = await schedules.make_slots(connection, slots, chunk, thinned) if slots else {}
            fired = await schedules.slots_made(connection, slots, made) if self.traces is not None and made else ()
            steps = [self._advance(way, made.get(schedule_id)) for schedule_id, way in ways.items()]
            await schedules.advance_schedules(connection, steps)
            for way in ways.values():
                await _leave_behind(connection, way)
        if self.traces is not None:
            self.traces.made(fired, begun)
        for schedule_id, fire_time in rezoned.items():
            self._wheel.put(schedule_id, to_micros(fire_time))
        self._follow_up(locked, steps, made.values())
        if any(way.plan.made is not None for way in ways.values()):
            self._wakeups.publish(CatchupWake())
        if len(held) < len(ids):  # the others are locked or inactive: the next fill shows which
            self._fill_at = min(self._fill_at, now + HELD_PAUSE)

    def _thinned(self, ways: Mapping[int, "_Way"]) -> set[int]:
        """Return the schedules whose slot jobs of low priority leave out while the governor thins them.

        If the mode changes while the chunks of one slot are made, some jobs of the schedule have the slot and others do not.
        """
        if not self._controls.current.thins_low:
            return set()
        return {
            schedule_id
            for schedule_id, way in ways.items()
            if way.slot is not None and is_left_out(way.slot, _following(way.row, way.slot))
        }

    def _advance(self, way: "_Way", made: MadeSlots | None) -> Step:
        """Return the cursor's step: more jobs of this slot, the next slot, or none if no job follows the schedule."""
        cursor, schedule, now = way.row.cursor, way.row.rhythm.schedule, way.row.now
        if way.slot is None:
            return Step(cursor, schedule, way.plan.goes_on_at, now)
        if made is None and cursor.last_job == 0:
            return Step(cursor, schedule, None, now)
        if made is not None and made.jobs >= self._settings.slot_chunk:
            return Step(cursor, schedule, way.slot, now, made.last_job)
        return Step(cursor, schedule, _following(way.row, way.slot), now)

    def _follow_up(
        self,
        locked: Mapping[int, LockedSchedule],
        steps: Sequence[Step],
        made: Iterable[MadeSlots],
    ) -> None:
        """Put the coming fires into the wheel and wake the lanes of the new slots. Call this after the commit."""
        coming = {schedule_id: row.cursor.fire_time + TICK for schedule_id, row in locked.items() if not row.is_due}
        for step in steps:
            if step.next_fire is not None:
                coming[step.cursor.schedule_id] = step.next_fire
        for schedule_id, fire_time in coming.items():
            self._wheel.put(schedule_id, to_micros(fire_time))
        for slot in made:
            if slot.due is not None:
                for lane in slot.lanes:
                    self._wakeups.publish(LaneWake(None, lane, slot.due))
            if slot.gated:
                self._wakeups.publish(OverlapWake(slot.gated))


@dataclass(frozen=True, slots=True)
class _Way:
    """The plan for a due schedule: make one slot or only move the cursor, and leave other late slots behind."""

    row: LockedSchedule
    plan: CatchUpPlan
    slot: datetime | None

    @property
    def slot_cursor(self) -> ScheduleCursor | None:
        """Return the slot to make, with the last job it was made for."""
        cursor = self.row.cursor
        return None if self.slot is None else ScheduleCursor(cursor.schedule_id, self.slot, cursor.last_job)

    @property
    def is_deferred(self) -> bool:
        """Return whether late slots are left to the catch-up."""
        return self.slot is None and self.plan.made is not None


def _way(row: LockedSchedule) -> _Way:
    """Return the plan for a due schedule. A slot that was begun is finished, however late it is."""
    cursor = row.cursor
    if cursor.last_job:
        return _Way(row, CatchUpPlan(cursor.fire_time), cursor.fire_time)
    plan = catch_up(row.rhythm.schedule, row.rhythm.misfire, cursor.fire_time, row.now)
    if plan.made is None:
        return _Way(row, plan, plan.goes_on_at if plan.skipped is None else None)
    return _Way(row, plan, plan.made.last if plan.made.first == plan.made.last else None)


def _following(row: LockedSchedule, slot: datetime) -> datetime | None:
    """Return the slot after `slot`. If other zone rules began `slot`, return the next one by local time."""
    if row.is_stale and row.mark is not None:
        return next_undone(row.rhythm.schedule, row.mark)
    return next_after(row.rhythm.schedule, slot)


async def _leave_behind(connection: Platform, way: _Way) -> None:
    """Defer the late slots that are not made here, or record them as skipped."""
    schedule_id, plan = way.row.cursor.schedule_id, way.plan
    if way.is_deferred and plan.made is not None:
        await catch_ups.defer_slots(connection, schedule_id, plan.made.first, plan.made.last)
    if plan.made is not None:
        await _defer_last_slots(connection, way, plan.made.last)
    if plan.skipped is not None:
        reason = reason_of("MISFIRE", way.row.rhythm.misfire.policy)
        skipped = SkippedRange(plan.skipped.first, plan.skipped.last, plan.skipped.slots, reason)
        await schedules.insert_skip(connection, schedule_id, None, skipped)
        log.info("late slots skipped", schedule=schedule_id, slots=skipped.slots, until=skipped.to_time.isoformat())


async def _defer_last_slots(connection: Platform, way: _Way, last: datetime) -> None:
    """Defer late slots of jobs that ended among them.

    For these jobs the policy applies to the slots that they had, not to the schedule's last one.
    """
    cursor, rhythm = way.row.cursor, way.row.rhythm
    for job in await catch_ups.ended_meanwhile(connection, cursor.schedule_id, cursor.fire_time, last):
        first = next_from(rhythm.schedule, job.first)
        if first is not None and first <= job.end_at:
            own = catch_up(rhythm.schedule, rhythm.misfire, first, way.row.now, until=job.end_at)
            if own.made is not None:
                place = (cursor.schedule_id, own.made.first, own.made.last)
                await catch_ups.defer_slots_of_job(connection, job.job_id, *place)
