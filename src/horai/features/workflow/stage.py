"""Leads runs of workflows on: lets go what has all its parents behind it, and ends what has lost one.

It is asked whenever an instance ends here that may be a node of a run. What it could not decide, because somebody held
the run, it looks at again at once; runs that it knows to be under way, after a second and then ever more seldom, for nodes that
ended elsewhere; and a sweep finds what nobody asked about.
"""

import asyncio
from collections.abc import Iterable
from datetime import datetime, timedelta

from horai.core.settings import EngineSettings
from horai.core.shards import Duty, Role
from horai.db.pool import Dedicated, Plans
from horai.db.stage_connection import StageConnection
from horai.db.wakeups import Wakeups
from horai.engine.lease import NodeLease
from horai.engine.loop import Stage
from horai.engine.settler import LOCK_TIMEOUT
from horai.features.parts import StageParts
from horai.features.workflow import run_store
from horai.features.workflow.runs import advance_runs

AT_ONCE = 200
BUSY_PAUSE = timedelta(milliseconds=20)
LOOK_PAUSE = timedelta(seconds=1)
"""Until the first look at runs under way; each look that follows without anything heard comes twice as late, up to a sweep."""
SELDOM = timedelta(minutes=2)
"""When no run is open anywhere, the next sweep comes so much later."""
KNOWN_LIMIT = 1_000
"""So many runs under way are looked at by themselves, which costs some 20 ms; the others are left to the sweep."""


class WorkflowStage:
    """The stage that leads workflows on."""

    name = "workflow"

    def __init__(
        self, line: StageConnection, keeper: NodeLease, wakeups: Wakeups, settings: EngineSettings, now: datetime
    ) -> None:
        self.line = line
        self.signal = asyncio.Event()
        self._keeper = keeper
        self._wakeups = wakeups
        self._settings = settings
        self._heard: set[int] = set()
        self._asked: set[int] = set()
        self._under_way: set[int] = set()
        self._look_at = now
        self._look_pause = LOOK_PAUSE
        self._sweep_at = now
        self._is_sweep_due = False

    def hear(self, instance_ids: Iterable[int]) -> None:
        """These instances have ended, were replayed, or have started a run."""
        self._heard.update(instance_ids)
        if self._heard:
            self.signal.set()

    def rescan_all(self) -> None:
        """Rows were moved, or wakes missed: whatever is stuck is found."""
        self._is_sweep_due = True
        self.signal.set()

    async def step(self, now: datetime) -> datetime:
        """Decides on whatever was asked about, or is due for another look."""
        if now >= self._sweep_at or self._is_sweep_due:
            self._is_sweep_due = False
            self._sweep_at = now + (self._settings.sweep if await self._sweep() else SELDOM)
        if now >= self._look_at and self._under_way:
            self._asked.update(await run_store.stuck_among(await self.line.get(), self._under_way))
            self._look_at = now + self._look_pause
            self._look_pause = min(self._look_pause * 2, self._settings.sweep)
        await self._find_runs()
        if self._asked:
            self._look_pause = LOOK_PAUSE
            self._look_at = min(self._look_at, now + LOOK_PAUSE)
        busy: set[int] = set()
        while self._asked:
            some = {self._asked.pop() for _ in range(min(AT_ONCE, len(self._asked)))}
            busy |= await self._advance(await self.line.get(), some)
        self._asked |= busy
        if busy or self._heard:
            return now + BUSY_PAUSE
        return min(self._sweep_at, self._look_at if self._under_way else self._sweep_at)

    async def _find_runs(self) -> None:
        """Which runs the instances belong to that were heard of."""
        while self._heard:
            heard = {self._heard.pop() for _ in range(min(AT_ONCE, len(self._heard)))}
            try:
                self._asked |= await run_store.runs_of(await self.line.get(), heard)
            except BaseException:
                self._heard |= heard
                raise

    async def _advance(self, connection: Dedicated, run_ids: set[int]) -> set[int]:
        """Those to ask about again."""
        try:
            advanced = await advance_runs(connection, run_ids)
        except BaseException:
            self._asked |= run_ids
            raise
        self._under_way -= run_ids
        self._under_way |= set(sorted(advanced.running)[: max(KNOWN_LIMIT - len(self._under_way), 0)])
        self._wakeups.announce(advanced.woken)
        if advanced.gates:
            self._wakeups.gates_asked(advanced.gates)
        return advanced.busy

    async def _sweep(self) -> bool:
        """Whether any run is open. Where none is, nobody looks at instances."""
        shards = self._keeper.shards(Duty.trigger)
        if not shards or not await run_store.has_open_runs(await self.line.get()):
            return False
        after = 0
        while page := await run_store.stuck_runs(await self.line.get(), after, AT_ONCE, shards):
            self._asked.update(page)
            after = page[-1]
            if len(page) < AT_ONCE:
                break
        return True


def stages(parts: StageParts) -> list[Stage]:
    """Build the stage, wherever instances end or slots are made."""
    if not parts.roles & {Role.executor, Role.worker, Role.scheduler}:
        return []
    line = parts.line("workflow", LOCK_TIMEOUT, Plans.CHOSEN)  # it asks for some runs, or for all
    conductor = WorkflowStage(line, parts.lease, parts.wakeups, parts.settings, parts.now)
    parts.wakeups.listen_to_runs(conductor.hear)
    parts.wakeups.listen_to_relanes(conductor.rescan_all)
    parts.lease.on_change.append(conductor.rescan_all)  # the node that held them may have died before it could ask
    parts.lease.on_lost_node.append(conductor.rescan_all)
    return [conductor]
