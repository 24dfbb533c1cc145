"""Outage: nodes come back after six hours, with thousands of jobs of every misfire policy, and work of now beside them.

The hours are simulated: before the engine starts, the cursors of the schedules and the births of the jobs are put back.
Each job's late slots are then held against plain arithmetic on seconds; where one differs there is no figure but an error.
The fresh work lies in the lane of the late slots: it has the same queue, priority and handler. Its delay is that from its
execute time to its claim, both by the database's clock.
"""

import asyncio
import time
from collections import defaultdict
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from benchmarks.backlog import LONG, WORKER
from benchmarks.engines import SETTINGS, NoOp, running_engine
from benchmarks.scenario import Line, Sample, Scenario
from benchmarks.sitting import Sitting
from horai.core.actor import SYSTEM
from horai.core.calls import Call
from horai.core.outcome import Outcome, Succeeded
from horai.core.settings import EngineSettings
from horai.db import nodes
from horai.db.pool import Dedicated, connect, open_pool
from horai.db.wakeups import Wakeups
from horai.engine.dispatch.attempts import Executor
from horai.features.registry import JOB_HOOKS
from horai.operations import instances, jobs
from horai.operations.instances import Item
from horai.operations.job_rows import JobDocument
from horai.operations.scope import Scope

STEP, HOURS = timedelta(minutes=10), timedelta(hours=6)
MISSED = HOURS // STEP
JOBS, QUICK_JOBS = 15_000, 300
GROUPS, QUICK_GROUPS = 50, 2
SOONEST, LATEST = 180, 480
"""Seconds from now to the coming slots: neither they nor those before them lie near an edge for minutes."""
FRESH_PER_SECOND = 20
CALL_TAKES, AT_ONCE = 0.02, 50
ALLOWED_MS = 2_000.0

COPY = """
insert into horai.job (tenant_id, name, schedule_id, lane_id, active_from, definition)
select tenant_id, name || '.' || n, schedule_id, lane_id, active_from,
    jsonb_set(definition::jsonb, '{name}', to_jsonb(name || '.' || n))::json
from horai.job, generate_series(1, $1::integer) n
where schedule_id is not null
"""
PUT_BACK = """
with earlier as (
    update horai.schedule set fire_time = fire_time - $1::interval, wall = wall - $1::interval
)
update horai.job set active_from = active_from - $1::interval
"""
IS_DRAINED = """
select not exists (select from horai.schedule where fire_time <= clock_timestamp())
    and not exists (select from horai.catchup) and not exists (select from horai.instance_live where slot >= 0)
"""
MADE = """
select job.name, extract(epoch from $1 - fire_time)::integer as age from horai.job
left join horai.instance_history slot on slot.job_id = job.id and slot.slot >= 0 and slot.fire_time < $1 and slot.state = 2
where job.schedule_id is not null
order by fire_time desc
"""
FRESH = """
select extract(epoch from claimed_at - execute_time)::float8 * 1000 as delay
from horai.instance_history where job_id = (select id from horai.job where name = 'fresh') order by 1
"""


@dataclass(frozen=True, slots=True)
class Policy:
    """A misfire policy as a definition writes it; as numbers, `most` newest late slots, and `window` seconds back."""

    written: str | dict[str, str | int]
    most: int
    window: int = HOURS // timedelta(seconds=1)

    def kept(self, ages: list[int]) -> list[int]:
        """Of late slots that are so many seconds old, those that are made, newest first."""
        return sorted(age for age in ages if age <= self.window)[: self.most]


POLICIES = (
    *[Policy("skip", 0)] * 5,
    *[Policy("once", 1)] * 4,
    Policy({"policy": "once", "window": "110s"}, 1, 110),
    *[Policy("all", MISSED)] * 2,
    Policy({"policy": "all", "maxCatchup": 5}, 5),
    Policy({"policy": "all", "window": "2h"}, MISSED, 7_200),
    Policy({"policy": "all", "maxCatchup": 20, "window": "30m"}, 20, 1_800),
)
"""A third each skips, makes one, and makes all; the latter also within bounds."""


class Slow:
    """A callee that takes its time."""

    async def run(self, call: Call) -> Outcome:
        """Always a success."""
        await asyncio.sleep(CALL_TAKES)
        return Succeeded()


@dataclass(frozen=True, slots=True)
class Drained:
    """The result of the return: late slots per second, and the delays of the fresh work in milliseconds, in order."""

    rate: float
    delays: list[float]

    def told(self, name: str) -> dict[str, float]:
        """Its figures."""
        shares = {f"{name} fresh p{share}": self._quantile(share) for share in (50, 95, 99)}
        return {f"{name} drain": self.rate, **shares}

    def _quantile(self, share: int) -> float:
        return self.delays[min(len(self.delays) * share // 100, len(self.delays) - 1)]


async def sample(sitting: Sitting) -> Sample:
    """With handlers that take no time, and with a callee that is the bottleneck."""
    quick = await _return(sitting, NoOp(), SETTINGS)
    slow = await _return(sitting, Slow(), replace(SETTINGS, in_flight=AT_ONCE))
    return {**quick.told("outage:"), **slow.told("outage, slow callee:")}


async def _return(sitting: Sitting, executor: Executor, settings: EngineSettings) -> Drained:
    async with sitting.database("outage") as url:
        pool, connection = await open_pool(url, "bench", 4), await connect(url, "bench")
        scope = Scope(pool, Wakeups(), 1, "default", SYSTEM, JOB_HOOKS)
        few = min(QUICK_JOBS, max(sitting.size.rows // 4, QUICK_GROUPS * len(POLICIES))), QUICK_GROUPS
        over_at = await _go_down(scope, connection, *(few if sitting.size.quick else (JOBS, GROUPS)))
        began = time.perf_counter()
        async with running_engine(url, executor, wakeups=scope.wakeups, settings=settings):
            async with _fresh_work(scope):
                await _drained(connection)
            took = time.perf_counter() - began
        made = await _require_exact(connection, over_at)
        delays = [row["delay"] for row in await connection.fetch(FRESH)]
        await connection.close()
        await pool.close()
    return Drained(made / took, delays)


async def _go_down(scope: Scope, connection: Dedicated, many: int, groups: int) -> datetime:
    """Jobs named after their policy and the phase of their schedule, with the hours behind them; when these ended."""
    now = (await nodes.database_time(connection)).replace(microsecond=0)
    await jobs.create_job(scope, JobDocument({"name": "fresh", "target": WORKER}, None))
    for group in range(groups):
        phase = SOONEST + (LATEST - SOONEST) * group // groups
        for number, policy in enumerate(POLICIES):
            when = {"every": "10m", "anchor": now + timedelta(seconds=phase), "misfire": policy.written}
            document = {"name": f"{number}-{phase}", "target": WORKER, **when}
            await jobs.create_job(scope, JobDocument(document, None))
    await connection.execute(COPY, many // (groups * len(POLICIES)) - 1, timeout=LONG)
    await connection.execute(PUT_BACK, HOURS, timeout=LONG)
    for statement in ("vacuum analyze horai.job, horai.schedule", "checkpoint"):
        await connection.execute(statement, timeout=LONG)
    if await nodes.database_time(connection) > now + timedelta(seconds=SOONEST / 2):
        raise RuntimeError("the jobs took so long to make that slots lie near an edge")
    return now


@asynccontextmanager
async def _fresh_work(scope: Scope) -> AsyncGenerator[None]:
    """One-shots at a steady rate, whether or not the answers keep up."""

    async def write() -> None:
        begin = time.monotonic()
        async with asyncio.TaskGroup() as group:
            for number in range(10**6):
                await asyncio.sleep(max(begin + number / FRESH_PER_SECOND - time.monotonic(), 0))
                if is_over.is_set():
                    return
                group.create_task(instances.insert_batch(scope, "fresh", [Item(None, None)]))

    is_over = asyncio.Event()
    writing = asyncio.create_task(write())
    try:
        yield
    finally:
        is_over.set()
        await writing


async def _drained(connection: Dedicated) -> None:
    async with asyncio.timeout(LONG):
        while not await connection.fetchval(IS_DRAINED):
            await asyncio.sleep(0.1)


async def _require_exact(connection: Dedicated, over_at: datetime) -> int:
    """Every job has the late slots that the formula names, each once and a success, and no others; how many these are."""
    made: defaultdict[str, list[int]] = defaultdict(list)
    for row in await connection.fetch(MADE, over_at, timeout=LONG):
        made[row["name"]] += [] if row["age"] is None else [row["age"]]
    wrong = {name: ages for name, ages in made.items() if ages != _expected(name)}
    if wrong:
        raise RuntimeError(f"{len(wrong)} jobs differ from the formula: {dict(list(wrong.items())[:3])}")
    return sum(map(len, made.values()))


def _expected(name: str) -> list[int]:
    """A job's late slots, as seconds before the end of the outage."""
    number, phase = map(int, name.partition(".")[0].split("-"))
    return POLICIES[number].kept([STEP.seconds * slot - phase for slot in range(1, MISSED + 1)])


def _lines(name: str) -> tuple[Line, ...]:
    p50, p95, p99 = (f"{name} fresh p{share}" for share in (50, 95, 99))
    return Line(f"{name} drain", "/s"), Line(p50, "ms"), Line(p95, "ms", at_most=ALLOWED_MS), Line(p99, "ms")


SCENARIO = Scenario(
    "outage",
    f"six hours missed by {JOBS:,} jobs, fires equal the formula",
    sample,
    (*_lines("outage:"), *_lines("outage, slow callee:")),
)
