"""The one runner of all stages: it owns looping, waiting, errors and the sign of life.

A stage is its dependencies plus one `step(now)` that returns when it wants to be called again, by the database's
clock. Its signal has room for one: many wakes before a step are one step, and a wake during a step is one more.
"""

import asyncio
import time
from datetime import datetime, timedelta
from typing import Protocol

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
    """A part of the flow."""

    name: str
    signal: asyncio.Event
    line: StageConnection

    async def step(self, now: datetime) -> datetime:
        """Does what is due and says when the next look is."""
        ...


async def run(stage: Stage, clock: DatabaseClock, vitals: EngineHealth) -> None:
    """Steps a stage until cancelled. An error is logged, the connection dropped, and the step tried again soon."""
    failures = 0
    while True:
        stage.signal.clear()
        try:
            until = await stage.step(clock.now())
            failures = 0
            idle = max((until - clock.now()).total_seconds(), 0.0)
            vitals.beat(stage.name, time.monotonic(), idle + PATIENCE.total_seconds())
        except Exception as error:
            failures += 1
            stage.line.drop()
            log.warning("stage failed", stage=stage.name, error=repr(error), failures=failures)
            await asyncio.sleep(min(FIRST_PAUSE * 2**failures, LONGEST_PAUSE))
            continue
        await wait_until(stage.signal, clock, until)


async def wait_until(signal: asyncio.Event, clock: DatabaseClock, until: datetime) -> None:
    """Waits for the signal or the moment; no sleep is longer than a second without a look at the clock."""
    while not signal.is_set():
        left = (until - clock.now()).total_seconds()
        if left <= 0:
            return
        try:
            async with asyncio.timeout(min(left, LONGEST_SLEEP)):
                await signal.wait()
        except TimeoutError:
            continue
