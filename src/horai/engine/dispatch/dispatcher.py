"""The dispatcher: the stage that claims due instances and passes them to admission.

Timers and wakes tell which scans have due rows. The fair queue chooses among them, and one statement claims. When a
scan has run dry, the dispatcher asks the database for its next due time. It never claims more than there is room for.
"""

import asyncio
import math
import time
from collections import Counter
from collections.abc import Coroutine, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypeVar

import structlog

from horai.core.fairness import Contention, FairQueue, QueuePosition
from horai.core.health import EngineHealth, StartClass
from horai.core.job import Priority
from horai.core.settings import EngineSettings
from horai.core.shards import Duty
from horai.core.wakes import EverywhereWake, LaneWake, QueueWake
from horai.db import claim_lanes, claims
from horai.db.clock import DatabaseClock
from horai.db.pool import Platform
from horai.db.stage_connection import StageConnection
from horai.db.wakeups import Wakeups
from horai.engine.dispatch.admission import Admission
from horai.engine.dispatch.attempts import Attempts
from horai.engine.dispatch.claimer import Claimer, ClaimResult
from horai.engine.dispatch.host_gates import HostGates
from horai.engine.dispatch.in_flight import InFlight, SlotOwner
from horai.engine.dispatch.scans import BEFORE_ALL, Scan, ScanQuota, Scans
from horai.engine.dispatch.shut_rows import ShutRowPasser
from horai.engine.dispatch.start_delays import StartLimits
from horai.engine.lease import Lease

T = TypeVar("T")

log = structlog.get_logger(__name__)

NOT_TRUSTED_PAUSE = timedelta(milliseconds=200)
IDLE = timedelta(seconds=60)
SCANS_AT_ONCE = 256
ASKED_AT_ONCE = 1_000
ASK_EVERY = 0.02
"""Seconds of claiming after which the dispatcher asks for the next due times of scans that have run dry."""
LOOK_AHEAD = 8
"""Due times of a scan to ask for at once: at a steady rate, few claims are followed by a question."""
HORIZON = timedelta(seconds=1)
"""Time for which answers are used: a row whose wake was lost must not wait behind them."""
CLAIMS_A_STEP = 50
RELEARN = timedelta(seconds=1)
SHORTEST_EMPTY_PAUSE = timedelta(milliseconds=1)
LONGEST_EMPTY_PAUSE = timedelta(milliseconds=500)


@dataclass(frozen=True, slots=True)
class DispatcherParts:
    """The dependencies of a dispatcher."""

    lease: Lease
    attempts: Attempts
    admission: Admission
    claimer: Claimer
    scans: Scans
    in_flight: InFlight
    clock: DatabaseClock
    health: EngineHealth
    settings: EngineSettings
    gates: HostGates


class Dispatcher:
    """The stage that claims."""

    name = "dispatcher"

    def __init__(self, line: StageConnection, parts: DispatcherParts) -> None:
        self.line = line
        self.signal = asyncio.Event()
        self.parts = parts
        self._scans = parts.scans
        self._settings = parts.settings
        parts.in_flight.freed = self.signal
        parts.attempts.on_room = self.signal.set
        self._host_rooms = parts.attempts.host_rooms
        self._host_rooms.on_room = self.signal.set
        self._queued: FairQueue[Scan] = FairQueue(time.monotonic())
        self._empty_polls: dict[Scan, int] = {}
        self._permit_waits = parts.claimer.permit_waits
        self._held_back: dict[SlotOwner, dict[Scan, None]] = {}
        """Scans that have due rows but whose handler or tenant has no room, by handler and tenant."""
        self._contention = Contention()
        self._shut_rows = ShutRowPasser(parts.scans, parts.gates, parts.clock)
        parts.gates.on_change = self.signal.set
        parts.attempts.limits = StartLimits(parts.scans.limited_at, parts.gates.limited_at)
        parts.scans.controls.on_change.append(self.obey)
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
        is_new = not self._scans.knows(lane)
        self._is_lanes_stale = self._is_lanes_stale or is_new
        if self._scans.wake(shard, lane, due, after) or is_new:
            self.signal.set()

    def wake_queue(self, queue_id: int) -> None:
        """Look at the scans of a queue again: its limits have changed, or a permit is free.

        The dispatcher reads the new limits later; until then the claiming statement enforces them. If it is the pool of
        a tenant, look at the scans of the tenant that have due rows: those wait for at most `LONGEST_EMPTY_PAUSE`.
        """
        self._is_lanes_stale = True
        now = self.parts.clock.now()
        for scan in self._scans.of_queue(queue_id):
            self._empty_polls.pop(scan, None)
            self._scans.limited_at[scan.lane] = now
            self._scans.set_timer(scan, now)
        for scan in self._scans.of_pool(queue_id):
            self._empty_polls.pop(scan, None)
            self._scans.limited_at[scan.lane] = now
            if self._scans.is_set_within(scan, now + LONGEST_EMPTY_PAUSE):
                self._scans.set_timer(scan, now)
        self.signal.set()

    def rescan_all(self) -> None:
        """Ask for the next due time of every scan: wakes were lost."""
        self._is_lanes_stale = True
        self._scans.forget_coming()
        self._scans.mark_unknown(scan for scan in self._scans.all() if not self.is_ready(scan))
        self.signal.set()

    def obey(self) -> None:
        """Stop claiming from lanes that the controls hold now, and look at those that they hold no longer."""
        for scan in [scan for scan in self._scans.all() if self._scans.is_closed(scan.lane)]:
            self._drop(scan)
        self._scans.note_opened(self.parts.clock.now())
        self.rescan_all()

    def _drop(self, scan: Scan) -> None:
        self._queued.discard(scan)
        self._permit_waits.note_dry([scan])
        self._held_back.get(self._scans.owner_of(scan.lane), {}).pop(scan, None)
        self._host_rooms.discard(scan)

    def learn(self, lanes: Iterable[claim_lanes.Lane]) -> None:
        """Update the lanes with a list that was just read."""
        self._scans.learn(lanes)
        self._scans.note_opened(self.parts.clock.now())
        self.parts.in_flight.serve_tenants(self._scans.count_tenants())
        self._learnt_at = self.parts.clock.now()
        if self._scans.unknown:
            self.signal.set()

    def is_ready(self, scan: Scan) -> bool:
        """Return whether the scan is queued for a claim, or will be as soon as its handler has room."""
        return (
            scan in self._queued
            or self._host_rooms.holds(scan)
            or any(scan in scans for scans in self._held_back.values())
        )

    @property
    def has_backlog(self) -> bool:
        """Return whether due rows may wait for a claim: new rows must not overtake them."""
        if self._queued or self._held_back or self._scans.unknown or self._host_rooms.next_wait is not None:
            return True
        due = self._scans.next_at()
        return due is not None and due <= self.parts.clock.now()

    async def step(self, now: datetime) -> datetime:
        """Claim all due rows, as far as there is room."""
        if self.is_draining or not self.parts.lease.holds():
            return now + NOT_TRUSTED_PAUSE
        async with self._stepping:
            connection = await self.line.get()
            await self._refresh(connection, now)
            asked_at = -math.inf
            for _ in range(CLAIMS_A_STEP):
                self._queue_due_scans()
                if not self._queued or time.monotonic() >= asked_at + ASK_EVERY:
                    await self._set_timers(connection)
                    self._queue_due_scans()
                    asked_at = time.monotonic()
                if not self._queued or self.parts.in_flight.room <= 0 or self.is_draining:
                    break
                if not self.parts.lease.holds():
                    return now + NOT_TRUSTED_PAUSE
                await self._claim(connection)
            return self._next_look()

    def _next_look(self) -> datetime:
        """Return the time of the next timer. Without room, `InFlight` signals first."""
        now = self.parts.clock.now()
        looks = [now + IDLE]
        if self.parts.in_flight.room > 0:
            if self._queued or self._scans.unknown:
                return now
            if (due := self._scans.next_at()) is not None:
                looks.append(due)
        if (wait := self._host_rooms.next_wait) is not None:
            looks.append(now + timedelta(seconds=wait))
        if (opens_at := self._shut_rows.next_at()) is not None:
            looks.append(opens_at)
        if self._is_lanes_stale and self._learnt_at is not None:
            looks.append(self._learnt_at + RELEARN)
        return min(looks)

    async def _refresh(self, connection: Platform, now: datetime) -> None:
        """Apply changed shards, release claims whose answer was lost, and read lanes that are new or have changed."""
        for scan in self._scans.own(self.parts.lease.shards(Duty.dispatch)):
            self._drop(scan)
        if self.parts.claimer.is_answer_lost:
            await self.parts.claimer.release_lost(connection)
        if self._is_lanes_stale and (self._learnt_at is None or now >= self._learnt_at + RELEARN):
            await self._relearn(connection)

    async def _relearn(self, connection: Platform) -> None:
        self._is_lanes_stale = False  # before reading: lanes that change meanwhile are read again
        try:
            self.learn(await claim_lanes.lanes(connection))
        except BaseException:
            self._is_lanes_stale = True
            raise

    async def _set_timers(self, connection: Platform) -> None:
        """Set the timers of scans whose next due time is not known."""
        while unknown := [*self._scans.unknown][:ASKED_AT_ONCE]:
            for scan in unknown:  # before the query: scans that become unknown meanwhile are asked again
                del self._scans.unknown[scan]
            open_ones = [scan for scan in unknown if not self._scans.is_closed(scan.lane)]
            try:
                found = await claims.next_due(connection, self._scans.begin_look(open_ones), LOOK_AHEAD)
            except BaseException:
                self._scans.mark_unknown(unknown)
                raise
            now = self.parts.clock.now()
            waiting = {Scan(shard, lane) for shard, lane, coming in found if coming[0] <= now}
            self._permit_waits.note_dry(scan for scan in unknown if scan not in waiting)
            for shard, lane, coming in found:
                scan = Scan(shard, lane)
                if coming[0] <= now and self._scans[lane].is_limited:
                    self._scans.limited_at[lane] = now
                self._scans.expect(scan, [due for due in coming if due < now + HORIZON])
                self._scans.set_timer(scan, max(coming[0], now + self._empty_poll_pause(scan)))

    def _empty_poll_pause(self, scan: Scan) -> timedelta:
        """Return the pause after polls that found nothing to claim: exponential back-off, 1 ms to 500 ms.

        A row that is due but was not claimed is locked, or its queue is full.
        """
        times = self._empty_polls.get(scan)
        return timedelta(0) if times is None else min(SHORTEST_EMPTY_PAUSE * 4 ** min(times, 8), LONGEST_EMPTY_PAUSE)

    def _queue_due_scans(self) -> None:
        """Queue the scans whose timers are due, and those held back for a handler and a tenant that have room now."""
        self._shut_rows.go_back()
        now, due = time.monotonic(), self._scans.take_due(self.parts.clock.now())
        due += self._host_rooms.take_ready(self._scans, self.parts.clock.now())
        for owner in [owner for owner in self._held_back if self._room_of(owner) > 0]:
            due += self._held_back.pop(owner)
        for scan in due:
            lane = self._scans[scan.lane]
            if not self._scans.is_ours(scan) or self._scans.is_closed(scan.lane):
                continue
            if (owner := self._scans.owner_of(scan.lane)) in self._held_back:
                self._held_back[owner][scan] = None
                continue
            self._scans.unknown.pop(scan, None)  # the claim finds out, and asks when the scan has run dry
            self._contention.meet(int(lane.priority), lane.tenant_id, now)
            self._queued.ready(scan, QueuePosition(int(lane.priority), lane.tenant_id, lane.queue, lane.weight), now)

    async def _claim(self, connection: Platform) -> None:
        """Pick scans, and claim their rows. Scans with rows of shut hosts ahead come last: no other row waits for their read."""
        batch = (
            self._settings.shared_batch if self._contention.is_mixed(time.monotonic()) else self._settings.claim_batch
        )
        budget = min(batch, self.parts.in_flight.room)
        picks = self._limit_to_room(self._queued.pick(time.monotonic(), budget, SCANS_AT_ONCE))
        quotas = self._host_rooms.limit(picks, self._scans, self.parts.clock.now())
        if not quotas:
            return
        clear, behind_shut = self._shut_rows.split(_limit_polls(quotas, self._settings.poll_batch))
        try:
            await self._charge(clear, self._claim_from(connection, clear))
        except BaseException:
            self._scans.mark_unknown(scan for scan, _ in behind_shut)
            raise
        if behind_shut:
            found = await self._charge(behind_shut, self._shut_rows.pass_over(connection, behind_shut))
            await self._charge(found, self._claim_from(connection, found))

    async def _charge(self, quotas: Sequence[ScanQuota], work: Coroutine[Any, Any, T]) -> T:
        """Do the work of a claim, and charge its time to the tenants of its scans."""
        if not self.parts.attempts.loop_time.shares.is_shared:
            return await work
        rows: Counter[int] = Counter()
        for scan, count in quotas:
            rows[self._scans[scan.lane].tenant_id] += count
        return await self.parts.attempts.loop_time.share(work, rows)

    async def _claim_from(self, connection: Platform, quotas: Sequence[ScanQuota]) -> None:
        """Claim the rows of these scans in one statement, admit them, and sort the scans by the result."""
        if not quotas:
            return
        ahead = self._permit_waits.ahead_of(quotas, self._may_start, time.monotonic())
        try:
            claimed = await self.parts.claimer.claim(connection, quotas, ahead)
        except BaseException:
            self._scans.mark_unknown(scan for scan, _ in quotas)
            raise
        self.is_active = self.is_active or bool(claimed.rows or claimed.parked)
        low = sum(rows for scan, rows in claimed.found.items() if self._scans[scan[1]].priority is Priority.low)
        self.parts.health.starts.count(time.monotonic(), StartClass.LOW, low)
        self._requeue(quotas, claimed)
        self._requeue(
            [(scan, claimed.found[scan]) for scans in ahead.values() for scan in scans if scan in claimed.found],
            claimed,
        )
        await self.parts.admission.start(connection, claimed.rows, self.parts.clock.now())

    def _may_start(self, scan: Scan) -> bool:
        """Return whether rows of a scan that is not in line may start now, if they get permits."""
        return (
            self._scans.is_ours(scan)
            and not self._scans.is_closed(scan.lane)
            and not self._host_rooms.holds(scan)
            and scan.lane not in self.parts.gates.shut_jobs().lanes
        )

    def _limit_to_room(self, quotas: Sequence[ScanQuota]) -> list[ScanQuota]:
        """Cut the picks to the room of their handlers and tenants. Scans without room wait until there is some."""
        room: dict[SlotOwner, int] = {}
        kept: list[ScanQuota] = []
        for scan, rows in quotas:
            owner = self._scans.owner_of(scan.lane)
            left = room[owner] if owner in room else self._room_of(owner)
            if left > 0:
                kept.append((scan, min(rows, left)))
            else:
                self._held_back.setdefault(owner, {})[scan] = None
            room[owner] = left - rows
        return kept

    def _room_of(self, owner: SlotOwner) -> int:
        """Return how many rows may be claimed. Beside other tenants, few rows of one wait for their calls to begin."""
        room = self.parts.in_flight.room_of(owner)
        if self._contention.is_mixed(time.monotonic()):
            room = min(room, self.parts.attempts.room_of(owner.tenant, self._settings.shared_batch))
        return room

    def _requeue(self, quotas: Sequence[ScanQuota], claimed: ClaimResult) -> None:
        """Re-queue scans that filled their quota. Set the timers of the others, and ask for next due times that are not known."""
        now = self.parts.clock.now()
        for scan, rows in quotas:
            count = claimed.found.get(scan, 0) + claimed.parked.get(scan, 0)
            if count:
                self._empty_polls.pop(scan, None)
            if scan in claimed.wait_until:
                self._scans.limited_at[scan.lane] = now
                self._scans.set_timer(scan, claimed.wait_until[scan])
            elif count >= rows or scan in claimed.passed_over:
                self._scans.set_timer(scan, now)
            elif count and (due := self._scans.next_expected(scan)) is not None:
                self._scans.set_timer(scan, due)
            else:
                if not count:
                    self._empty_polls[scan] = self._empty_polls.get(scan, -1) + 1
                self._scans.mark_unknown((scan,))

    async def stop(self, grace: timedelta) -> None:
        """Stop claiming and wait for running calls. Settle calls that do not end within `grace` as failed."""
        self.is_draining = True
        try:
            async with asyncio.timeout(grace.total_seconds()):
                async with self._stepping:  # let a claim under way finish
                    pass
                await self.parts.claimer.is_idle.wait()  # and those at birth
                await self.parts.in_flight.emptied()
        except TimeoutError:
            await self.parts.attempts.break_off()


def _limit_polls(quotas: list[ScanQuota], most: int) -> list[ScanQuota]:
    """Return the picks scaled down so that no scan gives more than `most` rows."""
    largest = max(rows for _, rows in quotas)
    return quotas if largest <= most else [(scan, max(rows * most // largest, 1)) for scan, rows in quotas]
