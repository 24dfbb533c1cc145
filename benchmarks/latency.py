"""Scheduled latency: how long after its time an instance's handler begins, at a steady rate."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks import backlog, cpu
from benchmarks.backlog import Spread
from benchmarks.engines import Delays, running_engine, settled
from benchmarks.scenario import Line, Sample, Scenario
from benchmarks.sitting import Sitting
from horai.db.pool import connect

RATES = (100, 1_000, 5_000, 10_000)
PROMISED = (1_000, 5_000)
INSERTS_PER_SECOND = 30_000
"""A pessimist's guess: the first instance must not be due before all are there."""


@dataclass(frozen=True, slots=True)
class Steady:
    """The result of a steady load: the delays in order, and the CPU time per second of engine and database."""

    delays: Sequence[float]
    engine_cpu: float
    database_cpu: float

    def quantile_ms(self, share: float) -> float:
        """The delay that `share` of the calls did not exceed."""
        return self.delays[min(int(len(self.delays) * share), len(self.delays) - 1)] * 1000

    @property
    def early(self) -> int:
        """Calls before their time: a broken promise."""
        return sum(1 for delay in self.delays if delay < 0)


async def steady(sitting: Sitting, rate: int, seconds: float, waiting: int = 0) -> Steady:
    """Runs `rate` instances a second, beside `waiting` ones that are not due for a day."""
    rows = max(int(rate * seconds), 1)
    async with sitting.database("latency") as url:
        await backlog.make_jobs(url)
        connection = await connect(url, "bench")
        if waiting:
            await backlog.fill(connection, waiting, Spread(86_400.0, scatter=86_400.0))
            await connection.execute("vacuum analyze horai.instance_live", timeout=backlog.LONG)
        lead = sitting.size.wait(2.0, quick=1.0) + rows / INSERTS_PER_SECOND
        begin = time.monotonic() + lead
        await backlog.fill(connection, rows, Spread(lead, even=seconds, scatter=0.0))
        executor = Delays()
        async with running_engine(url, executor) as health:
            if time.monotonic() > begin and not sitting.size.quick:  # a first impression may be a bad one
                raise RuntimeError(f"{rows} rows were not there within {lead:.1f} s")
            await asyncio.sleep(max(begin - time.monotonic(), 0.0))
            used = cpu.own(), cpu.of_tree(sitting.server.pid)
            await settled(health, rows)
            took = time.monotonic() - begin
            worked = cpu.own() - used[0], cpu.of_tree(sitting.server.pid) - used[1]
        await backlog.require_settled(connection, rows)
        await connection.close()
    return Steady(sorted(executor.seconds), worked[0] / took, worked[1] / took)


async def sample(sitting: Sitting) -> Sample:
    """Every rate in turn."""
    found: dict[str, float] = {"early": 0}
    for rate in RATES:
        load = await steady(sitting, rate, sitting.size.seconds)
        found["early"] += load.early
        found |= {
            f"{rate:,}/s p50": load.quantile_ms(0.5),
            f"{rate:,}/s p95": load.quantile_ms(0.95),
            f"{rate:,}/s p99": load.quantile_ms(0.99),
            f"{rate:,}/s max": load.quantile_ms(1.0),
            f"{rate:,}/s CPU": load.engine_cpu * 100,
        }
    return found


def _lines(rate: int) -> tuple[Line, ...]:
    p99 = Line(f"{rate:,}/s p99", "ms", at_most=10.0 if rate in PROMISED else None)
    rest = (Line(f"{rate:,}/s max", "ms"), Line(f"{rate:,}/s CPU", "% of a core"))
    return Line(f"{rate:,}/s p50", "ms"), Line(f"{rate:,}/s p95", "ms"), p99, *rest


SCENARIO = Scenario(
    "latency",
    "scheduled, from its time to the handler's first line",
    sample,
    (*(line for rate in RATES for line in _lines(rate)), Line("early", "calls", at_most=0)),
)
