"""Same second: instances that lie in wait and fall due at one instant, from then until the last is settled.

The denominator is the drain of a backlog of as many rows. The same herd from one schedule with very many jobs is in
groups.py.
"""

import asyncio
import time

from benchmarks import backlog, drain
from benchmarks.backlog import Spread
from benchmarks.engines import NoOp, running_engine, settled
from benchmarks.latency import INSERTS_PER_SECOND
from benchmarks.scenario import Line, Sample, Scenario
from benchmarks.sitting import Sitting
from horai.core.limits import SHARDS
from horai.db.pool import Dedicated, connect

ROWS = 100_000
LEAD, QUICK_LEAD = 4.0, 1.5
"""Seconds for statistics, a checkpoint and the start of the engine, beside the time that the rows take."""

LEFT = "select extract(epoch from min(due) - clock_timestamp())::float8, count(distinct due) from horai.instance_live"
PER_SHARD = "select count(*) as n from horai.instance_live group by shard"
FIRST = "select extract(epoch from min(claimed_at - execute_time))::float8 * 1000 from horai.instance_history"


async def sample(sitting: Sitting) -> Sample:
    """The backlog, then the herd."""
    rows = min(sitting.size.rows, ROWS)
    of_a_backlog = await drain.rate_of(sitting, rows)
    return {"backlog of as many": of_a_backlog, **await _herd(sitting, rows)}


async def _herd(sitting: Sitting, rows: int) -> Sample:
    async with sitting.database("same_second") as url:
        await backlog.make_jobs(url)
        connection = await connect(url, "bench")
        lead = sitting.size.wait(LEAD, QUICK_LEAD) + rows / INSERTS_PER_SECOND
        await backlog.fill(connection, rows, Spread(lead, scatter=0.0))
        fullest, emptiest = await _spread(connection)
        executor = NoOp()
        async with running_engine(url, executor) as health:
            due = await _due(connection, is_strict=not sitting.size.quick)
            await asyncio.sleep(max(due - time.monotonic(), 0.0))
            await settled(health, rows)
            rate = rows / (time.monotonic() - due)
        await backlog.require_settled(connection, rows)
        if executor.calls != rows:
            raise RuntimeError(f"{executor.calls} calls for {rows} rows")
        first: float = await connection.fetchval(FIRST, timeout=backlog.LONG)
        await connection.close()
    return {"same second": rate, "fullest shard": fullest, "emptiest shard": emptiest, "first claim": first}


async def _spread(connection: Dedicated) -> tuple[int, int]:
    """The most and the fewest rows that a shard has."""
    counts: list[int] = [row["n"] for row in await connection.fetch(PER_SHARD, timeout=backlog.LONG)]
    return max(counts), min(counts) if len(counts) == SHARDS else 0


async def _due(connection: Dedicated, *, is_strict: bool) -> float:
    """The one instant at which all are due, by the monotonic clock; it must be yet to come."""
    row = await connection.fetchrow(LEFT, timeout=backlog.LONG)
    left, instants = row.values() if row else (0.0, 0)
    if instants != 1 or (is_strict and left < 0):
        raise RuntimeError(f"{instants} instants, the first in {left:.1f} s: not one that lies ahead of the engine")
    return time.monotonic() + left


SCENARIO = Scenario(
    "same_second",
    f"{ROWS:,} due at one instant",
    sample,
    (
        Line("backlog of as many", "/s"),
        Line("same second", "/s", per="backlog of as many", at_least=0.9),
        Line("fullest shard", "rows", per="emptiest shard", at_most=1.05),
        Line("emptiest shard", "rows"),
        Line("first claim", "ms after the instant", at_least=0),
    ),
)
