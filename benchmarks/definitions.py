"""Definitions: start-up, memory and cost per fire with very many jobs. They are rows, not memory."""

import asyncio
import time
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import psutil

from benchmarks import cpu
from benchmarks.backlog import LONG
from benchmarks.processes import Child, child, module
from benchmarks.scenario import Line, Sample, Scenario
from benchmarks.schedule_groups import make_groups
from benchmarks.sitting import Sitting
from horai.db import nodes
from horai.db.pool import Dedicated, connect

SCHEDULES = 2_000
EVERY = timedelta(hours=1)
MANY, VERY_MANY = 30_000, 3_000_000
FIRED = 30_000
LEAD, QUICK_LEAD = 8.0, 4.0
FEW = 1_000


async def measure(sitting: Sitting, jobs: int) -> Sample:
    """Starts an engine in a process of its own, and has some of the schedules fire once."""
    groups = min(SCHEDULES, jobs)
    firing = min(groups, max(FIRED * groups // jobs, 1))
    async with sitting.database("definitions") as url:
        connection = await connect(url, "bench")
        ids = (await make_groups(url, connection, groups, jobs, EVERY))[:firing]
        await connection.execute("checkpoint", timeout=LONG)
        began = time.monotonic()
        fire = await _set_fire(connection, ids, sitting.size.wait(LEAD, QUICK_LEAD))
        async with child(*module("benchmarks.engine_process", url)) as engine:
            ready = time.monotonic() - began
            cost, took = await _cost_of(sitting, connection, engine, replace(fire, slots=jobs // groups * firing))
            memory = psutil.Process(engine.pid).memory_info().rss / 2**20
            await engine.finish()
        await connection.close()
    name = f"{jobs:,} jobs"
    return {f"{name}: start": ready, f"{name}: memory": memory, f"{name}: CPU": cost, f"{name}: last": took}


@dataclass(frozen=True, slots=True)
class Fire:
    """One fire of many schedules: when, by the database's clock and by ours, and how many slots it has."""

    at: datetime
    monotonic: float
    slots: int = 0


async def _set_fire(connection: Dedicated, ids: list[int], lead: float) -> Fire:
    fire = Fire(await nodes.database_time(connection) + timedelta(seconds=lead), time.monotonic() + lead)
    await connection.execute("update horai.schedule set fire_time = $2 where id = any ($1)", ids, fire.at)
    return fire


async def _cost_of(sitting: Sitting, connection: Dedicated, engine: Child, fire: Fire) -> tuple[float, float]:
    """Microseconds of CPU per instance, engine and database together, and seconds until the last was settled."""
    await asyncio.sleep(max(fire.monotonic - time.monotonic(), 0))
    before = cpu.of_tree(engine.pid) + cpu.of_tree(sitting.server.pid)
    done = 0
    async with asyncio.timeout(LONG):
        while done < fire.slots:
            await asyncio.sleep(0.1)
            done = await connection.fetchval(
                "select count(*) from horai.instance_history where fire_time = $1", fire.at
            )
    if done != fire.slots:
        raise RuntimeError(f"{done} settled for {fire.slots} slots")
    took = time.monotonic() - fire.monotonic
    used = cpu.of_tree(engine.pid) + cpu.of_tree(sitting.server.pid) - before
    return used / fire.slots * 1e6, took


def _lines(jobs: int) -> tuple[Line, ...]:
    units = {"start": "s", "memory": "MB", "CPU": "µs per instance", "last": "s to settle all"}
    return tuple(Line(f"{jobs:,} jobs: {what}", unit) for what, unit in units.items())


def _scenario(name: str, jobs: int, *, by_name_only: bool) -> Scenario:
    async def sample(sitting: Sitting) -> Sample:
        found = await measure(sitting, FEW if sitting.size.quick else jobs)
        return dict(zip((line.name for line in _lines(jobs)), found.values(), strict=True))

    return Scenario(name, f"{jobs:,} definitions", sample, _lines(jobs), by_name_only=by_name_only)


SCENARIO = _scenario("definitions", MANY, by_name_only=False)
SCENARIO_OF_MILLIONS = _scenario("definitions_3m", VERY_MANY, by_name_only=True)
