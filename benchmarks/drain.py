"""Drain: the engine claims and settles a backlog of no-op instances, with fences, leases, history and events on."""

import time

from benchmarks import backlog
from benchmarks.engines import NoOp, running_engine, settled
from benchmarks.scenario import Line, Sample, Scenario
from benchmarks.sitting import Sitting
from horai.db.pool import connect


async def rate_of(sitting: Sitting, rows: int) -> float:
    """Instances claimed, run and settled per second, the start of the engine included."""
    async with sitting.database("drain") as url:
        await backlog.make_jobs(url)
        connection = await connect(url, "bench")
        await backlog.fill(connection, rows)
        executor = NoOp()
        started = time.perf_counter()
        async with running_engine(url, executor) as health:
            await settled(health, rows)
            rate = rows / (time.perf_counter() - started)
        await backlog.require_settled(connection, rows)
        if executor.calls != rows:
            raise RuntimeError(f"{executor.calls} calls for {rows} rows")
        await connection.close()
    return rate


async def sample(sitting: Sitting) -> Sample:
    """The backlog that everything else is compared with."""
    return {"drain": await rate_of(sitting, sitting.size.rows)}


SCENARIO = Scenario(
    "drain",
    "backlog through the engine, no-op executor",
    sample,
    (
        Line("drain", "/s", per="raw_limit", at_least=0.6),
        Line("drain", "/s", per="own_sql", at_least=0.75),
    ),
    needs=("raw_limit", "own_sql"),
)
