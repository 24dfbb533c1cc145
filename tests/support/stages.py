"""Stages of the engine on a workbench: called step by step, with a keeper and an executor that do as they are told."""

import asyncio
import math
import re
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, cast

import asyncpg
import make
from databases import Superuser, as_node, superuser

from horai.core.calls import Call
from horai.core.health import EngineHealth
from horai.core.limits import SHARDS
from horai.core.outcome import Accepted, Outcome, Succeeded
from horai.core.queue import QueueSettings
from horai.core.settings import EngineSettings
from horai.core.shards import EVERY_ROLE, Duty
from horai.core.wakes import KeyWake, OverlapWake, ParkedKeysWake
from horai.db import nodes
from horai.db.clock import DatabaseClock
from horai.db.pool import LOOP_LOCK_TIMEOUT, Plans
from horai.db.stage_connection import StageConnection
from horai.engine.catch_up import CatchUp
from horai.engine.dispatch.admission import Admission
from horai.engine.dispatch.attempts import Attempts, Executor
from horai.engine.dispatch.claimer import Claimer
from horai.engine.dispatch.dispatcher import Dispatcher, DispatcherParts
from horai.engine.dispatch.host_gates import HostGates
from horai.engine.dispatch.in_flight import InFlight
from horai.engine.dispatch.job_cache import JobCache
from horai.engine.dispatch.retry_limiter import RetryLimiter
from horai.engine.dispatch.scans import Scans
from horai.engine.key_gate import KeyGate
from horai.engine.loop import Stage
from horai.engine.overlap_gate import OverlapGate
from horai.engine.rescuer import Rescuer
from horai.engine.settler import LOCK_TIMEOUT, Settler
from horai.engine.sweeper import Sweeper
from horai.engine.trigger import Trigger
from horai.features import backfill, workflow
from horai.features.backfill.stage import BackfillStage
from horai.features.feature import Feature
from horai.features.parts import StageParts, stages_of
from horai.features.registry import JOB_HOOKS
from horai.features.workflow.stage import WorkflowStage
from horai.operations import queues as accepted_queues
from horai.operations.scope import Scope
from horai.testing.clock import VirtualClock

AHEAD = timedelta(milliseconds=200)
"""The bench's clock is a little fast: what has just become due is looked at, and the database decides."""

SOON = timedelta(milliseconds=50)
"""A stage that wants to look again within this is still at work."""

SETTINGS = EngineSettings(settle_wait=timedelta(0))


@dataclass(slots=True)
class FixedLease:
    """A lease that holds until the test says otherwise."""

    incarnation: int
    trusted: bool = True
    owned: frozenset[int] = frozenset(range(SHARDS))
    on_change: list[Callable[[], None]] = field(default_factory=list[Callable[[], None]])
    on_lost_node: list[Callable[[], None]] = field(default_factory=list[Callable[[], None]])

    @property
    def trusted_until(self) -> float:
        return math.inf if self.trusted else -math.inf

    def holds(self) -> bool:
        return self.trusted

    def shards(self, _duty: Duty) -> frozenset[int]:
        return self.owned if self.trusted else frozenset()


@dataclass(slots=True)
class Recorder:
    """An executor that notes its calls; each waits for `gate` and comes to what `answer` says."""

    calls: list[Call] = field(default_factory=list[Call])
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    answer: Callable[[Call], Outcome | Accepted] = lambda _: Succeeded()

    async def run(self, call: Call) -> Outcome | Accepted:
        self.calls.append(call)
        await self.gate.wait()
        return self.answer(call)


@dataclass(slots=True)
class Tap:
    """The statements that the product sends over a connection, in order, by name; those of the driver do not count."""

    queries: list[asyncpg.connection.LoggedQuery] = field(default_factory=list[asyncpg.connection.LoggedQuery])

    async def names(self) -> list[str]:
        """Those so far; the driver tells of a statement one turn of the loop later."""
        await asyncio.sleep(0)
        return [name for query in self.queries if (name := name_of(query.query))]

    async def about(self, *parts: str) -> list[str]:
        """The names of those whose text has one of these words in it."""
        await asyncio.sleep(0)
        asked = [query for query in self.queries if any(part in query.query for part in parts)]
        return [name for query in asked if (name := name_of(query.query))]


def name_of(query: str) -> str | None:
    """Return the statement's name in the catalogue; `begin`, `commit` or `rollback`; None for anything else."""
    named = re.match(r"/\* (\w+) \*/|(begin|commit|rollback)\b", query, re.IGNORECASE)
    return (named[1] or named[2].lower()) if named else None


@dataclass(slots=True)
class Workbench:
    """Everything a stage is made of."""

    url: str
    scope: Scope
    connection: Superuser
    lease: FixedLease
    clock: DatabaseClock
    health: EngineHealth
    in_flight: InFlight
    settings: EngineSettings
    settler: Settler
    executor: Recorder
    lines: list[StageConnection] = field(default_factory=list[StageConnection])
    monotonic: Callable[[], float] = time.monotonic
    """The clock of the gates of hosts."""
    gates: HostGates | None = None
    under_way: list[Attempts] = field(default_factory=list[Attempts])
    """The calls that a test may leave behind: they are broken off with the bench."""

    def line(
        self, stage: str, lock_timeout: timedelta = LOOP_LOCK_TIMEOUT, plans: Plans = Plans.KEPT
    ) -> StageConnection:
        made = StageConnection(as_node(self.url), f"horai {stage}", timedelta(seconds=5), lock_timeout, plans=plans)
        self.lines.append(made)
        return made

    async def tap(self, line: StageConnection) -> Tap:
        """Notes what goes over the line from now on, as long as its connection lasts."""
        made = Tap()
        (await line.get()).add_query_logger(made.queries.append)
        return made

    def deaf_dispatcher(self, **executors: Any) -> Dispatcher:
        """One that runs HTTP jobs with the recorder and hears of nothing."""
        return Dispatcher(self.line("dispatcher"), self.parts(**executors))

    def dispatcher(self, **executors: Any) -> Dispatcher:
        """One that runs HTTP jobs with the recorder; what the process announces wakes it."""
        made = self.deaf_dispatcher(**executors)
        made.subscribe_to(self.scope.wakeups)
        return made

    def parts(self, *, alone: Mapping[str, Executor] | None = None, **executors: Any) -> DispatcherParts:
        """Build the parts of a dispatcher; `alone` runs instances that were lost too often."""
        lease, job_cache = self.lease, JobCache()
        self.settler.gated, self.settler.chained = job_cache.gated, job_cache.chained
        attempts = Attempts(
            {"": self.executor, **executors},
            self.settler,
            lease,
            job_cache,
            self.line("attempts"),
            self.health,
            alone or {},
        )
        self.under_way.append(attempts)
        scans = Scans(attempts.handlers, self.clock.now())
        claimer = Claimer(lease, scans, self.in_flight, self.settler, self.clock, self.health)
        gates = self.gates = HostGates(self.settings, self.health, self.clock, self.monotonic)
        retries = RetryLimiter(scans.controls, self.health, self.clock)
        admission = Admission(attempts, self.settler, self.in_flight, job_cache, self.scope.wakeups, gates, retries)
        return DispatcherParts(
            lease, attempts, admission, claimer, scans, self.in_flight, self.clock, self.health, self.settings, gates
        )

    def sweeper(self, dispatcher: Dispatcher) -> Sweeper:
        """One that looks behind this dispatcher's cursors."""
        return Sweeper(self.line("sweeper"), dispatcher, self.settler, self.scope.wakeups)

    def trigger(self, now: datetime | None = None) -> Trigger:
        now = now or self.clock.now()
        return Trigger(self.line("trigger"), self.lease, self.scope.wakeups, self.settings, now)

    def catch_up_stage(self) -> CatchUp:
        return CatchUp(self.line("catch_up"), self.lease, self.scope.wakeups, self.settings)

    def backfill_stage(self) -> BackfillStage:
        return cast("BackfillStage", self.feature_stage(backfill.FEATURE))

    def feature_stage(self, feature: Feature) -> Stage:
        """Build the only stage of a feature, as a process with every role does."""
        parts = StageParts(
            self.line, self.lease, self.scope.wakeups, self.settings, EVERY_ROLE, self.clock.now(), JOB_HOOKS
        )
        [stage] = stages_of([feature], parts)
        return stage

    def overlap_gate(self) -> OverlapGate:
        """One that hears what the process asks of gates."""
        made = OverlapGate(self.line("overlap_gate"), self.lease, self.scope.wakeups, self.settings, self.clock.now())
        self.scope.wakeups.subscribe(OverlapWake, made.hear)
        return made

    def key_gate(self) -> KeyGate:
        """One that hears of claims with a key that have ended."""
        now, find = self.clock.now(), self.in_flight.find
        made = KeyGate(self.line("key_gate"), self.lease, self.scope.wakeups, self.settings, now, find)
        self.scope.wakeups.subscribe(KeyWake, made.hear)
        self.scope.wakeups.subscribe(ParkedKeysWake, lambda _: made.rescan_all())
        return made

    def workflow_stage(self) -> WorkflowStage:
        return cast("WorkflowStage", self.feature_stage(workflow.FEATURE))

    def rescuer(self) -> Rescuer:
        return Rescuer(self.line("rescuer"), self.lease, self.scope.wakeups, self.settings)

    async def set_queue(self, name: str = "default", **limits: Any) -> int:
        """Sets what a queue allows, as `PUT /queues` does; its id."""
        return (await accepted_queues.set_queue(self.scope, name, QueueSettings(**limits))).id

    async def until_idle(self, dispatcher: Dispatcher) -> datetime:
        """Steps until it is content to wait; when it wants to look again."""
        async with asyncio.timeout(30):
            while (again := await dispatcher.step(self.clock.now())) <= self.clock.now() + SOON:
                if isinstance(self.clock, VirtualClock) and again > self.clock.now():
                    dispatcher.rescan_all()  # it found a row that another one claims: its pause ends in no virtual time
                await asyncio.sleep(0)
        return again

    async def settle(self) -> None:
        """Until nothing is in hand."""
        async with asyncio.timeout(30):
            while len(self.in_flight):
                await self.settler.step(self.clock.now())
                await asyncio.sleep(0)

    async def states(self) -> dict[str, int]:
        """Count the instances in each state."""
        found = await self.connection.fetch("select state, count(*) as n from horai.job_instance group by state")
        return {row["state"]: row["n"] for row in found}

    async def called(self, count: int) -> list[Call]:
        """The calls, once there are that many."""
        async with asyncio.timeout(30):
            while len(self.executor.calls) < count:
                await asyncio.sleep(0)
        return self.executor.calls


def forget_jobs(dispatcher: Dispatcher) -> None:
    """As if a second had passed: what is known of jobs is asked for again."""
    dispatcher.parts.admission._jobs._asked_at.clear()


@asynccontextmanager
async def workbench(url: str, ahead: timedelta = AHEAD, **changes: Any) -> AsyncGenerator[Workbench]:
    """A registered node on a fresh database."""
    settings = replace(SETTINGS, **changes)
    connection = await superuser(url)
    clock, health = DatabaseClock(), EngineHealth()
    clock.observe(await nodes.database_time(connection) + ahead, time.monotonic())
    in_flight = InFlight(settings.in_flight, health)
    async with make.scope(url) as scope:
        lease = FixedLease(await make.node(connection))
        settling = StageConnection(as_node(url), "horai settler", timedelta(seconds=5), LOCK_TIMEOUT)
        settler = Settler(settling, in_flight, scope.wakeups, health, settings)
        bench = Workbench(
            url, scope, connection, lease, clock, health, in_flight, settings, settler, Recorder(), [settling]
        )
        try:
            yield bench
        finally:
            for attempts in bench.under_way:
                await attempts.break_off()
            for line in bench.lines:
                line.drop()
            connection.terminate()
