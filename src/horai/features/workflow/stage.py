"""The workflow stage: it advances runs of workflows.

It releases nodes whose parents have all succeeded, and cancels nodes with a cancelled parent. The stage is notified
when an instance that may be a node of a run ends on this node. If another transaction held a run, the stage tries again
after 20 ms. It checks the runs that it knows to be in progress after 1 s, and then with exponential back-off, for nodes
that ended elsewhere. A sweep finds runs that no notification named.
"""

import asyncio
from datetime import datetime, timedelta

from horai.core.settings import EngineSettings
from horai.core.shards import Duty, Role
from horai.core.wakes import MoveWaitingWake, OverlapWake, RunsWake
from horai.db.pool import Plans
from horai.db.stage_connection import StageConnection
from horai.db.wakeups import Wakeups
from horai.engine.lease import Lease
from horai.engine.loop import Stage
from horai.engine.pending_ids import PendingIds
from horai.engine.settler import LOCK_TIMEOUT
from horai.features.parts import StageParts
from horai.features.workflow import run_store
from horai.features.workflow.runs import advance_runs
from horai.operations.keyring import keyring_of

AT_ONCE = 200
HEARD_AT_ONCE = 1_000
"""Instances whose runs one query finds: a map hears of many ends at once."""
BUSY_PAUSE = timedelta(milliseconds=20)
BULK_PAUSE = timedelta(milliseconds=40)
"""The time between decisions while a map has many items under way: each one reads all items of the map."""
LOOK_PAUSE = timedelta(seconds=1)
"""The time until the first check of runs in progress; it doubles without notifications, up to the sweep interval."""
SELDOM = timedelta(minutes=2)
"""The time until the next sweep if no run is unfinished."""
KNOWN_LIMIT = 1_000
"""The number of runs in progress that are checked directly, which costs about 20 ms; the sweep covers the others."""


class WorkflowStage:
    """The stage that advances runs of workflows."""

    name = "workflow"

    def __init__(
        self, line: StageConnection, lease: Lease, wakeups: Wakeups, settings: EngineSettings, now: datetime
    ) -> None:
        self._keyring = keyring_of(settings).forget_when_erased(wakeups)
        self.line = line
        self.signal = asyncio.Event()
        self._lease = lease
        self._wakeups = wakeups
        self._settings = settings
        self._heard = PendingIds(HEARD_AT_ONCE)
        self._asked = PendingIds(AT_ONCE)
        self._under_way: set[int] = set()
        self._look_at = now
        self._look_pause = LOOK_PAUSE
        self._sweep_at = now
        self._is_sweep_due = False
        self._unfilled: set[int] = set()
        self._is_in_bulk = False
        self._rests_until = now

    def hear(self, wake: RunsWake) -> None:
        """Queue the instances of a wake for a decision on their runs."""
        self._heard.update(wake.instance_ids)
        if self._heard:
            self.signal.set()

    def rescan_all(self) -> None:
        """Request a sweep, because rows were moved or wakes were missed."""
        self._is_sweep_due = True
        self.signal.set()

    async def step(self, now: datetime) -> datetime:
        """Decide on the runs that were asked about or are due for another check; return the time of the next step."""
        if timedelta(0) < self._rests_until - now <= BULK_PAUSE:  # longer: the clock was set back
            return self._rests_until
        if now >= self._sweep_at or self._is_sweep_due:
            self._is_sweep_due = False
            self._sweep_at = now + (self._settings.sweep if await self._sweep() else SELDOM)
        if now >= self._look_at and self._under_way:
            self._asked.update(await run_store.stuck_among(await self.line.get(), self._under_way))
            self._look_at = now + self._look_pause
            self._look_pause = min(self._look_pause * 2, self._settings.sweep)
        await self._heard.decide(self._find_runs)
        if self._asked:
            self._look_pause = LOOK_PAUSE
            self._look_at = min(self._look_at, now + LOOK_PAUSE)
        self._is_in_bulk = False
        self._unfilled.clear()
        await self._asked.decide(self._advance)
        if self._unfilled:
            self._asked.update(self._unfilled)
            return now
        if self._is_in_bulk:
            self._rests_until = now + BULK_PAUSE
            return self._rests_until
        if self._asked or self._heard:
            return now + BUSY_PAUSE
        return min(self._sweep_at, self._look_at if self._under_way else self._sweep_at)

    async def _find_runs(self, instance_ids: set[int]) -> set[int]:
        """Find the runs of these instances. None of the instances has to be checked again."""
        self._asked.update(await run_store.runs_of(await self.line.get(), instance_ids))
        return set()

    async def _advance(self, run_ids: set[int]) -> set[int]:
        """Advance runs and return those to check again soon."""
        advanced = await advance_runs(await self.line.get(), run_ids, self._keyring)
        self._under_way -= run_ids
        self._under_way |= set(sorted(advanced.running)[: max(KNOWN_LIMIT - len(self._under_way), 0)])
        self._wakeups.announce_new(advanced.woken)
        advanced.tell_revoked(self._wakeups)
        if advanced.gates:
            self._wakeups.publish(OverlapWake(advanced.gates))
        self._unfilled |= advanced.unfilled
        self._is_in_bulk |= advanced.is_in_bulk
        return advanced.busy

    async def _sweep(self) -> bool:
        """Find runs with an open decision. Return False, without reading instances, if no run is unfinished."""
        shards = self._lease.shards(Duty.trigger)
        if not shards:
            return False
        connection = await self.line.get()
        if not await run_store.has_open_runs(connection):
            return False
        await self._asked.add_pages(lambda after, limit: run_store.stuck_runs(connection, after, limit, shards))
        return True


def stages(parts: StageParts) -> list[Stage]:
    """Build the stage in processes that end instances or create slots."""
    if not parts.roles & {Role.executor, Role.worker, Role.scheduler}:
        return []
    line = parts.line("workflow", LOCK_TIMEOUT, Plans.CHOSEN)  # its queries select a few runs or all
    stage = WorkflowStage(line, parts.lease, parts.wakeups, parts.settings, parts.now)
    parts.wakeups.subscribe(RunsWake, stage.hear)
    parts.wakeups.subscribe(MoveWaitingWake, lambda _: stage.rescan_all())
    parts.lease.on_change.append(stage.rescan_all)  # the node that held them may have died before it could ask
    parts.lease.on_lost_node.append(stage.rescan_all)
    return [stage]
