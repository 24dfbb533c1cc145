"""The engine as the benchmarks run it: in this process, with executors that do next to nothing.

What a worker's own functions cost is measured in sdk.py; the table says which is which.
"""

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from horai.core.calls import Call
from horai.core.health import EngineHealth
from horai.core.outcome import Outcome, Succeeded
from horai.core.settings import EngineSettings
from horai.db.wakeups import Wakeups
from horai.embedded.sockets import NODE_LOGIN, SUPERUSER
from horai.engine.dispatch.attempts import Executor
from horai.stages import Engine

NOOP = "noop"
SETTINGS = EngineSettings(in_flight=4000)
START_WITHIN = 30.0


class NoOp:
    """Does nothing, and counts."""

    def __init__(self) -> None:
        self.calls = 0

    async def run(self, call: Call) -> Outcome:
        """Always a success."""
        self.calls += 1
        return Succeeded()


class Delays:
    """Notes how long after its execute time each call's first line ran.

    PostgreSQL is on this machine: its clock and this one are the same, so a negative delay is an early call.
    """

    def __init__(self) -> None:
        self.seconds: list[float] = []

    async def run(self, call: Call) -> Outcome:
        """Always a success."""
        self.seconds.append(time.time() - call.execute_time.timestamp())
        return Succeeded()


def as_node(url: str) -> str:
    """The same database as the login of nodes, for which policies are in force."""
    return url.replace(f"//{SUPERUSER}@", f"//{NODE_LOGIN}@")


@asynccontextmanager
async def running_engine(
    url: str,
    executor: Executor,
    *,
    wakeups: Wakeups | None = None,
    settings: EngineSettings = SETTINGS,
    handler: str = NOOP,
) -> AsyncGenerator[EngineHealth]:
    """An engine at work, for one handler."""
    health = EngineHealth()
    engine = Engine(as_node(url), "bench", {handler: executor}, wakeups or Wakeups(), health, settings)
    async with asyncio.timeout(START_WITHIN):
        await engine.start()
    try:
        yield health
    finally:
        await engine.stop()


async def settled(health: EngineHealth, rows: int, within: float = 600.0) -> None:
    """Returns when `rows` outcomes have been written."""
    async with asyncio.timeout(within):
        while health.settled < rows:
            await asyncio.sleep(0.01)
