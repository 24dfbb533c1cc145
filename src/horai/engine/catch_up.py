"""The catch-up: the stage that makes late slots in small portions, after a downtime or a pause.

Each lane gets as many late slots as it works off in a short time, so that fresh work in the lane keeps its pace and the
hot table stays small, however long the downtime was. Slots that may not overlap are made one by one: the next when the
last has ended. The slots made and the progress of each job are in the table: a crash loses nothing and repeats nothing.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import lru_cache

import structlog

from horai.core.catch_up_pace import CatchUpPace
from horai.core.settings import EngineSettings
from horai.core.shards import Duty
from horai.core.wakes import OverlapWake
from horai.db import catch_ups
from horai.db.catch_ups import Catchup, LateSlot
from horai.db.pool import Platform
from horai.db.stage_connection import StageConnection
from horai.db.wakeups import Wakeups
from horai.engine.lease import Lease
from horai.time.schedule import Schedule, next_after, next_from

log = structlog.get_logger(__name__)

PAGE = 1_000
LOOK = timedelta(milliseconds=200)
IDLE = timedelta(minutes=2)
"""The poll interval for lost wakes. A stage that leaves late slots behind normally wakes the catch-up."""


class CatchUp:
    """The stage that makes late slots."""

    name = "catch_up"

    def __init__(self, line: StageConnection, lease: Lease, wakeups: Wakeups, settings: EngineSettings) -> None:
        self.line = line
        self.signal = asyncio.Event()
        self._lease = lease
        self._wakeups = wakeups
        self._settings = settings
        self._after = 0
        self._portions: dict[int, CatchUpPace] = {}
        self._lanes: dict[int, set[int]] = {}
        """The late slots of each lane that had not begun at the last check."""
        self._gated: dict[int, int] = {}
        """The late slot of each job that may not overlap and whose last slot has not ended."""
        self._unreadable: set[int] = set()

    async def step(self, now: datetime) -> datetime:
        """Make one portion for each lane that has worked off its last one."""
        shards = self._lease.shards(Duty.trigger)
        if not self._lease.holds() or not shards:
            return now + self._settings.sweep
        connection = await self.line.get()
        if not await catch_ups.has_catchups(connection):
            return now + IDLE
        await self._look(connection)
        async with connection.transaction():
            page = await catch_ups.take_catchups(connection, self._after, PAGE, shards)
            slots, steps = self._choose(page)
            made = await catch_ups.make_late_slots(connection, slots) if slots else []
            if steps:
                await catch_ups.move_catchups(connection, steps)
        self._note(page, made)
        is_last = len(page) < PAGE
        is_done = is_last and not page and self._after == 0
        self._after = 0 if is_last else page[-1].id
        return now + (self._settings.sweep if is_done else LOOK if is_last else timedelta(0))

    async def _look(self, connection: Platform) -> None:
        """Keep only the made slots that still wait (per lane) or have not ended (of jobs that may not overlap)."""
        known = [i for ids in self._lanes.values() for i in ids] + [*self._gated.values()]
        left = await catch_ups.late_slots_left(connection, known) if known else {}
        self._lanes = {
            lane: still for lane, ids in self._lanes.items() if (still := {i for i in ids if left.get(i, False)})
        }
        self._gated = {job: i for job, i in self._gated.items() if i in left}

    def _choose(self, page: Sequence[Catchup]) -> tuple[list[tuple[int, datetime]], list[tuple[int, datetime | None]]]:
        """Return the slots to make now, as (job id, fire time), and the next time of each catch-up after that."""
        now = time.monotonic()
        shares = Counter(catchup.lane for catchup in page)
        room = {
            lane: self._portions.setdefault(lane, CatchUpPace()).next(len(self._lanes.get(lane, ())), now)
            for lane in shares
        }
        slots: list[tuple[int, datetime]] = []
        steps: list[tuple[int, datetime | None]] = []
        for catchup in page:
            share = min(room[catchup.lane], max(1, room[catchup.lane] // shares[catchup.lane]))
            shares[catchup.lane] -= 1
            if catchup.is_gated:
                share = 0 if catchup.job_id in self._gated else min(share, 1)
            if share:
                try:
                    chosen, next_time = _slots(catchup, share)
                except ValueError as error:  # a zone that our rules lack: the others go on
                    self._leave(catchup, error)
                    continue
                room[catchup.lane] -= len(chosen)
                slots += [(catchup.job_id, fire) for fire in chosen]
                steps.append((catchup.id, next_time))
        return slots, steps

    def _leave(self, catchup: Catchup, error: ValueError) -> None:
        """Log an unreadable schedule once, although every step meets it again."""
        if catchup.id not in self._unreadable:
            self._unreadable.add(catchup.id)
            log.error("schedule cannot be read; its late slots wait", job=catchup.job_id, error=str(error))

    def _note(self, page: Sequence[Catchup], made: Sequence[LateSlot]) -> None:
        """Remember the slots made, and wake the claimers and the overlap gate. Call this after the commit."""
        lane_of = {catchup.job_id: catchup.lane for catchup in page}
        now = time.monotonic()
        for slot in made:
            if slot.woken.lane:
                self._lanes.setdefault(slot.woken.lane, set()).add(slot.woken.id)
            else:
                self._gated[slot.job_id] = slot.woken.id
            self._portions[lane_of[slot.job_id]].given(now)
        self._wakeups.announce_new([slot.woken for slot in made])
        self._wakeups.publish(OverlapWake([slot.job_id for slot in made if not slot.woken.lane]))


def _slots(catchup: Catchup, most: int) -> tuple[list[datetime], datetime | None]:
    """Return up to `most` next slots and the slot after them; None if there is none."""
    chosen: list[datetime] = []
    fire = next_from(catchup.schedule, catchup.next_time)
    while fire is not None and fire <= catchup.until_time:
        if len(chosen) == most:
            return chosen, fire
        chosen.append(fire)
        fire = _next_after(catchup.schedule, fire)
    return chosen, None


@lru_cache(maxsize=10_000)
def _next_after(schedule: Schedule, after: datetime) -> datetime | None:
    """Return the next fire. Cached, because thousands of jobs catch up on the same slots."""
    return next_after(schedule, after)
