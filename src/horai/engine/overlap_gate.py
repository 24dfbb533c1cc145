"""Decides on slots that wait for their job to be done with the one before.

It is asked whenever a run of such a job ends here, or a slot is made for it. What it could not decide, because somebody
held the job or the run goes on elsewhere, it looks at again; a sweep finds what nobody asked about.
"""

import asyncio
from collections.abc import Iterable
from datetime import datetime, timedelta

from horai.core.settings import EngineSettings
from horai.core.shards import Duty
from horai.db import overlap
from horai.db.pool import Dedicated
from horai.db.stage_connection import StageConnection
from horai.db.wakeups import Wakeups
from horai.engine.lease import NodeLease
from horai.operations.overlap import OpenedGates, open_gates

AT_ONCE = 500
BUSY_PAUSE = timedelta(milliseconds=20)
WAITING_PAUSE = timedelta(seconds=1)


class OverlapGate:
    """The stage that lets slots go."""

    name = "overlap_gate"

    def __init__(
        self, line: StageConnection, keeper: NodeLease, wakeups: Wakeups, settings: EngineSettings, now: datetime
    ) -> None:
        self.line = line
        self.signal = asyncio.Event()
        self._keeper = keeper
        self._wakeups = wakeups
        self._settings = settings
        self._asked: set[int] = set()
        self._waiting: set[int] = set()
        self._look_at = now
        self._sweep_at = now
        self._is_sweep_due = False

    def ask(self, job_ids: Iterable[int]) -> None:
        """A run of these jobs has ended, or a slot of theirs is held."""
        self._asked.update(job_ids)
        if self._asked:
            self.signal.set()

    def rescan_all(self) -> None:
        """Rows were moved, or wakes missed: whatever is stuck is found."""
        self._is_sweep_due = True
        self.signal.set()

    async def step(self, now: datetime) -> datetime:
        """Decides on whatever was asked about, or is due for another look."""
        shards = self._keeper.shards(Duty.trigger)
        if now >= self._sweep_at or self._is_sweep_due:
            self._is_sweep_due = False
            if shards:
                await self._sweep(await self.line.get(), shards)
            self._sweep_at = now + self._settings.sweep
        if now >= self._look_at:
            self._asked |= self._waiting
            self._look_at = now + WAITING_PAUSE
        busy: set[int] = set()
        while self._asked:
            some = {self._asked.pop() for _ in range(min(AT_ONCE, len(self._asked)))}
            busy |= await self._open(await self.line.get(), some)
        self._asked |= busy
        if busy:
            return now + BUSY_PAUSE
        return min(self._sweep_at, self._look_at if self._waiting else self._sweep_at)

    async def _open(self, connection: Dedicated, job_ids: set[int]) -> set[int]:
        """Those that somebody else held."""
        try:
            opened = await open_gates(connection, job_ids)
        except BaseException:
            self._asked |= job_ids
            raise
        self._waiting = (self._waiting - job_ids) | opened.waiting
        self._tell(opened)
        return opened.busy

    def _tell(self, opened: OpenedGates) -> None:
        self._wakeups.announce(opened.woken)
        for claim in opened.ended:
            self._wakeups.claim_ended(claim.instance_id, claim.fence)
        if opened.ended:
            self._wakeups.runs_asked([claim.instance_id for claim in opened.ended])

    async def _sweep(self, connection: Dedicated, shards: frozenset[int]) -> None:
        """Where no job has a gate, nobody looks at instances."""
        if not await overlap.has_gates(connection):
            return
        after = 0
        while page := await overlap.stuck_gates(connection, after, AT_ONCE, shards):
            self._asked.update(page)
            after = page[-1]
            if len(page) < AT_ONCE:
                return
