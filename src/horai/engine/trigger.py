"""Makes the slots of schedules at their time.

A fire is computed once per distinct schedule and made for all its jobs by one INSERT … SELECT per chunk, in the
transaction that moves the schedule's cursor: a slot is made once, or the cursor has not moved. The wheel holds the
fires of the coming minute; it is a cache of the index on `fire_time`, refilled before it runs out.

A node looks after the schedules of its shards. That spares the others the same work and nothing else: two triggers on
one schedule are kept apart by the lock on its row and by its cursor.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

import structlog

from horai.core.misfire import CatchUp, catch_up
from horai.core.schedule import next_after
from horai.core.settings import SHARDS, EngineSettings
from horai.core.shards import Duty
from horai.core.wheel import Wheel
from horai.db import schedules
from horai.db.line import Line
from horai.db.pool import Dedicated
from horai.db.schedules import Cursor, LockedSchedule, Made, SkippedRange
from horai.db.wakeups import Wakeups
from horai.engine.keeper import Keeper
from horai.engine.lanes import START, TICK, to_millis

log = structlog.get_logger(__name__)

SCHEDULES_AT_ONCE = 20
FILL_LIMIT = 100_000
HELD_PAUSE = timedelta(milliseconds=20)
NOT_TRUSTED_PAUSE = timedelta(milliseconds=200)


class Trigger:
    """The stage that makes slots."""

    name = "trigger"

    def __init__(self, line: Line, keeper: Keeper, wakeups: Wakeups, settings: EngineSettings, now: datetime) -> None:
        self.line = line
        self.signal = asyncio.Event()
        self._keeper = keeper
        self._wakeups = wakeups
        self._settings = settings
        self._wheel: Wheel[int] = Wheel(TICK, to_millis(now))
        self._fill_at = now
        self._shards: frozenset[int] = frozenset()
        self._is_stale = False

    def wake(self, schedule_id: int, fire_time: datetime) -> None:
        """A schedule is new, or awake again; another node's is nothing to us."""
        if schedule_id % SHARDS in self._shards:
            self._wheel.put(schedule_id, to_millis(fire_time))
            self.signal.set()

    def reload(self) -> None:
        """Other shards are ours, or wakes may have been missed: what the wheel holds is told anew by the table."""
        self._is_stale = True
        self.signal.set()

    async def step(self, now: datetime) -> datetime:
        """Makes every slot of our shards that is due."""
        if not self._keeper.holds():
            return now + NOT_TRUSTED_PAUSE
        shards = self._keeper.shards(Duty.trigger)
        if self._is_stale or shards != self._shards:
            self._start_over(shards, now)
        if not shards:
            return now + self._settings.horizon / 2
        connection = await self.line.get()
        if now >= self._fill_at:
            await self._fill(connection, now)
        due = self._wheel.advance(to_millis(now))
        for first in range(0, len(due), SCHEDULES_AT_ONCE):
            some = due[first : first + SCHEDULES_AT_ONCE]
            try:
                await self._fire(connection, some, now)
            except BaseException:
                for schedule_id in due[first:]:
                    self._wheel.put(schedule_id, to_millis(now))
                raise
        upcoming = self._wheel.next_at()
        return min(self._fill_at, START + upcoming * TICK) if upcoming is not None else self._fill_at

    def _start_over(self, shards: frozenset[int], now: datetime) -> None:
        """Forgets every fire; the filling that follows brings the past and the horizon of these shards."""
        self._is_stale = False
        self._shards = shards
        self._wheel = Wheel(TICK, to_millis(now))
        self._fill_at = now

    async def _fill(self, connection: Dedicated, now: datetime) -> None:
        coming = await schedules.coming_schedules(connection, now + self._settings.horizon, FILL_LIMIT, self._shards)
        for schedule_id, fire_time in coming:
            self._wheel.put(schedule_id, to_millis(fire_time))
        self._fill_at = now + self._settings.horizon / 2

    async def _fire(self, connection: Dedicated, ids: Sequence[int], now: datetime) -> None:
        """One transaction: lock, make, advance."""
        async with connection.transaction():
            locked = {row.cursor.schedule_id: row for row in await schedules.lock_schedules(connection, ids)}
            due = {schedule_id: row for schedule_id, row in locked.items() if row.is_due}
            ways = {schedule_id: self._way(row) for schedule_id, row in due.items()}
            slots = [_slot(due[schedule_id].cursor, way) for schedule_id, way in ways.items()]
            made = await schedules.make_slots(connection, slots, self._settings.slot_chunk) if slots else {}
            steps = [self._advance(due[i], ways[i], made.get(i)) for i in due]
            await schedules.advance_schedules(connection, steps)
            for schedule_id, way in ways.items():
                if way.skipped is not None:
                    await _keep_skip(connection, schedule_id, way)
        self._follow_up(locked, steps, made.values())
        if len(locked) < len(ids):  # somebody holds the others, or they sleep: the next filling tells
            self._fill_at = min(self._fill_at, now + HELD_PAUSE)

    def _way(self, row: LockedSchedule) -> CatchUp:
        """A slot that was begun is finished, however late."""
        if row.cursor.last_job:
            return CatchUp(row.cursor.fire_time)
        return catch_up(row.schedule, row.cursor.fire_time, row.now, self._settings.misfire_after)

    def _advance(self, row: LockedSchedule, way: CatchUp, made: Made | None) -> tuple[Cursor, datetime | None, int]:
        """The cursor's next place: further jobs of this slot, the next slot, or asleep when nobody follows it."""
        if made is None and row.cursor.last_job == 0:
            return row.cursor, None, 0
        if made is not None and made.jobs >= self._settings.slot_chunk:
            return row.cursor, way.fire_time, made.last_job
        return row.cursor, next_after(row.schedule, way.fire_time), 0

    def _follow_up(
        self,
        locked: Mapping[int, LockedSchedule],
        steps: Sequence[tuple[Cursor, datetime | None, int]],
        made: Iterable[Made],
    ) -> None:
        """After the commit: the wheel learns the coming fires, the lanes what has become due."""
        coming = {schedule_id: row.cursor.fire_time + TICK for schedule_id, row in locked.items() if not row.is_due}
        for cursor, next_fire, _ in steps:
            if next_fire is not None:
                coming[cursor.schedule_id] = next_fire
        for schedule_id, fire_time in coming.items():
            self._wheel.put(schedule_id, to_millis(fire_time))
        for slot in made:
            if slot.due is not None:
                for lane in slot.lanes:
                    self._wakeups.wake(lane, slot.due)


def _slot(cursor: Cursor, way: CatchUp) -> Cursor:
    return Cursor(cursor.schedule_id, way.fire_time, cursor.last_job)


async def _keep_skip(connection: Dedicated, schedule_id: int, way: CatchUp) -> None:
    assert way.skipped is not None  # noqa: S101 — the caller asked
    skipped = SkippedRange(way.skipped.from_time, way.skipped.to_time, way.skipped.slots, "MISFIRE_ONCE")
    await schedules.insert_skip(connection, schedule_id, None, skipped)
    log.info("late slots skipped", schedule=schedule_id, slots=way.skipped.slots, until=way.skipped.to_time.isoformat())
