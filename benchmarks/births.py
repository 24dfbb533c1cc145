"""Births: a worker's own process adds instances that are due now, and claims them as it inserts them.

The rate counts the insert, the call and the settlement of each instance; its denominator is the drain of a backlog, whose
inserts are not counted. The delay is from the call of `enqueue` to the function's first line, at a steady rate.
"""

import asyncio
import time

from benchmarks import backlog, cpu
from benchmarks.engines import settled
from benchmarks.scenario import Line, Sample, Scenario
from benchmarks.sdk import PAYLOAD, Application, Noting, worker
from benchmarks.sitting import Sitting
from horai import Handle, Job
from horai.db.pool import connect

CALLERS, AT_ONCE, CONCURRENCY = 4, 500, 2_000
RATE, FEW = 200, 5


async def sample(sitting: Sitting) -> Sample:
    """The rate by many, and the delay of single ones."""
    return {**await _rate(sitting), **await _delays(sitting)}


async def _rate(sitting: Sitting) -> Sample:
    at_once = min(AT_ONCE, sitting.size.rows // CALLERS)
    rows = sitting.size.rows // (CALLERS * at_once) * CALLERS * at_once
    async with sitting.database("births") as url:
        application = Application(url, CALLERS)
        await application.app.declare()
        async with worker(url, application.app, CONCURRENCY) as health:
            await asyncio.gather(*(job.enqueue(PAYLOAD) for job in application.jobs))
            await settled(health, CALLERS)
            started, used = time.perf_counter(), cpu.own()
            await asyncio.gather(*(_add(job, rows // CALLERS, at_once) for job in application.jobs))
            await settled(health, CALLERS + rows)
            took, spent = time.perf_counter() - started, cpu.own() - used
            await application.app.close()
        connection = await connect(url, "bench")
        await backlog.require_settled(connection, CALLERS + rows)
        born = await connection.fetchval("select count(*) from horai.instance_history where claimed_at <= created_at")
        await connection.close()
    return {"born and run": rows / took, "claimed at birth": 100 * born / rows, "birth python": spent / rows * 1e6}


async def _add(job: Job[..., None], rows: int, at_once: int) -> None:
    for _ in range(rows // at_once):
        await job.enqueue_many([PAYLOAD] * at_once)


async def _delays(sitting: Sitting) -> Sample:
    calls = max(int(RATE * sitting.size.seconds), 1)
    async with sitting.database("births") as url:
        application = Noting(url, FEW)
        await application.app.declare()
        async with worker(url, application.app):
            for job in application.jobs:
                await (await job.enqueue(PAYLOAD)).result(timeout=60)
            called: list[tuple[Handle[None], float]] = []
            begin = time.monotonic() + 0.05
            for number in range(calls):
                await asyncio.sleep(max(begin + number / RATE - time.monotonic(), 0))
                at = time.monotonic()
                called.append((await application.jobs[number % FEW].enqueue(PAYLOAD), at))
            await called[-1][0].result(timeout=60)
            await application.app.close()
    delays = sorted((application.moments[handle.id] - at) * 1000 for handle, at in called)
    return {f"birth p{p}": delays[min(len(delays) * p // 100, len(delays) - 1)] for p in (50, 95, 99)}


SCENARIO = Scenario(
    "births",
    "enqueue and function in one process, claimed at birth",
    sample,
    (
        Line("born and run", "/s", per="sdk drain", at_least=1.5),
        Line("claimed at birth", "% of the instances"),
        Line("birth python", "µs of CPU an instance"),
        *(Line(f"birth p{p}", "ms") for p in (50, 95)),
        Line("birth p99", "ms", at_most=3.0),
    ),
    needs=("raw_limit", "own_sql", "sdk_drain"),
)
