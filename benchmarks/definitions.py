"""Definitions: start-up, memory and cost per fire with very many cron jobs, each with a schedule of its own.

They are rows, not memory. The same number of definitions fires at every size, spread over the whole table; so the ratio
of two sizes is the cost of the definitions that do not fire.
"""

import asyncio
import sys
import time
from dataclasses import dataclass
from datetime import datetime, timedelta

import psutil

from benchmarks import cpu
from benchmarks.backlog import LONG
from benchmarks.cron_definitions import make_definitions
from benchmarks.processes import Child, child, module
from benchmarks.scenario import Line, Sample, Scenario
from benchmarks.sitting import TEMPLATE, Sitting
from horai.db.pool import Dedicated, connect, opened

MANY, VERY_MANY, FEW = 30_000, 3_000_000, 1_000
FIRED = 15_000
LEAD, QUICK_LEAD = 15.0, 5.0
"""Seconds from the start of the engine to the first of these fires."""
FIRING, QUICK_FIRING = 20.0, 2.0
"""Seconds from the first of them to the last. As for any cron, they fire at whole seconds."""
ALLOWED = 1.2
"""Figures of three million definitions, in parts of those of 30,000."""

SET_FIRES = """
with chosen as (
    select id, row_number() over (order by id) - 1 as n from horai.schedule
    where id in (select i * $1::bigint / $2 + 1 from generate_series(0::bigint, $2::bigint - 1) i)
)
update horai.schedule set fire_time = date_trunc('second', clock_timestamp() + $3::interval + $4::interval * n / $2) + interval '1 second'
from chosen where chosen.id = schedule.id
returning schedule.fire_time
"""
OVERDUE = "update horai.schedule set fire_time = clock_timestamp() where id = 1 returning fire_time"
"""The first one is chosen above as well: it fires at the start instead."""
SETTLED = "select count(*), percentile_cont(0.99) within group (order by extract(epoch from claimed_at - fire_time)) as p99 from horai.instance_history"


@dataclass(frozen=True, slots=True)
class Fires:
    """The fires of a sample: one that is due when the engine starts, and the others from `begin` to `end`."""

    count: int
    overdue: datetime
    begin: float
    end: float


async def measure(sitting: Sitting, jobs: int) -> Sample:
    """Start an engine in a process of its own and let some of the definitions fire once."""
    async with sitting.database("definitions", template=await _loaded(sitting, jobs)) as url:
        connection = await connect(url, "bench", command_timeout=timedelta(seconds=LONG))
        fires = await _set_fires(sitting, connection, jobs)
        async with child(*module("benchmarks.engine_process", url)) as engine:
            ready = await _first_claim(connection) - fires.overdue
            cost = await _cost_of(sitting, connection, engine, fires)
            memory = psutil.Process(engine.pid).memory_info().rss / 2**20
            await engine.finish()
        row = await connection.fetchrow(SETTLED)
        await connection.close()
    assert row is not None
    if row["count"] != fires.count:
        raise RuntimeError(f"{row['count']} settled for {fires.count} fires")
    figures = (ready.total_seconds(), memory, cost, row["p99"] * 1000)
    return dict(zip((line.name for line in _lines(jobs)), figures, strict=True))


async def _loaded(sitting: Sitting, jobs: int) -> str:
    """Return a database with the definitions, made once in a sitting: samples start from copies of it."""
    name = f"definitions_{jobs}"
    async with opened(sitting.url_of(TEMPLATE), "bench") as connection:
        if await connection.fetchval("select exists (select from pg_database where datname = $1)", name):
            return name
    await sitting.admin(f"create database {name} template {TEMPLATE}")
    connection = await connect(sitting.url_of(name), "bench", command_timeout=timedelta(seconds=LONG))
    await make_definitions(sitting.url_of(name), connection, jobs)
    await connection.close()
    print(f"{jobs:,} definitions are loaded", file=sys.stderr, flush=True)
    return name


async def _set_fires(sitting: Sitting, connection: Dedicated, jobs: int) -> Fires:
    """Give some definitions, evenly spread over the table, their next fire; write out all pages before."""
    lead, firing = sitting.size.wait(LEAD, QUICK_LEAD), sitting.size.wait(FIRING, QUICK_FIRING)
    fired = min(FIRED, jobs)
    spread = (timedelta(seconds=lead), timedelta(seconds=firing))
    await connection.execute("checkpoint")
    times = sorted(row["fire_time"] for row in await connection.fetch(SET_FIRES, jobs, fired, *spread))
    overdue = await connection.fetchval(OVERDUE)
    return Fires(len(times), overdue, times[0].timestamp(), times[-1].timestamp())


async def _first_claim(connection: Dedicated) -> datetime:
    """Return when the fire was claimed that was due at the start."""
    async with asyncio.timeout(LONG):
        while (claimed := await connection.fetchval("select claimed_at from horai.instance_history limit 1")) is None:
            await asyncio.sleep(0.02)
    return claimed


async def _cost_of(sitting: Sitting, connection: Dedicated, engine: Child, fires: Fires) -> float:
    """Return the microseconds of CPU per fire, engine and database together, from the first fire to the last outcome."""
    await asyncio.sleep(max(fires.begin - time.time(), 0))
    before = cpu.of_tree(engine.pid) + cpu.of_tree(sitting.server.pid)
    done = await connection.fetchval("select count(*) from horai.instance_history")
    await asyncio.sleep(max(fires.end - time.time(), 0))
    async with asyncio.timeout(LONG):
        while await connection.fetchval("select count(*) from horai.instance_history") < fires.count:
            await asyncio.sleep(0.1)
    used = cpu.of_tree(engine.pid) + cpu.of_tree(sitting.server.pid) - before
    return used / (fires.count - done) * 1e6


def _lines(jobs: int, than: int | None = None) -> tuple[Line, ...]:
    """Return the figures of a size, in parts of those of another size."""

    def line(figure: str, unit: str, at_most: float | None = ALLOWED) -> Line:
        per = None if than is None else f"{than:,} jobs: {figure}"
        return Line(f"{jobs:,} jobs: {figure}", unit, per, at_most=at_most if per else None)

    return (
        line("start", "s to the first fire"),
        line("memory", "MB"),
        line("CPU", "µs per fire"),
        line("p99", "ms late", at_most=None),
    )


def _scenario(name: str, jobs: int, than: int | None = None) -> Scenario:
    async def sample(sitting: Sitting) -> Sample:
        found = await measure(sitting, FEW if sitting.size.quick else jobs)
        return dict(zip((line.name for line in _lines(jobs)), found.values(), strict=True))

    needs = () if than is None else ("definitions",)
    about = f"{jobs:,} definitions"
    return Scenario(name, about, sample, _lines(jobs, than), needs, by_name_only=than is not None)


SCENARIO = _scenario("definitions", MANY)
SCENARIO_OF_MILLIONS = _scenario("definitions_3m", VERY_MANY, than=MANY)
