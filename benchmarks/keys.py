"""Concurrency keys: instances with distinct keys beside instances without one, from their insertion to their settlement.

Both are added through the SDK and run by no-op functions of a worker in this process. The cost is the time of an instance
with a key in parts of the time of one without. Nothing waits: every key has one instance.
"""

import time
from itertools import count
from typing import Any

from benchmarks import backlog
from benchmarks.engines import settled
from benchmarks.scenario import Line, Sample, Scenario
from benchmarks.sdk import MANY, PAYLOAD, Application, worker
from benchmarks.sitting import Sitting
from horai.db.pool import connect

LANES = 5
MOST = 100_000


async def sample(sitting: Sitting) -> Sample:
    """Microseconds of an instance without and with a key, added and run."""
    plain_added, plain_run = await _microseconds(sitting, is_keyed=False)
    keyed_added, keyed_run = await _microseconds(sitting, is_keyed=True)
    return {
        "added without a key": plain_added,
        "added with a key": keyed_added,
        "run without a key": plain_run,
        "run with a key": keyed_run,
        "without a key": plain_added + plain_run,
        "with a key": keyed_added + keyed_run,
    }


async def _microseconds(sitting: Sitting, *, is_keyed: bool) -> tuple[float, float]:
    rows = min(sitting.size.rows, MOST) // LANES * LANES
    numbers = count()

    def key_of(_payload: Any) -> str:
        return f"customer-{next(numbers)}"

    async with sitting.database("keys") as url:
        application = Application(url, LANES)
        await application.app.declare()
        began = time.perf_counter()
        for job in application.jobs:
            calls = job.options(delay="0s", concurrency_key=key_of if is_keyed else None)
            for first in range(0, rows // LANES, MANY):
                await calls.enqueue_many([PAYLOAD] * min(MANY, rows // LANES - first))
        added = time.perf_counter() - began
        async with worker(url, application.app) as health:
            began = time.perf_counter()
            await settled(health, rows)
            run = time.perf_counter() - began
            await application.app.close()
        connection = await connect(url, "bench")
        await backlog.require_settled(connection, rows)
        keys = await connection.fetchval("select count(distinct concurrency_key) from horai.instance_history")
        await connection.close()
    if keys != (rows if is_keyed else 0):
        raise RuntimeError(f"{keys} keys for {rows} rows")
    return added / rows * 1e6, run / rows * 1e6


SCENARIO = Scenario(
    "keys",
    "100,000 instances with distinct concurrency keys, beside instances without one",
    sample,
    (
        Line("without a key", "µs an instance"),
        Line("with a key", "µs an instance", per="without a key", at_most=1.2),
        *(Line(f"{what} {how} a key", "µs an instance") for what in ("added", "run") for how in ("without", "with")),
    ),
)
