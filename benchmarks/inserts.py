"""Inserts: the cost of wake-ups for other processes, paid by the clients that insert.

Clients insert batches as fast as they can, in short turns with and without a notifier, while one connection listens;
the turns change places, so that a growing table slows both alike.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta

from benchmarks import backlog
from benchmarks.scenario import Line, Sample, Scenario
from benchmarks.sitting import Sitting
from horai.core.actor import SYSTEM
from horai.core.health import EngineHealth
from horai.db.clock import DatabaseClock
from horai.db.notify import listen
from horai.db.pool import connect, open_pool
from horai.db.stage_connection import StageConnection
from horai.db.wakeups import Wakeups
from horai.engine import loop
from horai.engine.notifier import Notifier
from horai.features.registry import JOB_HOOKS
from horai.operations.instances import Item, insert_batch
from horai.operations.scope import Scope

BATCH, CALLERS, TURNS, JOBS = 100, 4, 10, 5
SOON = timedelta(seconds=20)


async def sample(sitting: Sitting) -> Sample:
    """Instances inserted per second, with and without wake-ups."""
    each = max(sitting.size.rows // (2 * TURNS * BATCH), 1)
    async with sitting.database("inserts") as url:
        await backlog.make_jobs(url, JOBS)
        pool = await open_pool(url, "bench", CALLERS)
        quiet = Scope(pool, Wakeups(), 1, "default", SYSTEM, JOB_HOOKS)
        taken = {"without wake-ups": 0.0, "with wake-ups": 0.0}
        async with _heralded(url) as (wakeups, heard):
            loud = Scope(pool, wakeups, 1, "default", SYSTEM, JOB_HOOKS)
            await _insert(quiet, CALLERS)
            for turn in range(TURNS):
                pair = [("without wake-ups", quiet), ("with wake-ups", loud)]
                for name, scope in pair if turn % 2 else reversed(pair):
                    taken[name] += await _insert(scope, each)
        await pool.close()
    if not heard:
        raise RuntimeError("nobody heard a wake-up")
    rows = each * BATCH * TURNS
    return {name: rows / seconds for name, seconds in taken.items()} | {"notifications": float(len(heard))}


async def _insert(scope: Scope, batches: int) -> float:
    """Seconds for so many batches by several callers."""
    now = await scope.pool.fetchval("select clock_timestamp()")
    items = [Item(now + SOON, '{"x": 1}')] * BATCH
    left = iter(range(batches))
    started = time.perf_counter()
    await asyncio.gather(*(_caller(scope, left, items) for _ in range(CALLERS)))
    return time.perf_counter() - started


async def _caller(scope: Scope, left: Iterator[int], items: Sequence[Item]) -> None:
    for number in left:
        await insert_batch(scope, f"noop{number % JOBS}", items)


@asynccontextmanager
async def _heralded(url: str) -> AsyncGenerator[tuple[Wakeups, list[str]]]:
    """Wake-ups that other processes are told of, and what one of them hears."""
    heard: list[str] = []
    ear = await connect(url, "bench ear")
    await listen(ear, lambda _connection, _pid, _channel, payload: heard.append(payload))
    wakeups, notifier = Wakeups(), Notifier(StageConnection(url, "bench notifier"))
    wakeups.pass_on_to(notifier.tell)
    clock = DatabaseClock()
    await clock.ask(ear)
    telling = asyncio.create_task(loop.run(notifier, clock, EngineHealth()))
    try:
        yield wakeups, heard
        await notifier.flush()
    finally:
        telling.cancel()
        await asyncio.gather(telling, return_exceptions=True)
        await notifier.line.close()
        await ear.close()


SCENARIO = Scenario(
    "inserts",
    "batches of 100, with and without wake-ups",
    sample,
    (
        Line("without wake-ups", "/s", at_least=10_000.0),
        Line("with wake-ups", "/s", per="without wake-ups", at_least=0.95),
        Line("notifications", "sent"),
    ),
)
