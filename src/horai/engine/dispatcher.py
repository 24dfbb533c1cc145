"""Claims what is due and hands it to the executors.

The claim is one statement over the lanes that are ready, most urgent first, never more than there is room for. Rows of
paused jobs are parked, those of deleted jobs cancelled. Whatever goes wrong between claim and call gives the row back.
"""

import asyncio
import random
from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import structlog

from horai.core.settings import SHARDS, EngineSettings
from horai.core.settlement import (
    Release,
)
from horai.core.vitals import Vitals
from horai.db import claims, jobs
from horai.db.claims import Claimed
from horai.db.clock import DatabaseClock
from horai.db.jobs import Runnable
from horai.db.line import Line
from horai.db.pool import Dedicated
from horai.engine.attempts import Attempts
from horai.engine.holdings import Holdings
from horai.engine.jobbook import JobBook
from horai.engine.keeper import Keeper
from horai.engine.lanes import START, Lanes
from horai.engine.settler import Settlement, Settler

log = structlog.get_logger(__name__)

NOT_TRUSTED_PAUSE = timedelta(milliseconds=200)
LOCKED_PAUSE = timedelta(milliseconds=20)
LANES_AT_ONCE = 64
SCANS_AT_ONCE = 64
BROKEN_PAUSE = timedelta(seconds=60)
PAGE = 1_000


@dataclass(frozen=True, slots=True)
class Bench:
    """What a dispatcher works with."""

    keeper: Keeper
    attempts: Attempts
    settler: Settler
    holdings: Holdings
    clock: DatabaseClock
    vitals: Vitals
    settings: EngineSettings


class Dispatcher:
    """The stage that claims."""

    name = "dispatcher"

    def __init__(self, line: Line, bench: Bench) -> None:
        self.line = line
        self.signal = asyncio.Event()
        self._bench = bench
        self._settings = bench.settings
        bench.holdings.freed = self.signal
        self._jobs = JobBook()
        now = bench.clock.now()
        self._lanes = Lanes(range(SHARDS), bench.attempts.handlers, now)
        self._claims = 0
        self._is_claim_lost = False
        self._has_new_lanes = True
        self._sweep_at = now
        self._straggler_at = now + self._settings.straggler
        self._is_active = False
        self._stepping = asyncio.Lock()
        self.is_draining = False

    def wake(self, lane: int, due: datetime) -> None:
        """A row of this lane is claimable from `due` on."""
        is_new = not self._lanes.knows(lane)
        self._has_new_lanes = self._has_new_lanes or is_new
        if self._lanes.wake(lane, due) or is_new:
            self.signal.set()

    async def step(self, now: datetime) -> datetime:
        """Claims all that is due, as far as there is room."""
        if self.is_draining or not self._bench.keeper.holds():
            return now + NOT_TRUSTED_PAUSE
        async with self._stepping:
            return await self._step(now)

    async def _step(self, now: datetime) -> datetime:
        connection = await self.line.get()
        await self._look_around(connection, now)
        bands = self._lanes.take_due(now)
        try:
            for number, band in enumerate(bands):
                firsts = range(0, len(band), LANES_AT_ONCE)
                left = [await self._serve(connection, band[first : first + LANES_AT_ONCE]) for first in firsts]
                if any(left) and self._is_called_away():
                    for less_urgent in bands[number + 1 :]:
                        self._look_again(less_urgent, now)
                    break
        except BaseException:
            for band in bands:
                self._look_again(band, now)
            raise
        return self._next_look(now)

    def _look_again(self, lanes: Iterable[int], at: datetime) -> None:
        for lane in lanes:
            self._lanes.arm(lane, at)

    def _next_look(self, now: datetime) -> datetime:
        """With no room the signal of `Holdings` comes first; otherwise the next timer, pass or sweep."""
        looks = [self._sweep_at]
        if self._is_active:
            looks.append(self._straggler_at)
        due = self._lanes.next_at()
        if due is not None and self._bench.holdings.room > 0:
            looks.append(max(due, now))
        return min(looks)

    async def _look_around(self, connection: Dedicated, now: datetime) -> None:
        """New lanes, lost claims, stragglers behind the cursors: what no timer tells."""
        is_sweep = now >= self._sweep_at
        if self._has_new_lanes or is_sweep:
            self._has_new_lanes = False
            self._lanes.learn(await jobs.lanes(connection), now)
        if self._is_claim_lost or is_sweep:
            await self._release_lost(connection)
            self._is_claim_lost = False
        if is_sweep:
            self._sweep_at = now + self._settings.sweep
            self._lanes.back_to_all(START, now)
        elif self._is_active and now >= self._straggler_at:
            self._straggler_at = now + self._settings.straggler
            self._is_active = False
            self._lanes.back_to_all(now - self._settings.straggler_reach, now)

    async def _serve(self, connection: Dedicated, lanes: Sequence[int]) -> bool:
        """Claims from these lanes until they are empty or there is no room; whether something may be left.

        Every scan has its turn. After one turn each, it also ends when the step is called away.
        """
        scans = self._lanes.positions(lanes)
        random.shuffle(scans)
        waiting, first_turn = deque(scans), len(scans)
        while waiting and (budget := min(self._settings.claim_batch, self._bench.holdings.room)) > 0:
            chosen = [waiting.popleft() for _ in range(min(len(waiting), SCANS_AT_ONCE, budget))]
            first_turn -= len(chosen)
            each = budget // len(chosen)
            claimed = await self._claim(connection, chosen, each)
            await self._hand_out(connection, claimed)
            found = Counter((row.shard, row.lane) for row in claimed)
            waiting.extend(self._lanes.position(*scan) for scan, count in found.items() if count >= each)
            if first_turn <= 0 and self._is_called_away():
                break
        if waiting:
            self._look_again(lanes, self._bench.clock.now())
        else:
            await self._rest(connection, lanes)
        return bool(waiting)

    def _is_called_away(self) -> bool:
        """Whether something more urgent may have come, or a pass is due: a long backlog must not hold either up."""
        pass_at = min(self._sweep_at, self._straggler_at)
        return self.is_draining or self.signal.is_set() or self._bench.clock.now() >= pass_at

    async def _claim(self, connection: Dedicated, positions: Sequence[claims.Position], per_lane: int) -> list[Claimed]:
        self._claims += 1
        self._is_claim_lost = True  # until the answer is here: without it, rows may be ours unknown to us
        claimed = await claims.claim_due(connection, self._bench.keeper.incarnation, self._claims, positions, per_lane)
        for row in claimed:
            self._bench.holdings.add(row.held)
        self._is_claim_lost = False
        self._is_active = self._is_active or bool(claimed)
        self._lanes.advance(claimed)
        return claimed

    async def _rest(self, connection: Dedicated, lanes: Sequence[int]) -> None:
        """Sets the timers of lanes with nothing more to claim. What is due yet was not claimed is locked: soon again."""
        soon = self._bench.clock.now() + LOCKED_PAUSE
        for lane, due in (await claims.next_due(connection, self._lanes.positions(lanes))).items():
            self._lanes.arm(lane, due if due > self._bench.clock.now() else soon)

    async def _hand_out(self, connection: Dedicated, claimed: Sequence[Claimed]) -> None:
        if not claimed:
            return
        handed: set[int] = set()
        try:
            known = await self._jobs.get(connection, (row.held.job_id for row in claimed))
            await self._refuse(connection, claimed, known, handed)
            for row in claimed:
                if row.held.id not in handed:
                    handed.add(row.held.id)
                    self._bench.attempts.start(row, known[row.held.job_id])
        finally:
            for row in claimed:
                if row.held.id not in handed:
                    self._bench.settler.submit(Settlement(row.held, Release()))

    async def _refuse(
        self, connection: Dedicated, claimed: Sequence[Claimed], known: Mapping[int, Runnable], handed: set[int]
    ) -> None:
        """Parks the rows of paused jobs, cancels those of deleted ones, sets aside those nobody here can run or read."""
        held = [row.held for row in claimed]
        unknown = [h for h in held if h.job_id not in known]
        deleted = [h for h in held if h.job_id in known and known[h.job_id].is_deleted]
        left = [(h, known[h.job_id]) for h in held if h.job_id in known and not known[h.job_id].is_deleted]
        paused = [h for h, job in left if job.is_paused]
        moved = [
            h for h, job in left if not job.is_paused and job.definition.handler not in self._bench.attempts.handlers
        ]
        refused: set[int] = set()
        if paused:
            refused |= await claims.park_if_running(connection, paused)
        if deleted:
            refused |= await claims.cancel_if_running(connection, deleted)
        if moved:
            await jobs.ask_relane(connection, sorted({h.job_id for h in moved}))
        for row in (*paused, *deleted, *moved, *unknown):
            handed.add(row.id)
            if row.id in refused:
                self._bench.holdings.drop(row)
            else:
                pause = BROKEN_PAUSE if row.job_id not in known else NOT_TRUSTED_PAUSE
                self._bench.settler.submit(Settlement(row, Release(pause)))

    async def _release_lost(self, connection: Dedicated) -> None:
        """Gives back what the table says is ours and we do not hold: the answer to a claim was lost.

        No claim is under way while this runs, and what is in hand was taken there before the look at the table.
        """
        after = 0
        while page := await claims.running_of_node(connection, self._bench.keeper.incarnation, after, PAGE):
            lost = [row.held for row in page if not self._bench.holdings.has(row.held)]
            for held in lost:
                self._bench.settler.submit(Settlement(held, Release()))
            self._bench.vitals.released_claims += len(lost)
            after = page[-1].held.id

    async def stop(self, grace: timedelta) -> None:
        """Claims nothing more, waits for what runs, and settles what does not end in time as failed."""
        self.is_draining = True
        try:
            async with asyncio.timeout(grace.total_seconds()):
                async with self._stepping:  # a claim under way is handed out first
                    pass
                await self._bench.holdings.emptied()
        except TimeoutError:
            await self._bench.attempts.break_off()
