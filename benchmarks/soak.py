"""Soak: half of the highest rate for a long time. Rate, delays, sizes and memory at the end are those of the beginning.

make bench ARGS="soak soak_stock --times 1 --seconds 1800": on the embedded PostgreSQL, and on one with the settings that
PostgreSQL itself comes with. Rows are inserted while others run, due within the next second, as a service adds them.
"""

import asyncio
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass

import asyncpg
import psutil

from benchmarks import backlog
from benchmarks.backlog import LONG
from benchmarks.engines import Delays, running_engine
from benchmarks.scenario import Line, Sample, Scenario
from benchmarks.sitting import Sitting, sit_down
from horai.core.health import EngineHealth
from horai.core.limits import SHARDS
from horai.db.pool import connect

STOCK = {
    "shared_buffers": "128MB",
    "max_connections": "100",
    "max_wal_size": "1GB",
    "min_wal_size": "80MB",
    "checkpoint_timeout": "5min",
    "random_page_cost": "4",
    "autovacuum_naptime": "1min",
    "jit": "on",
    "max_parallel_workers_per_gather": "2",
    "log_min_duration_statement": "-1",
}
"""The defaults of PostgreSQL 18, where the embedded server has other values."""
INTERVALS = 30
WINDOW, LEAD = 0.5, 1.0
"""Seconds of rows that one insert adds, and how far ahead they are due."""
FIRST_RATE, HALVINGS, PROBE = 4_000, 2, 10.0
QUICK_RATE = 100
KEPT_P99 = 2.0
SIZES = """
select pg_table_size('horai.instance_live') as rows, pg_indexes_size('horai.instance_live') as indexes,
    (select sum(pg_total_relation_size(inhrelid)) from pg_inherits where inhparent = 'horai.instance_history'::regclass)::bigint as history
"""


@dataclass(frozen=True, slots=True)
class Interval:
    """One part of the soak: settled instances a second, the p99 in ms, megabytes of the live table, its indexes and this process, and history bytes an instance."""

    rate: float
    p99: float
    table: float
    indexes: float
    memory: float
    history: float


FIGURES = {
    "rate": "/s",
    "p99": "ms",
    "table": "MB",
    "indexes": "MB",
    "memory": "MB",
    "history": "bytes an instance",
}
"""The figures of an interval and their units."""
AT_MOST = {"p99": 1.5, "table": 1.1, "indexes": 1.1, "memory": 1.1, "history": 1.1}
"""The largest ratio of the end to the beginning."""


async def _add(connection: asyncpg.Connection, rate: int, begin: float, seconds: float) -> None:
    """Insert `rate` rows a second, due from `begin` on, each window shortly before its time."""
    windows = max(round(seconds / WINDOW), 1)
    for window in range(windows):
        due = begin + window * WINDOW
        await asyncio.sleep(max(due - LEAD - time.time(), 0))
        spread = due - time.time(), WINDOW
        await connection.execute(backlog.FILL, int(rate * WINDOW), SHARDS, backlog.LANES, *spread, 1, 0.0, timeout=LONG)


async def _settled(health: EngineHealth, rows: int, within: float) -> bool:
    until = time.monotonic() + within
    while health.settled < rows and time.monotonic() < until:
        await asyncio.sleep(0.05)
    return health.settled >= rows


async def _is_kept(sitting: Sitting, rate: int) -> bool:
    """Return whether the engine keeps up with the rate for a few seconds."""
    async with sitting.database("soak_probe") as url:
        await backlog.make_jobs(url)
        connection = await connect(url, "bench")
        executor = Delays()
        async with running_engine(url, executor) as health:
            await _add(connection, rate, time.time() + 2 * LEAD, PROBE)
            is_done = await _settled(health, int(rate * WINDOW) * round(PROBE / WINDOW), LEAD + KEPT_P99)
        await connection.close()
    delays = sorted(executor.seconds)
    return is_done and delays[len(delays) * 99 // 100] < KEPT_P99


async def highest(sitting: Sitting) -> int:
    """Double the rate until the engine does not keep up with it, and halve the rest. Return the last rate that was kept."""
    if sitting.size.quick:
        return QUICK_RATE
    below, above = 0, FIRST_RATE
    while await _is_kept(sitting, above):
        below, above = above, above * 2
    for _ in range(HALVINGS):
        middle = (below + above) // 2
        below, above = (middle, above) if await _is_kept(sitting, middle) else (below, middle)
    return below


async def _soak(sitting: Sitting, rate: int) -> list[Interval]:
    seconds = max(sitting.size.seconds, 3 * WINDOW)
    async with sitting.database("soak") as url:
        await backlog.make_jobs(url)
        adding, watching = await connect(url, "bench"), await connect(url, "bench")
        executor, found = Delays(), list[Interval]()
        rows = int(rate * WINDOW) * max(round(seconds / WINDOW), 1)
        async with running_engine(url, executor) as health:
            begin = time.time() + 2 * LEAD
            task = asyncio.create_task(_add(adding, rate, begin, seconds))
            await asyncio.sleep(begin - time.time())
            parts = min(INTERVALS, max(round(seconds / WINDOW), 3))
            before = health.settled, time.monotonic(), (await watching.fetchrow(SIZES))["history"]
            for part in range(1, parts + 1):
                executor.seconds = []
                await asyncio.sleep(max(begin + seconds * part / parts - time.time(), 0))
                delays, sizes = sorted(executor.seconds) or [0.0], await watching.fetchrow(SIZES)
                now = health.settled, time.monotonic(), sizes["history"]
                done = max(now[0] - before[0], 1)
                found.append(
                    Interval(
                        (now[0] - before[0]) / (now[1] - before[1]),
                        delays[len(delays) * 99 // 100] * 1000,
                        sizes["rows"] / 1e6,
                        sizes["indexes"] / 1e6,
                        psutil.Process().memory_info().rss / 1e6,
                        (now[2] - before[2]) / done,
                    )
                )
                print("  ".join(f"{name} {getattr(found[-1], name):,.1f}" for name in FIGURES), flush=True)
                before = now
            await task
            if not await _settled(health, rows, 30.0):
                raise RuntimeError(f"{health.settled} of {rows} rows were settled")
        await backlog.require_settled(watching, rows)
        await adding.close()
        await watching.close()
    return found


def slope(values: Sequence[float], hours: float) -> float:
    """Return the slope of a series over `hours` by least squares, in percent of its mean an hour."""
    if len(values) < 2 or not (mean := statistics.fmean(values)):
        return 0.0
    at = [hours * number / (len(values) - 1) for number in range(len(values))]
    return statistics.linear_regression(at, values).slope / mean * 100


async def sample(sitting: Sitting, name: str = "soak") -> Sample:
    """Search the highest rate, and soak at half of it."""
    most = await highest(sitting)
    intervals = await _soak(sitting, most // 2)
    steady = intervals[1:]  # the first has the start in it
    third = max(len(steady) // 3, 1)
    found: dict[str, float] = {f"{name}: highest rate": most, f"{name}: asked rate": most // 2}
    for figure in FIGURES:
        values = [getattr(interval, figure) for interval in steady]
        found |= {
            f"{name}: {figure} at first": statistics.median(values[:third]),
            f"{name}: {figure} at last": statistics.median(values[-third:]),
            f"{name}: {figure} slope": slope(values, sitting.size.seconds * len(steady) / len(intervals) / 3600),
        }
    return found


async def sample_of_stock(sitting: Sitting) -> Sample:
    """The same on a server with the settings of PostgreSQL itself."""
    async with sit_down(sitting.size, STOCK) as stock:
        return await sample(stock, "stock")


def _lines(name: str) -> tuple[Line, ...]:
    lines = [Line(f"{name}: highest rate", "/s"), Line(f"{name}: asked rate", "/s")]
    for figure, unit in FIGURES.items():
        lines.append(Line(f"{name}: {figure} at first", unit))
        per, at_least = f"{name}: {figure} at first", 0.97 if figure == "rate" else None
        lines.append(Line(f"{name}: {figure} at last", unit, per, at_least, AT_MOST.get(figure)))
        lines.append(Line(f"{name}: {figure} slope", "% an hour"))
    return tuple(lines)


SCENARIO = Scenario("soak", "half of the highest rate for a long time", sample, _lines("soak"), by_name_only=True)
SCENARIO_OF_STOCK = Scenario(
    "soak_stock", "the same with PostgreSQL's own settings", sample_of_stock, _lines("stock"), by_name_only=True
)
