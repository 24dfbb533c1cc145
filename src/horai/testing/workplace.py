"""The stages of a worker and of a scheduler on one database, called step by step: no loops, no leases, no waiting.

They are the stages of the product, with its SQL. Only time does not pass by itself: the clock stands still, and the
database reports the work that is due at each moment.
"""

import asyncio
import math
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import cast

from horai import __version__
from horai.core.health import EngineHealth
from horai.core.job import HOUSE
from horai.core.refresh import REFRESH_HANDLER
from horai.core.settings import SHARDS, EngineSettings
from horai.core.shards import EVERY_ROLE, Duty, Role
from horai.core.states import FINAL, State
from horai.db import idempotency, jobs, nodes
from horai.db.pool import Connection
from horai.db.stage_connection import StageConnection
from horai.db.wakeups import Wakeups
from horai.engine.catch_up import CatchUp
from horai.engine.dispatch.admission import Admission
from horai.engine.dispatch.attempts import Attempts, Executor
from horai.engine.dispatch.claimer import Claimer
from horai.engine.dispatch.dispatcher import Dispatcher, DispatcherParts
from horai.engine.dispatch.in_flight import InFlight
from horai.engine.dispatch.scans import Scans
from horai.engine.janitor import KEYS_AT_ONCE, Janitor
from horai.engine.lease import NodeLease
from horai.engine.overlap_gate import OverlapGate
from horai.engine.progress_writer import ProgressWriter
from horai.engine.rescuer import Rescuer
from horai.engine.trigger import Trigger
from horai.features.backfill.stage import BackfillStage
from horai.features.refresh.executor import RefreshExecutor
from horai.features.registry import JOB_HOOKS
from horai.features.workflow.definition import WORKFLOW_HANDLER
from horai.features.workflow.executor import WorkflowExecutor
from horai.features.workflow.stage import WorkflowStage
from horai.sdk.app import Horai
from horai.sdk.functions import Crew
from horai.testing import store
from horai.testing.clock import VirtualClock
from horai.testing.jobs import FreshJobs
from horai.testing.journal import Journal
from horai.testing.mishaps import LosingSettler, Mishaps, WatchedExecutor
from horai.testing.store import StoreOutlook

SETTINGS = EngineSettings(settle_wait=timedelta(0))
LIFELONG = timedelta(days=36_500)
"""The lease of a worker that does not crash."""
MICROSECOND = timedelta(microseconds=1)
CONCURRENCY = 100
"""Functions that run at once, the default of a worker."""
NEVER = datetime(9999, 12, 31, tzinfo=UTC)
LOOK_AGAIN = 0.05
"""Seconds before a row that another transaction has locked is tried again."""


class Stuck(RuntimeError):
    """The work due at one moment did not end within `patience`."""


@dataclass(slots=True)
class LoneKeeper:
    """The lease of the only node: it holds every shard, and it never expires."""

    incarnation: int = 0

    @property
    def trusted_until(self) -> float:
        """Return infinity: the lease never expires."""
        return math.inf

    def holds(self) -> bool:
        """Return True: the lease never expires."""
        return True

    def shards(self, _duty: Duty) -> frozenset[int]:
        """Return all shards."""
        return frozenset(range(SHARDS))


class FreshRescuer(Rescuer):
    """A rescuer that reads jobs without a cache."""

    def __init__(self, line: StageConnection, lease: NodeLease, wakeups: Wakeups) -> None:
        super().__init__(line, lease, wakeups, SETTINGS)
        self._jobs = FreshJobs()


class Workplace:
    """All stages that run instances, at a moment that the test chooses. `patience`: real seconds for one moment."""

    def __init__(self, url: str, app: Horai, clock: VirtualClock, patience: float) -> None:
        self.clock = clock
        self.wakeups = Wakeups()
        self.mishaps = Mishaps()
        self._patience = patience
        self._line = StageConnection(url, "horai test")
        self._payloads = StageConnection(url, "horai test payloads")
        self._builtin_line, self._builtin_lock = StageConnection(url, "horai test built-in"), asyncio.Lock()
        self._progress_writer = ProgressWriter(self._line, clock)
        self.journal = Journal(clock, self._progress_writer)
        self._crew = Crew(CONCURRENCY, self.journal)
        self._node = LoneKeeper()
        self._in_flight = InFlight(SETTINGS.in_flight, EngineHealth())
        self._settler = LosingSettler(self._line, self._in_flight, self.wakeups, SETTINGS, self.mishaps.lost)
        self._stirred = self._settler.signal
        self._has_news = False
        lease = cast("NodeLease", self._node)
        self._dispatcher = Dispatcher(self._line, self._bench(lease, self._executors(app)))
        self._trigger = Trigger(self._line, lease, self.wakeups, SETTINGS, clock.now())
        self._rescuer = FreshRescuer(self._line, lease, self.wakeups)
        self._janitor = Janitor(self._line, self.wakeups, EngineHealth(), SETTINGS, NEVER, JOB_HOOKS)
        self._catch_up = CatchUp(self._line, lease, self.wakeups, SETTINGS)
        self._backfill = BackfillStage(self._line, lease, self.wakeups, SETTINGS, JOB_HOOKS)
        self._overlap_gate = OverlapGate(self._line, lease, self.wakeups, SETTINGS, clock.now())
        self._workflow_stage = WorkflowStage(self._line, lease, self.wakeups, SETTINGS, clock.now())
        self._listen()

    def _executors(self, app: Horai) -> Mapping[str, Executor]:
        """Return the executors of all functions, isolated ones too, in this process, and the built-in executors."""
        inner = {name: job.executor(self._crew) for name, job in app.jobs.items()}
        watched = {name: WatchedExecutor(executor, self.journal, self.mishaps) for name, executor in inner.items()}
        builtin = {
            WORKFLOW_HANDLER: WorkflowExecutor(self._lent, self.wakeups),
            REFRESH_HANDLER: RefreshExecutor(self._lent, self.wakeups),
        }
        return {**watched, **builtin}

    @asynccontextmanager
    async def _lent(self) -> AsyncGenerator[Connection]:
        """Yield the connection of the built-in executors; one of them uses it at a time."""
        async with self._builtin_lock:
            yield await self._builtin_line.get()

    def _bench(self, lease: NodeLease, executors: Mapping[str, Executor]) -> DispatcherParts:
        clock, in_flight, settler, cache, vitals = (
            self.clock,
            self._in_flight,
            self._settler,
            FreshJobs(),
            EngineHealth(),
        )
        attempts = Attempts(executors, settler, lease, cache, self._payloads, vitals)
        scans = Scans(attempts.handlers, clock.now())
        claimer = Claimer(lease, scans, in_flight, settler, clock, vitals)
        admission = Admission(attempts, settler, in_flight, cache, self.wakeups)
        return DispatcherParts(lease, attempts, admission, claimer, scans, in_flight, clock, vitals, SETTINGS)

    def _listen(self) -> None:
        self.wakeups.listen(self._wake)
        self.wakeups.listen_to_queues(self._wake_queue)
        self.wakeups.listen_to_outcomes(self._crew.claim_over)

    def _wake(self, shard: int | None, lane: int, due: datetime) -> None:
        self._dispatcher.wake(shard, lane, due)
        self._stir()

    def _wake_queue(self, queue_id: int) -> None:
        self._dispatcher.wake_queue(queue_id)
        self._stir()

    def _stir(self) -> None:
        """Note that new rows may be claimable while functions run."""
        self._has_news = True
        self._stirred.set()

    async def open(self) -> None:
        """Start the virtual time and register the worker."""
        connection = await self._line.get()
        await store.move_to(connection, self.clock.now())
        self._node.incarnation = await _register(connection)

    async def move_to(self, moment: datetime) -> None:
        """Set the time to `moment` without running anything in between; remove expired idempotency keys."""
        self.clock.move_to(moment)
        connection = await self._line.get()
        await store.move_to(connection, moment)
        await idempotency.forget_keys(connection, SETTINGS.idempotency_keep, KEYS_AT_ONCE)

    @property
    def job_names(self) -> frozenset[str]:
        """Return the names of the jobs whose functions run here, without built-in ones."""
        return frozenset(name for name in self._dispatcher.bench.attempts.handlers if not name.startswith(HOUSE))

    async def has_ended(self, instance_id: int) -> bool:
        """Return whether an instance is final."""
        found = await store.came_to(await self._line.get(), [instance_id])
        return bool(found) and State[found[0].state] in FINAL

    async def drain(self) -> datetime | None:
        """Run all work that is due now, including work that it adds. Return the next due time. Raises `Stuck`."""
        deadline = asyncio.timeout(self._patience)
        try:
            async with deadline:
                outlook = await self._until_quiet(await self._line.get())
        except TimeoutError:
            if deadline.expired():
                raise self._stuck() from None
            raise
        timer = self._dispatcher.bench.lanes.next_at()  # of instances that the rate of their queue holds back
        coming = [at for at in (outlook.next_at, timer) if at is not None and at > self.clock.now()]
        return min(coming, default=None)

    def _stuck(self) -> Stuck:
        running = ", ".join(f"{fired.job} (attempt {fired.attempt})" for fired in self.journal.under_way())
        return Stuck(
            f"At {self.clock.now().isoformat()} the due work did not end within {self._patience:g} s of real time"
            f"{f'; still running: {running}' if running else ''}. A function that sleeps or waits for an hour does so in"
            " real time; one that asks for RetryLater(0) again and again never ends."
        )

    async def _until_quiet(self, connection: Connection) -> StoreOutlook:
        """Work until nothing is due or changes: rows of a paused or full queue, or without a handler, stay due."""
        last: StoreOutlook | None = None
        while True:
            outlook = await store.outlook(connection)
            if outlook.is_quiet or outlook == last:
                return outlook
            last = None if await self._serve(connection, outlook) else outlook

    async def _serve(self, connection: Connection, outlook: StoreOutlook) -> bool:
        """Run each stage that has due work; return whether the dispatcher claimed a row."""
        now = self.clock.now()
        if "node" in outlook.chores:
            await self._rescuer.step(now)
            await self.journal.look_up(connection)
        if "relane" in outlook.chores:
            await self._janitor.step(now)
        if "schedule" in outlook.chores:
            self._trigger.reload()
            await self._trigger.step(now)
        if "catchup" in outlook.chores:
            await self._catch_up.step(now)
        if "backfill" in outlook.chores:
            await self._backfill.step(now)
        if "gate" in outlook.chores:
            self._overlap_gate.rescan_all()
            await self._overlap_gate.step(now)
        if "run" in outlook.chores:
            self._workflow_stage.rescan_all()
            await self._workflow_stage.step(now)
        for shard, lane, due, _ in outlook.places:
            self._dispatcher.wake(shard, lane, due)
        self._dispatcher.is_active = False
        await self._claim(connection)
        await self._finish(connection)
        return self._dispatcher.is_active

    async def _claim(self, connection: Connection) -> None:
        self._has_news = False
        self._dispatcher.learn(await jobs.lanes(connection))
        await self._dispatcher.step(self.clock.now())

    async def _finish(self, connection: Connection) -> None:
        """Wait until every function has ended and is settled. Instances that they add for now run meanwhile."""
        while len(self._in_flight):
            self._stirred.clear()
            await self._settler.step(self.clock.now())
            await self.journal.look_up(connection)
            if self._has_news:
                await self._claim(connection)
            elif len(self._in_flight):
                with suppress(TimeoutError):
                    async with asyncio.timeout(LOOK_AGAIN):
                        await self._stirred.wait()
        await self._progress_writer.flush()
        if self.mishaps.lost:
            await self._die(connection)

    async def _die(self, connection: Connection) -> None:
        """Replace the dead worker by a new one. Its last heartbeat is now; it is rescued when its lease has expired."""
        await nodes.renew_node(connection, self._node.incarnation, SETTINGS.lease - MICROSECOND)
        self.mishaps.lost.clear()
        self._node.incarnation = await _register(connection)

    async def close(self) -> None:
        """Cancel running attempts and close the connections."""
        await self._dispatcher.bench.attempts.break_off()
        self._crew.close()
        await self._line.close()
        await self._payloads.close()
        await self._builtin_line.close()


async def _register(connection: Connection) -> int:
    incarnation, _ = await nodes.register_node(
        connection, "horai.testing", "test", 0, __version__, LIFELONG, EVERY_ROLE | {Role.worker}
    )
    return incarnation
