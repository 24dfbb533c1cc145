"""The stages of one process: wired together by its roles, started and stopped in order."""

import asyncio
import gc
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from types import MappingProxyType

import structlog

from horai.core.health import EngineHealth
from horai.core.settings import EngineSettings
from horai.core.shards import EVERY_ROLE, Role
from horai.core.shares import SlotCounts
from horai.core.wakes import (
    CatchupWake,
    EverywhereWake,
    KeyWake,
    MoveWaitingWake,
    NodesWake,
    OutcomeWake,
    OverlapWake,
    ParkedKeysWake,
    ScheduleWake,
)
from horai.db.claims import Claim
from horai.db.clock import DatabaseClock
from horai.db.pool import COMMAND_TIMEOUT, LOOP_LOCK_TIMEOUT, Plans
from horai.db.stage_connection import StageConnection
from horai.db.wakeups import Wakeups
from horai.engine import loop
from horai.engine.catch_up import CatchUp
from horai.engine.claim_revoker import ClaimRevoker
from horai.engine.dispatch.admission import Admission
from horai.engine.dispatch.attempts import Attempts, Executor
from horai.engine.dispatch.births import Births
from horai.engine.dispatch.claimer import Claimer
from horai.engine.dispatch.dispatcher import Dispatcher, DispatcherParts
from horai.engine.dispatch.host_gates import HostGates
from horai.engine.dispatch.host_rooms import HostRooms
from horai.engine.dispatch.in_flight import InFlight, SlotOwner
from horai.engine.dispatch.job_cache import JobCache
from horai.engine.dispatch.retry_limiter import RetryLimiter
from horai.engine.dispatch.scans import EVERYWHERE, ClaimReach, Scans
from horai.engine.event_announcer import EventAnnouncer
from horai.engine.executors.traced import traced
from horai.engine.expirer import Expirer
from horai.engine.janitor import Janitor
from horai.engine.key_gate import KeyGate
from horai.engine.lease import NodeLease
from horai.engine.listener import Listener
from horai.engine.loop import OpenStage, Stage
from horai.engine.minute_stats import MinuteStats
from horai.engine.notifier import Notifier
from horai.engine.overlap_gate import OverlapGate
from horai.engine.progress_writer import ProgressWriter
from horai.engine.rescuer import Rescuer
from horai.engine.settler import LOCK_TIMEOUT, Settler
from horai.engine.sweeper import Sweeper
from horai.engine.trigger import Trigger
from horai.engine.vacuum import LONGEST_VACUUM, LiveVacuum
from horai.features.parts import StageParts, stages_of
from horai.features.registry import FEATURES, JOB_HOOKS
from horai.operations.keyring import keyring_of
from horai.operations.loop_time import LoopTime
from horai.operations.traces import Traces

log = structlog.get_logger(__name__)

SETTLE_GRACE = timedelta(seconds=5)
HERALD_TIMEOUT = timedelta(seconds=5)


def collect_seldom() -> None:
    """Make Python's cyclic garbage collection less frequent.

    Claimed rows come and go by the thousand and hold no cycles: scanning them each time was a quarter of Python's work
    in the drain. Objects that exist at the start stay until exit and are not scanned again.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


class Engine:
    """The engine of one process: it triggers, dispatches, settles, rescues and does maintenance until it is stopped."""

    def __init__(
        self,
        url: str,
        name: str,
        executors: Mapping[str, Executor],
        wakeups: Wakeups,
        health: EngineHealth,
        settings: EngineSettings,
        roles: frozenset[Role] = EVERY_ROLE,
        reach: ClaimReach = EVERYWHERE,
        crew: SlotCounts | None = None,
        alone: Mapping[str, Executor] = MappingProxyType({}),
        traces: Traces | None = None,
    ) -> None:
        """Wire the engine. `crew` counts running calls if only a limited number runs at once."""
        self._url = url
        self.traces = traces
        self._alone = traced(alone, traces)
        self._reach = reach
        self._executors = traced(executors, traces)
        self._wakeups = wakeups
        self._health = health
        self._settings = settings
        self._roles = roles
        self.clock = DatabaseClock()
        self.lease = NodeLease(url, name, settings.lease, self.clock, health, roles)
        self.loop_time = LoopTime()
        self.on_settled: Callable[[Sequence[Claim], bool], None] | None = None
        """Set before the start: called with claims whose outcomes were written, and whether they took effect."""
        self._in_flight = InFlight(settings.in_flight, health, crew, executors)
        self.gates = HostGates(settings, health, self.clock)
        self.host_rooms = HostRooms()
        """Limits nothing until it is told how many calls a host accepts."""
        self._may_rest = Role.scheduler not in roles
        """False for a scheduler: its stages poll, and would reopen their connections every minute."""
        self._notifier = Notifier(StageConnection(url, "horai notifier", HERALD_TIMEOUT, may_rest=self._may_rest))
        patience = settings.lease  # three beats
        self._listener = Listener(
            StageConnection(url, "horai listener", patience),
            wakeups,
            self._notifier,
            lambda: self.lease.incarnation,
            patience,
        )
        self._dispatcher: Dispatcher | None = None
        self._minute_stats: MinuteStats | None = None
        self._key_gate: KeyGate | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._stages: list[Stage] = []
        self._attempting = self._line("attempts")
        self._keyring = keyring_of(settings).forget_when_erased(wakeups)
        self.progress_writer = ProgressWriter(self._line("progress_writer"), self.clock, self._keyring)
        self.claim_revoker = ClaimRevoker(self._line("claim_revoker"), self._in_flight)

    async def start(self) -> None:
        """Register the node and start every loop."""
        collect_seldom()
        if self._roles & {Role.executor, Role.worker}:
            self._health.slots = self._settings.concurrency or self._settings.in_flight
            self._health.handlers = tuple(sorted(name for name in self._executors if name))
        else:
            self._health.handlers = ()
        await self.lease.start()
        self._stages = [self._notifier, self._listener]
        if self._roles & {Role.executor, Role.worker}:
            self._stages += self._executing()
        if Role.worker in self._roles:
            self._wakeups.subscribe(OutcomeWake, self.claim_revoker.hear)
            self._stages += [self.progress_writer, self.claim_revoker]
        if Role.scheduler in self._roles:
            self._stages += self._scheduling()
        if self._roles & {Role.executor, Role.worker, Role.scheduler}:
            self._stages += [self._gating(), self._key_gating()]
        self._stages += self._of_features()
        self._wakeups.pass_on_to(self._notifier.tell)
        self._wakeups.subscribe(NodesWake, lambda _: self.lease.nudge())
        self._tasks = [
            asyncio.create_task(
                loop.run(stage, self.clock, self._health, self._settings.background_after), name=stage.name
            )
            for stage in self._stages
        ]

    def _executing(self) -> list[Stage]:
        """Return the stages that claim, run and settle."""
        in_flight, health, settings, clock = self._in_flight, self._health, self._settings, self.clock
        job_cache = JobCache(self._keyring)
        job_cache.subscribe_to(self._wakeups)
        settler = Settler(
            self._line("settler", LOCK_TIMEOUT), in_flight, self._wakeups, health, settings, job_cache.gated
        )
        settler.chained, settler.loop_time = job_cache.chained, self.loop_time
        settler.encrypted, settler.keyring = job_cache.encrypted, job_cache.keyring
        settler.on_written = EventAnnouncer(self.lease.controls, self._wakeups).note
        settler.traces, settler.on_settled = self.traces, self.on_settled
        attempts = Attempts(
            self._executors,
            settler,
            self.lease,
            job_cache,
            self._attempting,
            health,
            self._alone,
            self.loop_time,
        )
        attempts.host_rooms = self.host_rooms
        scans = Scans(self._executors, clock.now(), self._reach, self.lease.controls)
        claimer = Claimer(self.lease, scans, in_flight, settler, clock, health)
        claimer.traces = self.traces
        retries = RetryLimiter(self.lease.controls, health, clock)
        admission = Admission(attempts, settler, in_flight, job_cache, self._wakeups, self.gates, retries)
        parts = DispatcherParts(
            self.lease, attempts, admission, claimer, scans, in_flight, clock, health, settings, self.gates
        )
        dispatcher = self._dispatcher = Dispatcher(self._line("dispatcher", may_rest=False), parts)
        background = self._line("background", may_rest=False)  # both poll, and may wait for each other
        sweeper = Sweeper(background, dispatcher, settler, self._wakeups, lambda: self._listener.is_listening)
        self.lease.on_change.append(dispatcher.signal.set)
        self.lease.on_news.append(sweeper.hear_news)
        dispatcher.subscribe_to(self._wakeups)
        self._wakeups.subscribe(OutcomeWake, attempts.hear)
        mate = settler.mate(self._line("settler 2", LOCK_TIMEOUT))
        self._minute_stats = MinuteStats(background, health, clock.now())
        return [settler, mate, dispatcher, sweeper, self._minute_stats]

    def _scheduling(self) -> list[Stage]:
        """Return the stages that make slots, rescue and do maintenance."""
        now = self.clock.now()
        controls = self.lease.controls
        trigger = Trigger(self._line("trigger"), self.lease, self._wakeups, self._settings, now, controls)
        trigger.traces = self.traces
        rescuer = Rescuer(self._line("rescuer"), self.lease, self._wakeups, self._settings)
        rescuer.traces = self.traces
        janitor = Janitor(self._line("janitor"), self._wakeups, self._health, self._settings, now, JOB_HOOKS)
        catch_up_stage = CatchUp(self._line("catch_up"), self.lease, self._wakeups, self._settings)
        self.lease.on_change.append(trigger.reload)
        self.lease.on_lost_node.append(rescuer.signal.set)
        self._wakeups.subscribe(ScheduleWake, trigger.hear)
        self._wakeups.subscribe(EverywhereWake, lambda _: trigger.reload())
        self._wakeups.subscribe(MoveWaitingWake, lambda _: janitor.signal.set())
        self._wakeups.subscribe(CatchupWake, lambda _: catch_up_stage.signal.set())
        self.lease.on_change.append(catch_up_stage.signal.set)
        vacuum = LiveVacuum(StageConnection(self._url, "horai live_vacuum", LONGEST_VACUUM))
        expirer = Expirer(self._line("expirer"), self._wakeups, self._settings)
        return [trigger, rescuer, janitor, catch_up_stage, vacuum, expirer]

    def _gating(self) -> Stage:
        """Return the overlap gate. It runs in every process that ends runs or makes slots."""
        line = self._line("overlap_gate", LOCK_TIMEOUT)
        overlap_gate = OverlapGate(line, self.lease, self._wakeups, self._settings, self.clock.now())
        self._wakeups.subscribe(OverlapWake, overlap_gate.hear)
        self._wakeups.subscribe(MoveWaitingWake, lambda _: overlap_gate.rescan_all())
        self.lease.on_change.append(overlap_gate.rescan_all)  # the node that was to ask may have died
        return overlap_gate

    def _key_gating(self) -> Stage:
        """Return the key gate. It runs in every process that ends claims or rescues them."""
        now, find_claim = self.clock.now(), self._in_flight.find
        key_gate = self._key_gate = KeyGate(
            self._line("key_gate"), self.lease, self._wakeups, self._settings, now, find_claim
        )
        self._wakeups.subscribe(KeyWake, key_gate.hear)
        self._wakeups.subscribe(OutcomeWake, key_gate.hear_outcome)
        self._wakeups.subscribe(ParkedKeysWake, lambda _: key_gate.rescan_all())
        self.lease.on_change.append(key_gate.hear_shards)
        return key_gate

    def _of_features(self) -> list[Stage]:
        parts = StageParts(
            self._line,
            self.lease,
            self._wakeups,
            self._settings,
            self._roles,
            self.clock.now(),
            JOB_HOOKS,
            self.lease.controls,
            self.lease.on_news,
            self.lease.on_events,
        )
        return stages_of(FEATURES, parts)

    def births(self, tenant_id: int) -> Births:
        """Return the claims at birth of this process, for instances of a tenant. The engine must have started."""
        if self._dispatcher is None:
            raise RuntimeError("this process claims nothing")
        return Births(self._dispatcher, tenant_id)

    def make_room(self) -> None:
        """Claim again if there was no room: the crew has a free place."""
        self._in_flight.wake()

    def relearn(self) -> None:
        """Read the lanes again: the process can run functions that it could not run before."""
        if self._dispatcher is not None:
            self._dispatcher.rescan_all()

    def owner_of(self, instance_id: int, fence: int) -> SlotOwner | None:
        """Return the owner of the slot of a claim, or None if it is not in flight."""
        return self._in_flight.owner_of(instance_id, fence)

    async def watch(self) -> None:
        """Wait until a loop ends, then raise. An error of a step does not end a loop."""
        done, _ = await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)
        raise RuntimeError(f"the loop {next(iter(done)).get_name()} has ended")

    async def stop(self) -> None:
        """Stop claiming, hand the shards over, settle calls that end within the grace period, and release the lease."""
        if self._dispatcher is not None:
            self._dispatcher.is_draining = True
        await self.lease.hand_over()
        if self._dispatcher is not None:
            await self._dispatcher.stop(self._settings.grace)
        try:
            async with asyncio.timeout(SETTLE_GRACE.total_seconds()):
                await self._in_flight.emptied()
        except TimeoutError:
            log.warning("not all outcomes were settled; their rows will be rescued", instances=len(self._in_flight))
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._flush()
        await self.lease.stop()
        for stage in self._stages:
            if isinstance(stage, OpenStage):
                await stage.close()
            await stage.line.close()
        await self._attempting.close()

    async def _flush(self) -> None:
        for last in filter(None, (self._key_gate, self._notifier, self.progress_writer, self._minute_stats)):
            try:
                async with asyncio.timeout(1):
                    await last.flush()
            except Exception as error:
                log.warning("final flush failed", stage=last.name, error=repr(error))

    def _line(
        self,
        stage: str,
        lock_timeout: timedelta = LOOP_LOCK_TIMEOUT,
        plans: Plans = Plans.KEPT,
        *,
        may_rest: bool = True,
    ) -> StageConnection:
        idle_timeout, may_rest = self._settings.idle_in_transaction, may_rest and self._may_rest
        application = f"horai {stage}"
        return StageConnection(
            self._url, application, COMMAND_TIMEOUT, lock_timeout, idle_timeout, plans, may_rest=may_rest
        )
