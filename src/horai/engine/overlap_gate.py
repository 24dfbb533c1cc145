"""The overlap gate: the stage that decides on slots that wait for the previous run of their job.

It runs when a run of such a job ends here, or when a slot is made for such a job. It retries jobs that it could not
decide, because another transaction held the job or the run continues on another node. A sweep finds jobs for which no
wake arrived.
"""

import asyncio
from datetime import datetime, timedelta

from horai.core.settings import EngineSettings
from horai.core.shards import Duty
from horai.core.wakes import OutcomeWake, OverlapWake, RunsWake
from horai.db import overlap
from horai.db.pool import Platform
from horai.db.stage_connection import StageConnection
from horai.db.wakeups import Wakeups
from horai.engine.lease import Lease
from horai.engine.pending_ids import PendingIds
from horai.operations.overlap import OpenedGates, open_gates

AT_ONCE = 500
BUSY_PAUSE = timedelta(milliseconds=20)
WAITING_PAUSE = timedelta(seconds=1)


class OverlapGate:
    """The stage that releases waiting slots."""

    name = "overlap_gate"

    def __init__(
        self, line: StageConnection, lease: Lease, wakeups: Wakeups, settings: EngineSettings, now: datetime
    ) -> None:
        self.line = line
        self.signal = asyncio.Event()
        self._lease = lease
        self._wakeups = wakeups
        self._settings = settings
        self._asked = PendingIds(AT_ONCE)
        self._waiting: set[int] = set()
        self._look_at = now
        self._sweep_at = now
        self._is_sweep_due = False

    def hear(self, wake: OverlapWake) -> None:
        """Queue the jobs of a wake for a decision."""
        self._asked.update(wake.job_ids)
        if self._asked:
            self.signal.set()

    def rescan_all(self) -> None:
        """Request a sweep for stuck jobs: rows were moved, or wakes were missed."""
        self._is_sweep_due = True
        self.signal.set()

    async def step(self, now: datetime) -> datetime:
        """Decide on the requested jobs and on those due for another check."""
        shards = self._lease.shards(Duty.trigger)
        if now >= self._sweep_at or self._is_sweep_due:
            self._is_sweep_due = False
            if shards:
                await self._sweep(await self.line.get(), shards)
            self._sweep_at = now + self._settings.sweep
        if now >= self._look_at:
            self._asked |= self._waiting
            self._look_at = now + WAITING_PAUSE
        await self._asked.decide(self._open)
        if self._asked:
            return now + BUSY_PAUSE
        return min(self._sweep_at, self._look_at if self._waiting else self._sweep_at)

    async def _open(self, job_ids: set[int]) -> set[int]:
        """Decide on these jobs. Return those that another transaction held."""
        opened = await open_gates(await self.line.get(), job_ids)
        self._waiting = (self._waiting - job_ids) | opened.waiting
        self._tell(opened)
        return opened.busy

    def _tell(self, opened: OpenedGates) -> None:
        self._wakeups.announce(opened.woken)
        for claim in opened.ended:
            self._wakeups.publish(OutcomeWake(claim.instance_id, claim.fence))
        if opened.ended:
            self._wakeups.publish(RunsWake([claim.instance_id for claim in opened.ended]))

    async def _sweep(self, connection: Platform, shards: frozenset[int]) -> None:
        """Request decisions for stuck jobs. If no job has a gate, read no instances."""
        if await overlap.has_gates(connection):
            await self._asked.add_pages(lambda after, limit: overlap.stuck_gates(connection, after, limit, shards))
