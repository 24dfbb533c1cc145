"""The dispatcher: the stage that claims due instances and passes them to admission.

Timers and wakes tell which scans have due rows. The fair queue chooses among them, and one statement claims. When a
scan has run dry, the dispatcher asks the database for its next due time. It never claims more than there is room for.
"""

import asyncio
import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import structlog

from horai.core.fairness import Contention, FairQueue, QueuePosition
from horai.core.health import EngineHealth
from horai.core.settings import EngineSettings
from horai.core.shards import Duty
from horai.core.wakes import EverywhereWake, LaneWake, QueueWake
from horai.db import claims, jobs
from horai.db.clock import DatabaseClock
from horai.db.pool import Dedicated
from horai.db.stage_connection import StageConnection
from horai.db.wakeups import Wakeups
from horai.engine.dispatch.admission import Admission
from horai.engine.dispatch.attempts import Attempts
from horai.engine.dispatch.claimer import Claimer, ClaimResult, ScanQuota
from horai.engine.dispatch.in_flight import InFlight
from horai.engine.dispatch.scans import BEFORE_ALL, HTTP, Scan, Scans
from horai.engine.lease import Lease

log = structlog.get_logger(__name__)

NOT_TRUSTED_PAUSE = timedelta(milliseconds=200)
IDLE = timedelta(seconds=60)
PLACES_AT_ONCE = 256
ASKED_AT_ONCE = 1_000
ASK_EVERY = 0.02
"""Seconds of claiming after which the dispatcher asks for the next due times of scans that have run dry."""
CLAIMS_A_STEP = 50
RELEARN = timedelta(seconds=1)
SHORTEST_BARREN = timedelta(milliseconds=1)
LONGEST_BARREN = timedelta(milliseconds=500)


@dataclass(frozen=True, slots=True)
class DispatcherParts:
    """The dependencies of a dispatcher."""

    lease: Lease
    attempts: Attempts
    admission: Admission
    claimer: Claimer
    lanes: Scans
    in_flight: InFlight
    clock: DatabaseClock
    vitals: EngineHealth
    settings: EngineSettings


class Dispatcher:
    """The stage that claims."""

    name = "dispatcher"

    def __init__(self, line: StageConnection, bench: DispatcherParts) -> None:
        self.line = line
        self.signal = asyncio.Event()
        self.bench = bench
        self._lanes = bench.lanes
        self._settings = bench.settings
        bench.in_flight.freed = self.signal
        self._turns: FairQueue[Scan] = FairQueue(time.monotonic())
        self._empty_polls: dict[Scan, int] = {}
        self._held_back: dict[str, dict[Scan, None]] = {}
        """Scans that have due rows but whose handler has no room, by handler."""
        self._company = Contention()
        self._is_lanes_stale = True
        self._learnt_at: datetime | None = None
        self._stepping = asyncio.Lock()
        self.is_draining = False
        self.is_active = False
        """True if something was claimed since the sweeper last reset this flag."""

    def subscribe_to(self, wakeups: Wakeups) -> None:
        """Hear the wakes of lanes and queues."""
        wakeups.subscribe(LaneWake, lambda wake: self.wake(wake.shard, wake.lane, wake.due))
        wakeups.subscribe(QueueWake, lambda wake: self.wake_queue(wake.queue_id))
        wakeups.subscribe(EverywhereWake, lambda _: self.rescan_all())

    def wake(self, shard: int | None, lane: int, due: datetime, after: int = BEFORE_ALL) -> None:
        """Note that a row of this lane, with an id above `after`, is claimable from `due` on."""
        is_new = not self._lanes.knows(lane)
        self._is_lanes_stale = self._is_lanes_stale or is_new
        if self._lanes.wake(shard, lane, due, after) or is_new:
            self.signal.set()

    def wake_queue(self, queue_id: int) -> None:
        """Look at the scans of a queue again: its limits have changed, or a permit is free.

        The dispatcher reads the new limits later; until then the claiming statement enforces them.
        """
        self._is_lanes_stale = True
        for place in self._lanes.places_of_queue(queue_id):
            self._empty_polls.pop(place, None)
            self._lanes.arm(place, self.bench.clock.now())
        self.signal.set()

    def rescan_all(self) -> None:
        """Ask for the next due time of every scan: wakes were lost."""
        self._is_lanes_stale = True
        self._lanes.ask(place for place in self._lanes.places() if not self.is_ready(place))
        self.signal.set()

    def learn(self, lanes: Iterable[jobs.Lane]) -> None:
        """Update the lanes with a list that was just read."""
        self._lanes.learn(lanes)
        self._learnt_at = self.bench.clock.now()
        if self._lanes.unknown:
            self.signal.set()

    def is_ready(self, place: Scan) -> bool:
        """Return whether the scan is queued for a claim, or will be as soon as its handler has room."""
        return place in self._turns or any(place in places for places in self._held_back.values())

    async def step(self, now: datetime) -> datetime:
        """Claim all due rows, as far as there is room."""
        if self.is_draining or not self.bench.lease.holds():
            return now + NOT_TRUSTED_PAUSE
        async with self._stepping:
            connection = await self.line.get()
            await self._look_around(connection, now)
            asked_at = -math.inf
            for _ in range(CLAIMS_A_STEP):
                self._line_up()
                if not self._turns or time.monotonic() >= asked_at + ASK_EVERY:
                    await self._ask(connection)
                    self._line_up()
                    asked_at = time.monotonic()
                if not self._turns or self.bench.in_flight.room <= 0 or self.is_draining:
                    break
                if not self.bench.lease.holds():
                    return now + NOT_TRUSTED_PAUSE
                await self._serve(connection)
            return self._next_look()

    def _next_look(self) -> datetime:
        """Return the time of the next timer. Without room, `InFlight` signals first."""
        now = self.bench.clock.now()
        looks = [now + IDLE]
        if self.bench.in_flight.room > 0:
            if self._turns or self._lanes.unknown:
                return now
            if (due := self._lanes.next_at()) is not None:
                looks.append(due)
        if self._is_lanes_stale and self._learnt_at is not None:
            looks.append(self._learnt_at + RELEARN)
        return min(looks)

    async def _look_around(self, connection: Dedicated, now: datetime) -> None:
        """Apply changed shards, release claims whose answer was lost, and read lanes that are new or have changed."""
        for place in self._lanes.own(self.bench.lease.shards(Duty.dispatch)):
            self._turns.discard(place)
            self._held_back.get(HTTP, {}).pop(place, None)
        if self.bench.claimer.is_answer_lost:
            await self.bench.claimer.release_lost(connection)
        if self._is_lanes_stale and (self._learnt_at is None or now >= self._learnt_at + RELEARN):
            await self._relearn(connection)

    async def _relearn(self, connection: Dedicated) -> None:
        self._is_lanes_stale = False  # before reading: lanes that change meanwhile are read again
        try:
            self.learn(await jobs.lanes(connection))
        except BaseException:
            self._is_lanes_stale = True
            raise

    async def _ask(self, connection: Dedicated) -> None:
        """Set the timers of scans whose next due time is not known."""
        while unknown := [*self._lanes.unknown][:ASKED_AT_ONCE]:
            for place in unknown:  # before the query: scans that become unknown meanwhile are asked again
                del self._lanes.unknown[place]
            open_ones = [place for place in unknown if not self._lanes[place.lane].limits.paused]
            try:
                found = await claims.next_due(connection, [self._lanes.position(place) for place in open_ones])
            except BaseException:
                self._lanes.ask(unknown)
                raise
            now = self.bench.clock.now()
            for shard, lane, due in found:
                place = Scan(shard, lane)
                self._lanes.arm(place, max(due, now + self._empty_poll_pause(place)))

    def _empty_poll_pause(self, place: Scan) -> timedelta:
        """Return the pause after polls that found nothing to claim: exponential back-off, 1 ms to 500 ms.

        A row that is due but was not claimed is locked, or its queue is full.
        """
        times = self._empty_polls.get(place)
        return timedelta(0) if times is None else min(SHORTEST_BARREN * 4 ** min(times, 8), LONGEST_BARREN)

    def _line_up(self) -> None:
        """Queue the scans whose timers are due, and those held back for a handler that has room now."""
        now, due = time.monotonic(), self._lanes.take_due(self.bench.clock.now())
        for handler in [name for name in self._held_back if self.bench.in_flight.room_of(name) > 0]:
            due += self._held_back.pop(handler)
        for place in due:
            lane = self._lanes[place.lane]
            if not self._lanes.is_ours(place) or lane.limits.paused:
                continue
            if lane.handler in self._held_back:
                self._held_back[lane.handler][place] = None
                continue
            self._lanes.unknown.pop(place, None)  # the claim finds out, and asks when the scan has run dry
            self._company.meet(int(lane.priority), lane.tenant_id, now)
            self._turns.ready(place, QueuePosition(int(lane.priority), lane.tenant_id, lane.queue, lane.weight), now)

    async def _serve(self, connection: Dedicated) -> None:
        """Make one claim: pick scans, claim their rows, admit them, and sort the scans by the result."""
        batch = self._settings.shared_batch if self._company.is_mixed(time.monotonic()) else self._settings.claim_batch
        budget = min(batch, self.bench.in_flight.room)
        quotas = self._within_shares(self._turns.pick(time.monotonic(), budget, PLACES_AT_ONCE))
        if not quotas:
            return
        quotas = _in_polls(quotas, self._settings.poll_batch)
        try:
            claimed = await self.bench.claimer.claim(connection, quotas)
        except BaseException:
            self._lanes.ask(place for place, _ in quotas)
            raise
        self.is_active = self.is_active or bool(claimed.rows)
        self._sort(quotas, claimed)
        await self.bench.admission.start(connection, claimed.rows, self.bench.clock.now())

    def _within_shares(self, quotas: Sequence[ScanQuota]) -> list[ScanQuota]:
        """Cut the picks to the room of their handlers. Scans of a handler without room wait until it has some."""
        room: dict[str, int] = {}
        kept: list[ScanQuota] = []
        for place, rows in quotas:
            handler = self._lanes.handler_of(place.lane)
            left = room[handler] if handler in room else self.bench.in_flight.room_of(handler)
            if left > 0:
                kept.append((place, min(rows, left)))
            else:
                self._held_back.setdefault(handler, {})[place] = None
            room[handler] = left - rows
        return kept

    def _sort(self, quotas: Sequence[ScanQuota], claimed: ClaimResult) -> None:
        """Re-queue scans that filled their quota; ask the others for their next due time."""
        now = self.bench.clock.now()
        for place, rows in quotas:
            count = claimed.found.get(place, 0)
            if count:
                self._empty_polls.pop(place, None)
            if place in claimed.wait_until:
                self._lanes.arm(place, claimed.wait_until[place])
            elif count >= rows or place in claimed.passed_over:
                self._lanes.arm(place, now)
            else:
                if not count:
                    self._empty_polls[place] = self._empty_polls.get(place, -1) + 1
                self._lanes.ask((place,))

    async def stop(self, grace: timedelta) -> None:
        """Stop claiming and wait for running calls. Settle calls that do not end within `grace` as failed."""
        self.is_draining = True
        try:
            async with asyncio.timeout(grace.total_seconds()):
                async with self._stepping:  # let a claim under way finish
                    pass
                await self.bench.in_flight.emptied()
        except TimeoutError:
            await self.bench.attempts.break_off()


def _in_polls(quotas: list[ScanQuota], most: int) -> list[ScanQuota]:
    """Return the picks scaled down so that no scan gives more than `most` rows."""
    largest = max(rows for _, rows in quotas)
    return quotas if largest <= most else [(place, max(rows * most // largest, 1)) for place, rows in quotas]
