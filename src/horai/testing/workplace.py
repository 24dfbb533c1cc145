"""The stages of a worker and of a scheduler on one database, called step by step: no loops, no leases, no waiting.

They are the stages of the product, with its SQL. Only time does not pass by itself: the clock stands still, and the
database reports the work that is due at each moment.
"""

import asyncio
import math
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from horai import __version__
from horai.core.health import EngineHealth
from horai.core.job import BUILTIN
from horai.core.limits import SHARDS
from horai.core.settings import EngineSettings
from horai.core.shards import EVERY_ROLE, Duty, Role
from horai.core.states import FINAL, State
from horai.core.wakes import KeyWake, LaneWake, MoveWaitingWake, OutcomeWake, QueueWake
from horai.db import claim_lanes, idempotency, nodes
from horai.db.pool import Lender, Platform
from horai.db.stage_connection import StageConnection
from horai.db.wakeups import Wakeups
from horai.engine.catch_up import CatchUp
from horai.engine.dispatch.admission import Admission
from horai.engine.dispatch.attempts import Attempts, Executor
from horai.engine.dispatch.claimer import Claimer
from horai.engine.dispatch.dispatcher import Dispatcher, DispatcherParts
from horai.engine.dispatch.host_gates import HostGates
from horai.engine.dispatch.in_flight import InFlight
from horai.engine.dispatch.retry_limiter import RetryLimiter
from horai.engine.dispatch.scans import Scans
from horai.engine.expirer import Expirer
from horai.engine.janitor import KEYS_AT_ONCE, Janitor
from horai.engine.key_gate import KeyGate
from horai.engine.lease import Lease
from horai.engine.loop import Stage
from horai.engine.overlap_gate import OverlapGate
from horai.engine.progress_writer import ProgressWriter
from horai.engine.rescuer import Rescuer
from horai.engine.trigger import Trigger
from horai.features.parts import StageParts, stages_of
from horai.features.registry import FEATURES, JOB_HOOKS
from horai.operations.keyring import Keyring
from horai.sdk.app import Horai
from horai.sdk.functions import Crew
from horai.sdk.step_writer import StepWriter
from horai.testing import store
from horai.testing.clock import VirtualClock
from horai.testing.jobs import FreshJobs
from horai.testing.journal import Journal
from horai.testing.keys import TEST_KEYS
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
class LoneLease:
    """The lease of the only node: it holds every shard, and it never expires."""

    incarnation: int = 0
    on_change: list[Callable[[], None]] = field(default_factory=list[Callable[[], None]])
    on_lost_node: list[Callable[[], None]] = field(default_factory=list[Callable[[], None]])

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


class SharedConnection(Lender[Platform]):
    """A pool of one connection for the built-in executors; one of them uses it at a time."""

    def __init__(self, url: str) -> None:
        self._line, self._lock = StageConnection(url, "horai test built-in"), asyncio.Lock()

    @asynccontextmanager
    async def lend(self) -> AsyncGenerator[Platform]:
        """Yield the connection."""
        async with self._lock:
            yield await self._line.get()

    async def close(self) -> None:
        """Close the connection."""
        await self._line.close()


class FreshRescuer(Rescuer):
    """A rescuer that reads jobs without a cache."""

    def __init__(self, line: StageConnection, lease: Lease, wakeups: Wakeups) -> None:
        super().__init__(line, lease, wakeups, SETTINGS)
        self._jobs = FreshJobs()


class Workplace:
    """All stages that run instances, at a moment that the test chooses. `patience`: real seconds for one moment."""

    def __init__(
        self,
        url: str,
        app: Horai,
        clock: VirtualClock,
        patience: float,
        wakeups: Wakeups,
        builtin: Mapping[str, Executor],
    ) -> None:
        """Build the stages. `builtin` are the executors of features, by handler."""
        self.clock = clock
        self.wakeups = wakeups
        self.mishaps = Mishaps()
        self._patience = patience
        self._line = StageConnection(url, "horai test")
        self._payloads = StageConnection(url, "horai test payloads")
        self._progress_writer = ProgressWriter(self._line, clock, Keyring(TEST_KEYS))
        self.journal = Journal(clock, self._progress_writer)
        self._crew = Crew(CONCURRENCY, self.journal)
        self.steps = self._crew.steps = StepWriter(StageConnection(url, "horai test steps"))
        self._node = lease = LoneLease()
        self._in_flight = InFlight(SETTINGS.in_flight, EngineHealth())
        self._settler = LosingSettler(self._line, self._in_flight, self.wakeups, SETTINGS, self.mishaps.lost)
        self._stirred = self._settler.signal
        self._has_news = False
        self._running_code: dict[str, Executor] = {**self._executors(app), **builtin}
        self._dispatcher = Dispatcher(self._line, self._dispatcher_parts(self._running_code))
        self._trigger = Trigger(self._line, lease, self.wakeups, SETTINGS, clock.now())
        self._rescuer = FreshRescuer(self._line, lease, self.wakeups)
        self._janitor = Janitor(self._line, self.wakeups, EngineHealth(), SETTINGS, NEVER, JOB_HOOKS)
        self._catch_up = CatchUp(self._line, lease, self.wakeups, SETTINGS)
        self._overlap_gate = OverlapGate(self._line, lease, self.wakeups, SETTINGS, clock.now())
        self._key_gate = KeyGate(self._line, lease, self.wakeups, SETTINGS, clock.now(), self._in_flight.find)
        features = StageParts(self._shared_line, lease, self.wakeups, SETTINGS, EVERY_ROLE, clock.now(), JOB_HOOKS)
        self._in_order: list[Stage] = [
            self._rescuer,
            self._janitor,
            Expirer(self._line, self.wakeups, SETTINGS),
            self._trigger,
            self._catch_up,
            *stages_of(FEATURES, features),
            self._overlap_gate,
            self._key_gate,
        ]
        self._listen()

    def _shared_line(self, *_: object) -> StageConnection:
        """Return the connection of all stages: they take turns."""
        return self._line

    def _executors(self, app: Horai) -> Mapping[str, Executor]:
        """Return the executors of all functions, isolated ones too, in this process."""
        inner = {name: job.executor(self._crew) for name, job in app.jobs.items()}
        return {name: WatchedExecutor(executor, self.journal, self.mishaps) for name, executor in inner.items()}

    def deploy(self, app: Horai) -> None:
        """Run the functions of another application in place of those with the same names."""
        self._running_code.update(self._executors(app))

    def _dispatcher_parts(self, executors: Mapping[str, Executor]) -> DispatcherParts:
        clock, lease, in_flight, settler = self.clock, self._node, self._in_flight, self._settler
        cache, health = FreshJobs(Keyring(TEST_KEYS)), EngineHealth()
        settler.encrypted, settler.keyring = cache.encrypted, cache.keyring
        attempts = Attempts(executors, settler, lease, cache, self._payloads, health)
        scans = Scans(attempts.handlers, clock.now())
        claimer = Claimer(lease, scans, in_flight, settler, clock, health)
        gates = HostGates(SETTINGS, health, clock)
        retries = RetryLimiter(scans.controls, health, clock)
        admission = Admission(attempts, settler, in_flight, cache, self.wakeups, gates, retries)
        return DispatcherParts(lease, attempts, admission, claimer, scans, in_flight, clock, health, SETTINGS, gates)

    def _listen(self) -> None:
        self._dispatcher.subscribe_to(self.wakeups)
        self.wakeups.subscribe(LaneWake, self._stir)
        self.wakeups.subscribe(QueueWake, self._stir)
        self.wakeups.subscribe(KeyWake, self._key_gate.hear)
        self.wakeups.subscribe(MoveWaitingWake, lambda _: self._key_gate.rescan_all())
        self.wakeups.subscribe(OutcomeWake, lambda wake: self._crew.claim_over(wake.instance_id, wake.fence))

    def _stir(self, _wake: LaneWake | QueueWake) -> None:
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
        return frozenset(name for name in self._dispatcher.parts.attempts.handlers if not name.startswith(BUILTIN))

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
        timer = self._dispatcher.parts.scans.next_at()  # of instances that the rate of their queue holds back
        coming = [at for at in (outlook.next_at, timer) if at is not None and at > self.clock.now()]
        return min(coming, default=None)

    def _stuck(self) -> Stuck:
        running = ", ".join(f"{fired.job} (attempt {fired.attempt})" for fired in self.journal.under_way())
        return Stuck(
            f"At {self.clock.now().isoformat()} the due work did not end within {self._patience:g} s of real time"
            f"{f'; still running: {running}' if running else ''}. A function that sleeps or waits for an hour does so in"
            " real time; one that asks for RetryLater(0) again and again never ends."
        )

    async def _until_quiet(self, connection: Platform) -> StoreOutlook:
        """Work until nothing is due or changes: rows of a paused or full queue, or without a handler, stay due."""
        last: StoreOutlook | None = None
        while True:
            outlook = await store.outlook(connection)
            if outlook.is_quiet or outlook == last:
                return outlook
            last = None if await self._serve(connection, outlook) else outlook

    async def _serve(self, connection: Platform, outlook: StoreOutlook) -> bool:
        """Run each stage that has due work; return whether the dispatcher claimed a row."""
        self._trigger.reload()
        self.wakeups.deliver(MoveWaitingWake())  # stages that remember what they have seen look again
        for stage in self._in_order:
            if stage.name in outlook.due_stages:
                await stage.step(self.clock.now())
        if self._rescuer.name in outlook.due_stages:
            await self.journal.look_up(connection)
        for shard, lane, due, _ in outlook.places:
            self._dispatcher.wake(shard, lane, due)
        self._dispatcher.is_active = False
        await self._claim(connection)
        await self._finish(connection)
        return self._dispatcher.is_active

    async def _claim(self, connection: Platform) -> None:
        self._has_news = False
        self._dispatcher.learn(await claim_lanes.lanes(connection))
        await self._dispatcher.step(self.clock.now())

    async def _finish(self, connection: Platform) -> None:
        """Wait until every function has ended and is settled. Instances that they add for now run meanwhile."""
        while len(self._in_flight):
            self._stirred.clear()
            await self._settler.step(self.clock.now())
            await self._key_gate.step(self.clock.now())
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

    async def _die(self, connection: Platform) -> None:
        """Replace the dead worker by a new one. Its last heartbeat is now; it is rescued when its lease has expired."""
        await nodes.renew_node(connection, self._node.incarnation, SETTINGS.lease - MICROSECOND)
        self.mishaps.lost.clear()
        self._node.incarnation = await _register(connection)

    async def close(self) -> None:
        """Cancel running attempts and close the connections."""
        await self._dispatcher.parts.attempts.break_off()
        await self.steps.close()
        self._crew.close()
        await self._line.close()
        await self._payloads.close()


async def _register(connection: Platform) -> int:
    incarnation, _ = await nodes.register_node(
        connection, "horai.testing", "test", 0, __version__, LIFELONG, EVERY_ROLE | {Role.worker}
    )
    return incarnation
