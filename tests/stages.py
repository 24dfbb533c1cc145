"""Stages of the engine on a workbench: called step by step, with a keeper and an executor that do as they are told."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, cast

import make
from horai.accept.scope import Scope
from horai.core.calls import Call
from horai.core.settings import EngineSettings
from horai.core.settlement import Accepted, Outcome, Succeeded
from horai.core.vitals import Vitals
from horai.db import nodes
from horai.db.clock import DatabaseClock
from horai.db.line import Line
from horai.db.pool import Dedicated, connect
from horai.engine.attempts import Attempts
from horai.engine.dispatcher import Bench, Dispatcher
from horai.engine.holdings import Holdings
from horai.engine.keeper import Keeper
from horai.engine.rescuer import Rescuer
from horai.engine.settler import Settler
from horai.engine.trigger import Trigger

AHEAD = timedelta(milliseconds=200)
"""The bench's clock is a little fast: what has just become due is looked at, and the database decides."""

SETTINGS = EngineSettings(settle_wait=timedelta(0))


@dataclass(slots=True)
class FixedKeeper:
    """A lease that holds until the test says otherwise."""

    incarnation: int
    trusted: bool = True

    def holds(self) -> bool:
        return self.trusted

    @property
    def keeper(self) -> Keeper:
        return cast("Keeper", self)


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
class Workbench:
    """Everything a stage is made of."""

    url: str
    scope: Scope
    connection: Dedicated
    keeper: FixedKeeper
    clock: DatabaseClock
    vitals: Vitals
    holdings: Holdings
    settings: EngineSettings
    settler: Settler
    executor: Recorder
    lines: list[Line] = field(default_factory=list[Line])

    def line(self, name: str) -> Line:
        made = Line(self.url, f"horai {name}", timedelta(seconds=5))
        self.lines.append(made)
        return made

    def dispatcher(self, **executors: Any) -> Dispatcher:
        """One that runs HTTP jobs with the recorder; what the process announces wakes it."""
        attempts = Attempts({"": self.executor, **executors}, self.settler, self.clock, self.vitals)
        bench = Bench(self.keeper.keeper, attempts, self.settler, self.holdings, self.clock, self.vitals, self.settings)
        made = Dispatcher(self.line("dispatcher"), bench)
        self.scope.wakeups.listen(made.wake)
        return made

    def trigger(self, now: datetime | None = None) -> Trigger:
        now = now or self.clock.now()
        return Trigger(self.line("trigger"), self.keeper.keeper, self.scope.wakeups, self.settings, now)

    def rescuer(self) -> Rescuer:
        return Rescuer(self.line("rescuer"), self.keeper.keeper, self.scope.wakeups, self.settings)

    async def settle(self) -> None:
        """Until nothing is in hand."""
        async with asyncio.timeout(20):
            while len(self.holdings):
                await self.settler.step(self.clock.now())
                await asyncio.sleep(0)

    async def states(self) -> dict[str, int]:
        """How many instances are in each state."""
        found = await self.connection.fetch("select state, count(*) as n from horai.job_instance group by state")
        return {row["state"]: row["n"] for row in found}

    async def called(self, count: int) -> list[Call]:
        """The calls, once there are that many."""
        async with asyncio.timeout(10):
            while len(self.executor.calls) < count:
                await asyncio.sleep(0)
        return self.executor.calls


@asynccontextmanager
async def workbench(url: str, **changes: Any) -> AsyncGenerator[Workbench]:
    """A registered node on a fresh database."""
    settings = replace(SETTINGS, **changes)
    connection = await connect(url, "horai test")
    clock, vitals = DatabaseClock(), Vitals()
    clock.observe(await nodes.database_time(connection) + AHEAD)
    holdings = Holdings(settings.in_flight, vitals)
    async with make.scope(url) as scope:
        keeper = FixedKeeper(await make.node(connection))
        settling = Line(url, "horai settler", timedelta(seconds=5))
        settler = Settler(settling, holdings, scope.wakeups, vitals, settings)
        bench = Workbench(
            url, scope, connection, keeper, clock, vitals, holdings, settings, settler, Recorder(), [settling]
        )
        try:
            yield bench
        finally:
            for line in bench.lines:
                line.drop()
            connection.terminate()
