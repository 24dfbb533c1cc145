"""Fairness: tenants get their share by weight, and a tenant with a huge backlog does not hold the others up."""

import asyncio
import time
from collections import Counter

from benchmarks import backlog
from benchmarks.backlog import Spread
from benchmarks.engines import running_engine
from benchmarks.latency import INSERTS_PER_SECOND
from benchmarks.scenario import Line, Sample, Scenario
from benchmarks.sitting import Sitting
from horai.core.calls import Call
from horai.core.outcome import Outcome, Succeeded
from horai.db.pool import Dedicated, connect

HEAVY, LIGHT = (1, "default"), "light"
WEIGHT = 3
QUEUES = 5
RATE = 100
TIMES_THE_BACKLOG = 5
TOLERANCE = 0.05
ALLOWED_MS = 20.0


class ByTenant:
    """Counts calls by tenant up to a number, and notes the delays of the light one."""

    def __init__(self, until: int) -> None:
        self.counted: Counter[str] = Counter()
        self.delays: list[float] = []
        self.has_counted = asyncio.Event()
        self._left = until

    async def run(self, call: Call) -> Outcome:
        """Always a success."""
        if self._left > 0:
            self._left -= 1
            self.counted[call.tenant] += 1
            if call.tenant == LIGHT:
                self.delays.append(time.time() - call.execute_time.timestamp())
        if self._left == 0:
            self.has_counted.set()
        return Succeeded()


async def sample(sitting: Sitting) -> Sample:
    """The shares, then the light tenant alone and beside the huge backlog."""
    share = await _share(sitting)
    alone = await _p95(sitting, huge=0)
    beside = await _p95(sitting, huge=sitting.size.rows * TIMES_THE_BACKLOG)
    return {
        "share at 3:1": share,
        "p95 alone": alone,
        "p95 beside a backlog": beside,
        "p95 / allowed": beside / max(ALLOWED_MS, 2 * alone),
    }


async def _share(sitting: Sitting) -> float:
    """Return the calls of the tenant of weight 3 per call of the other, while both have a backlog."""
    rows = sitting.size.rows
    async with sitting.database("weights") as url:
        connection = await connect(url, "bench")
        light = await _tenants(url, connection)
        await connection.execute("update horai.tenant set weight = $1 where id = $2", WEIGHT, HEAVY[0])
        for tenant in (HEAVY[0], light):
            await backlog.fill(connection, rows, lanes=QUEUES, tenant=tenant)
        executor = ByTenant(rows)
        async with running_engine(url, executor):
            await asyncio.wait_for(executor.has_counted.wait(), 300)
        await connection.close()
    return executor.counted[HEAVY[1]] / max(executor.counted[LIGHT], 1)


async def _p95(sitting: Sitting, huge: int) -> float:
    """The light tenant's p95 in milliseconds at a steady rate; the other one has `huge` due all the while."""
    rows = max(int(RATE * sitting.size.seconds), 1)
    async with sitting.database("neighbours") as url:
        connection = await connect(url, "bench")
        light = await _tenants(url, connection)
        if huge:
            await backlog.fill(connection, huge, lanes=QUEUES)
        lead = sitting.size.wait(1.0, quick=1.0) + rows / INSERTS_PER_SECOND
        spread = Spread(lead, even=sitting.size.seconds, scatter=0.0)
        await backlog.fill(connection, rows, spread, lanes=QUEUES, tenant=light)
        executor = ByTenant(huge + rows)
        async with running_engine(url, executor):
            async with asyncio.timeout(300):
                while len(executor.delays) < rows:
                    await asyncio.sleep(0.01)
        await connection.close()
    if min(executor.delays) < 0:
        raise RuntimeError("a call before its time")
    return sorted(executor.delays)[int(rows * 0.95)] * 1000


async def _tenants(url: str, connection: Dedicated) -> int:
    """Jobs of both tenants; the id of the light one."""
    light: int = await connection.fetchval("insert into horai.tenant (name) values ($1) returning id", LIGHT)
    await backlog.make_jobs(url, QUEUES, HEAVY)
    await backlog.make_jobs(url, QUEUES, (light, LIGHT))
    return light


SCENARIO = Scenario(
    "fairness",
    "weights 3:1, and a tenant beside a huge backlog",
    sample,
    (
        Line("share at 3:1", "×", at_least=WEIGHT * (1 - TOLERANCE), at_most=WEIGHT * (1 + TOLERANCE)),
        Line("p95 alone", "ms"),
        Line("p95 beside a backlog", "ms"),
        Line("p95 / allowed", "", at_most=1.0),
    ),
)
