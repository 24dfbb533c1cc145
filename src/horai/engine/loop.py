"""The runner of all stages: it owns looping, waiting, error handling and the heartbeat of each stage.

A stage has its dependencies and one `step(now)`, which returns the time of its next call by the database's clock. Its
signal holds one wake: many wakes before a step cause one step, and a wake during a step causes one more.
"""

import asyncio
import time
from datetime import datetime, timedelta
from typing import Literal, Protocol, runtime_checkable

import structlog

from horai.core.health import EngineHealth
from horai.db.clock import DatabaseClock
from horai.db.stage_connection import StageConnection

log = structlog.get_logger(__name__)

LONGEST_SLEEP = 1.0
FIRST_PAUSE = 0.05
LONGEST_PAUSE = 3.0
PATIENCE = timedelta(seconds=30)


class Stage(Protocol):
    """A part of the engine that the runner steps repeatedly."""

    name: str
    signal: asyncio.Event
    line: StageConnection

    async def step(self, now: datetime) -> datetime:
        """Do the work that is due and return when to step again."""
        ...


@runtime_checkable
class OpenStage(Protocol):
    """A stage that holds more than its connection."""

    async def close(self) -> None:
        """End the work that goes on between the steps, and close what it uses."""
        ...


@runtime_checkable
class BackgroundStage(Protocol):
    """A stage that watches or reports, and for which no instance waits. It begins after the others."""

    is_background: Literal[True]


async def run(stage: Stage, clock: DatabaseClock, health: EngineHealth, after: timedelta = timedelta(0)) -> None:
    """Step a stage until it is cancelled; a background stage begins when the time `after` is over.

    On an error, log it, drop the stage's connection and retry with exponential back-off, 0.1 s to 3 s.
    """
    if isinstance(stage, BackgroundStage):
        await asyncio.sleep(after.total_seconds())
    failures = 0
    while True:
        stage.signal.clear()
        try:
            until = await _step(stage, clock)
            failures = 0
            idle = max((until - clock.now()).total_seconds(), 0.0)
            health.beat(stage.name, time.monotonic(), idle + PATIENCE.total_seconds())
        except Exception as error:
            failures += 1
            log.warning("stage failed", stage=stage.name, error=repr(error), failures=failures)
            await asyncio.sleep(min(FIRST_PAUSE * 2**failures, LONGEST_PAUSE))
            continue
        await wait_until(stage.signal, clock, until, stage.line)


async def _step(stage: Stage, clock: DatabaseClock) -> datetime:
    """Step in the turn of the connection, and drop it after an error: a statement may still be in progress."""
    async with stage.line.turn:
        try:
            return await stage.step(clock.now())
        except Exception:
            stage.line.drop()
            raise


async def wait_until(
    signal: asyncio.Event, clock: DatabaseClock, until: datetime, line: StageConnection | None = None
) -> None:
    """Wait for the signal or until the given time. Read the clock again at least once a second.

    Meanwhile `line` may rest.
    """
    while not signal.is_set():
        left = (until - clock.now()).total_seconds()
        if left <= 0:
            return
        try:
            async with asyncio.timeout(min(left, LONGEST_SLEEP)):
                await signal.wait()
        except TimeoutError:
            if line is not None:
                await line.rest()
