"""Pinned: a client leaves a transaction open, nothing can be vacuumed, and the drain hardly slows down.

One schedule group with one due, so large that it lasts for a minute, is drained with all passes and sweeps on; once
with xmin pinned for all that time, once without.
"""

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from benchmarks import backlog
from benchmarks.backlog import Spread
from benchmarks.engines import NoOp, running_engine
from benchmarks.scenario import Line, Sample, Scenario
from benchmarks.sitting import Sitting
from horai.core.health import EngineHealth
from horai.db.pool import connect

TIMES_THE_BACKLOG = 10
TIMES_THE_SECONDS = 3
ONE_DUE = Spread(-1.0, scatter=0.0)


async def sample(sitting: Sitting) -> Sample:
    """Both in turn."""
    return {"unpinned": await _drain(sitting, is_pinned=False), "pinned": await _drain(sitting, is_pinned=True)}


async def _drain(sitting: Sitting, *, is_pinned: bool) -> float:
    """Instances settled per second, until none is left or the time is over."""
    rows = sitting.size.rows * TIMES_THE_BACKLOG
    async with sitting.database("pinned") as url:
        await backlog.make_jobs(url, count=1)
        connection = await connect(url, "bench")
        await backlog.fill(connection, rows, ONE_DUE, lanes=1)
        executor = NoOp()
        started = time.monotonic()
        async with _pinned(url, is_pinned), running_engine(url, executor) as health:
            await _settled_or_over(health, rows, started + TIMES_THE_SECONDS * sitting.size.seconds)
            rate = health.settled / (time.monotonic() - started)
        done = await connection.fetchval("select count(distinct id) from horai.instance_history", timeout=backlog.LONG)
        await connection.close()
    if done != executor.calls:
        raise RuntimeError(f"{executor.calls} calls, {done} instances settled")
    return rate


async def _settled_or_over(health: EngineHealth, rows: int, until: float) -> None:
    """Wait for the rows or the end of the time, but for some rows in any case."""
    while health.settled < rows and (time.monotonic() < until or not health.settled):
        await asyncio.sleep(0.01)


@asynccontextmanager
async def _pinned(url: str, is_pinned: bool) -> AsyncGenerator[None]:
    """A transaction that keeps its snapshot, as a forgotten session does."""
    if not is_pinned:
        yield
        return
    connection = await connect(url, "bench pin")
    await connection.execute("set idle_in_transaction_session_timeout = 0")
    async with connection.transaction(isolation="repeatable_read"):
        await connection.fetchval("select count(*) from horai.job")
        yield
    await connection.close()


SCENARIO = Scenario(
    "pinned",
    "a group with one due, xmin pinned for a minute",
    sample,
    (Line("unpinned", "/s"), Line("pinned", "/s", per="unpinned", at_least=0.8)),
)
