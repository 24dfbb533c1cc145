"""The sweeper: the stage that looks for rows behind the claimer's cursors that no timer and no wake announces.

A straggler pass over the last seconds runs every second while there is work. A sweep over everything runs every half
minute, or every second while this process hears no wakes of other processes. When a beat says that rows may be new, a
look ahead asks every scan for its next due time, so that a row without a wake starts on time as well.

All of them only read, on the sweeper's own connection and in slices, and report their findings to the dispatcher. The
sweep also gives back rows that run for this node but are not in flight here (the answer to a claim was lost, or a call
was cut off). Conversely, it reports claims in flight whose rows have moved on without a wake. It reads the lanes and
their limits again.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from datetime import datetime

from horai.core.outcome import Release
from horai.core.wakes import OutcomeWake
from horai.db import claim_lanes, claims, queues
from horai.db.claims import LeftBehind, Position
from horai.db.pool import Platform
from horai.db.stage_connection import StageConnection
from horai.db.wakeups import Wakeups
from horai.engine.dispatch.dispatcher import Dispatcher
from horai.engine.dispatch.scans import BEFORE_ALL, START, Scan
from horai.engine.settler import Settlement, Settler

SLICE = 1_000
PAGE = 100
REST = 9
"""A pass is followed by a rest of this many times its length: passes take at most a tenth of a core."""
LOOK_REST = 4
"""The same for looks ahead, at most one per beat: they take at most a fifth of a core."""


class Sweeper:
    """The stage that looks for missed rows."""

    name = "sweeper"

    def __init__(
        self,
        line: StageConnection,
        dispatcher: Dispatcher,
        settler: Settler,
        wakeups: Wakeups,
        is_listening: Callable[[], bool] = lambda: True,
    ) -> None:
        self.line = line
        self.signal = asyncio.Event()
        self._dispatcher = dispatcher
        self._parts = parts = dispatcher.parts
        self._settings = parts.settings
        self._settler = settler
        self._wakeups = wakeups
        self._is_listening = is_listening
        self._swept_at = parts.clock.now()  # the dispatcher starts with a full scan
        self._rests_until = 0.0
        self._has_news = False
        self._oldest: datetime | None = None
        """When the oldest row that nothing holds became due, as found by the last sweep."""

    def hear_news(self) -> None:
        """Look ahead as soon as the last pass allows it: live rows may have been added or moved."""
        self._has_news = True
        self.signal.set()

    async def step(self, now: datetime) -> datetime:
        """Run the pass that is due. The check costs nothing, so it runs every second."""
        if self._parts.lease.holds() and not self._dispatcher.is_draining:
            begun = time.monotonic()
            period = self._settings.sweep if self._is_listening() else self._settings.straggler
            if now >= self._swept_at + period:
                await self._sweep(await self.line.get())
                await self._tell_ended(await self.line.get(), now - period)
                self._swept_at = now
            elif self._dispatcher.is_active and begun >= self._rests_until:
                self._dispatcher.is_active = False
                await self._look_for_stragglers(now - self._settings.straggler_reach)
                self._rests_until = time.monotonic() + REST * (time.monotonic() - begun)
            if self._has_news and begun >= self._rests_until:
                await self._look_ahead(await self.line.get())
                self._rests_until = time.monotonic() + LOOK_REST * (time.monotonic() - begun)
            if self._parts.scans.has_new_limit:
                await self._free_slots(await self.line.get())
        return now + self._settings.straggler

    async def _look_ahead(self, connection: Platform) -> None:
        """Tell the dispatcher the next due time of each scan. Skip scans that are already queued."""
        self._has_news = False  # before reading: rows added meanwhile cause another look
        try:
            self._dispatcher.learn(await claim_lanes.lanes(connection))
            scans = self._parts.scans
            scans.forget_coming()
            unqueued = [
                scan for scan in scans.all() if not self._dispatcher.is_ready(scan) and not scans.is_closed(scan.lane)
            ]
            for first in range(0, len(unqueued), SLICE):
                positions = [scans.position(scan) for scan in unqueued[first : first + SLICE]]
                for shard, lane, (due,) in await claims.next_due(connection, positions, 1):
                    self._dispatcher.wake(shard, lane, due)
        except BaseException:
            self._has_news = True
            raise

    async def _look_for_stragglers(self, since: datetime) -> None:
        """Check the scans that are not queued; a sweep checks the queued ones too."""
        unqueued = [scan for scan in self._parts.scans.all() if not self._dispatcher.is_ready(scan)]
        try:
            await self._pass(await self.line.get(), unqueued, since, None, 1)
        except BaseException:
            self._dispatcher.is_active = True
            raise

    async def _sweep(self, connection: Platform) -> None:
        """Check every scan, queued or not: a scan that never runs dry would never reach rows behind its cursor."""
        self._dispatcher.learn(await claim_lanes.lanes(connection))
        scans = self._parts.scans
        self._oldest = None
        await self._pass(connection, [*scans.all()], START, self._parts.lease.incarnation, PAGE)
        now = self._parts.clock.now()
        self._parts.health.oldest_wait = 0.0 if self._oldest is None else (now - self._oldest).total_seconds()
        if any(scans[scan.lane].is_limited for scan in scans.all()):
            await self._free_slots(connection)
            for queue_id in await queues.free_slots_adrift(connection):
                self._dispatcher.wake_queue(queue_id)

    async def _pass(
        self, connection: Platform, scans: Sequence[Scan], since: datetime, node: int | None, page: int
    ) -> None:
        for first in range(0, len(scans), SLICE):
            positions = [Position(*scan, since, BEFORE_ALL) for scan in scans[first : first + SLICE]]
            while positions:
                answered, known = self._parts.claimer.answered, self._parts.in_flight.known()
                found = await claims.left_behind(connection, positions, node, page)
                self._note_waits(found)
                self._give_back([row for row in found if row.claim is not None and row.claim <= answered], known)
                positions = self._wake_scans(found, page)

    def _note_waits(self, found: Sequence[LeftBehind]) -> None:
        """Note the oldest due row that nothing holds: no pause or mode, no limit of its lane, and no shut host."""
        scans, shut = self._parts.scans, self._parts.gates.shut_jobs().job_ids
        is_held = {lane: scans[lane].is_limited or scans.is_closed(lane) for lane in {row.lane for row in found}}
        waiting = [
            row.due for row in found if row.claim is None and not is_held[row.lane] and row.held.job_id not in shut
        ]
        self._oldest = min([*waiting, *([self._oldest] if self._oldest else [])], default=None)

    def _wake_scans(self, found: Sequence[LeftBehind], page: int) -> list[Position]:
        """Wake the scans that have an unclaimed row. Return the positions from which to continue."""
        ends: dict[Scan, list[LeftBehind]] = {}
        for row in found:
            ends.setdefault(Scan(row.shard, row.lane), []).append(row)
        further: list[Position] = []
        for scan, rows in ends.items():
            unclaimed = next((row for row in rows if row.claim is None), None)
            if unclaimed is not None:
                self._dispatcher.wake(scan.shard, scan.lane, unclaimed.due, unclaimed.held.id - 1)
            elif len(rows) == page:
                further.append(Position(*scan, rows[-1].due, rows[-1].held.id))
        return further

    def _give_back(self, answered: Sequence[LeftBehind], known: frozenset[tuple[int, int]]) -> None:
        """Release rows that run here, whose claim was answered, but that were not in flight before the read.

        No executor will settle them.
        """
        for row in answered:
            if (row.held.id, row.held.fence) not in known:
                if row.held.concurrency_key is not None:
                    self._settler.expect_keys()
                self._settler.submit(Settlement(row.held._replace(has_slot=True), Release()))
                self._parts.health.released_claims += 1

    async def _tell_ended(self, connection: Platform, before: datetime) -> None:
        """Tell this process's executors about claims that are in flight since `before` but have ended."""
        in_flight = self._parts.in_flight
        known = [held for claim in in_flight.known() if (held := in_flight.find(*claim)) is not None]
        lasting = [held for held in known if held.claimed_at is not None and held.claimed_at <= before]
        for first in range(0, len(lasting), SLICE):
            for claim in await claims.ended_claims(connection, lasting[first : first + SLICE]):
                self._wakeups.deliver(OutcomeWake(*claim))

    async def _free_slots(self, connection: Platform) -> None:
        """Free permits of this node whose calls have ended.

        A call that began before its queue had a limit does not know its permit.
        """
        claimer, in_flight, node = self._parts.claimer, self._parts.in_flight, self._parts.lease.incarnation
        answered = claimer.answered
        taken = [(i, fence) for _, i, fence in await queues.held_slots(connection, node)]
        if answered != claimer.begun:  # a claim is under way and its permits are not known yet
            return
        held = {call: in_flight.find(*call) for call in taken}
        if adrift := [call for call, claim in held.items() if claim is None]:
            for queue_id in await queues.free_slots(connection, adrift, node):
                self._dispatcher.wake_queue(queue_id)
        self._parts.scans.has_new_limit = any(claim is not None and not claim.has_slot for claim in held.values())
