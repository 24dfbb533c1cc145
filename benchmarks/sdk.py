"""Through the public SDK: no-op functions in a worker, what it takes to add their instances, and how soon they begin.

The worker is what `horai worker` runs: in this process where its Python is counted and profiled, in one of its own
where it is about the way from one process to another (python -m benchmarks.sdk URL).
"""

import asyncio
import cProfile
import io
import pstats
import sys
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import uvloop

from benchmarks import backlog, cpu, table
from benchmarks.backlog import Spread
from benchmarks.engines import as_node, settled
from benchmarks.latency import INSERTS_PER_SECOND
from benchmarks.processes import child, module, quiet, tell, told_to_end
from benchmarks.scenario import Line, Sample, Scenario
from benchmarks.sitting import Sitting
from horai import Handle, Horai, Instance, Job
from horai.core.actor import SYSTEM
from horai.core.health import EngineHealth
from horai.db.pool import TenantPool, connect, open_pool
from horai.db.wakeups import Wakeups
from horai.features.registry import JOB_HOOKS
from horai.operations.scope import Scope
from horai.sdk.worker import CONCURRENCY, WorkerSettings, working

LANES = 25
PROFILED = 50_000
PROFILE = "sdk_drain.profile.txt"
PAYLOAD = {"x": "x" * 100}
MANY = 10_000
CALLERS = 50
RATE, FEW = 200, 5
RATES = (1_000, 5_000)


class Application:
    """Functions that do nothing, each in a queue and so a lane of its own, and how often they ran."""

    def __init__(self, url: str, lanes: int = LANES) -> None:
        self.app = Horai("bench", database_url=as_node(url))
        self.calls = 0
        self.first_at = self.settled_at = 0.0
        self.jobs: list[Job[..., None]] = [self._job(number) for number in range(lanes)]

    def _job(self, number: int) -> Job[..., None]:
        @self.app.job(name=f"noop{number}", queue=f"q{number}")
        async def noop(instance: Instance[Any]) -> None:
            self.calls += 1
            if self.calls == 1:
                self.first_at = time.perf_counter()
            self.began(instance)

        return noop

    def began(self, instance: Instance[Any]) -> None:
        """Run in the first line of a function."""


class Noting(Application):
    """Takes note of when each instance began, by a clock that all processes of this machine share."""

    def __init__(self, url: str, lanes: int = LANES) -> None:
        super().__init__(url, lanes)
        self.moments: dict[str, float] = {}
        self.delays: list[float] = []

    def began(self, instance: Instance[Any]) -> None:
        """By the time of the machine and of its PostgreSQL."""
        self.moments[instance.id] = time.monotonic()
        self.delays.append(time.time() - instance.execute_time.timestamp())


@asynccontextmanager
async def worker(url: str, app: Horai, concurrency: int = CONCURRENCY) -> AsyncGenerator[EngineHealth]:
    """The application's worker, at work."""
    pool = await open_pool(as_node(url), "bench", 2)
    scope = Scope(TenantPool(pool, 1), Wakeups(), 1, "default", SYSTEM, JOB_HOOKS)
    health = EngineHealth()
    async with working(as_node(url), app, WorkerSettings(name="bench", concurrency=concurrency), scope, health):
        yield health
    await pool.close()


async def drain(sitting: Sitting) -> Sample:
    """Instances run by no-op async functions per second, and the Python each costs."""
    rows = sitting.size.rows
    async with sitting.database("sdk_drain") as url:
        drained = await _drain(sitting, url, rows)
    if not sitting.size.quick:  # a first impression is not worth keeping
        async with sitting.database("sdk_profile") as url:
            await _profiled(sitting, url, min(rows, PROFILED))
    python, database = drained.python * 1e6, drained.database * 1e6
    return {"sdk drain": drained.rate, "sdk python": python, "sdk PostgreSQL": database, "sdk CPU": python + database}


async def drain_rate(sitting: Sitting, rows: int) -> float:
    """Instances run per second, from the first call until all are settled: as it is measured for the peers."""
    async with sitting.database("sdk_drain") as url:
        application = Application(url)
        await _drain(sitting, url, rows, application=application)
        return rows / (application.settled_at - application.first_at)


@dataclass(frozen=True, slots=True)
class Drained:
    """A drained backlog: instances per second, and the seconds of CPU that each took, the start of the worker included."""

    rate: float
    python: float
    database: float


async def _drain(
    sitting: Sitting,
    url: str,
    rows: int,
    profile: cProfile.Profile | None = None,
    application: Application | None = None,
) -> Drained:
    """Drain a backlog by a worker in this process."""
    application = application or Application(url)
    await application.app.declare()
    await application.app.close()
    connection = await connect(url, "bench")
    await backlog.fill(connection, rows, lanes=LANES)
    started, used = time.perf_counter(), (cpu.own(), cpu.of_tree(sitting.server.pid))
    async with worker(url, application.app) as health:
        if profile is not None:
            profile.enable()
        await settled(health, rows)
        application.settled_at = time.perf_counter()
        if profile is not None:
            profile.disable()
        took = time.perf_counter() - started
        python, database = cpu.own() - used[0], cpu.of_tree(sitting.server.pid) - used[1]
    await backlog.require_settled(connection, rows)
    if application.calls != rows:
        raise RuntimeError(f"{application.calls} calls for {rows} rows")
    await connection.close()
    return Drained(rows / took, python / rows, database / rows)


async def _profiled(sitting: Sitting, url: str, rows: int) -> None:
    """Where the Python goes, kept beside the figures."""
    profile = cProfile.Profile()
    await _drain(sitting, url, rows, profile)
    text = io.StringIO()
    pstats.Stats(profile, stream=text).strip_dirs().sort_stats("tottime").print_stats(40)
    table.RESULTS.mkdir(exist_ok=True)
    (table.RESULTS / PROFILE).write_text(text.getvalue())


async def added(sitting: Sitting, rows: int, callers: int) -> dict[str, float]:
    """Instances added per second as the peers do it: one after the other, by many callers at once, and by the thousand."""
    async with sitting.database("sdk_added") as url:
        application = Application(url, 1)
        (job,) = application.jobs
        await job.enqueue(PAYLOAD)
        singly = max(rows // 50, 100)
        single = await _rate(singly, _single(job, singly))
        together = await _rate(singly, *(_single(job, singly // callers) for _ in range(callers)))
        many = await _rate(rows, _many(job, rows, 1_000))
        await application.app.close()
    return {"single": single, f"{callers} callers": together, "enqueue": many}


async def enqueue(sitting: Sitting) -> Sample:
    """Instances added per second: many at once, one after the other, and by many callers."""
    rows = sitting.size.rows
    async with sitting.database("sdk_enqueue") as url:
        application = Application(url, 1)
        (job,) = application.jobs
        await job.enqueue(PAYLOAD)
        many = await _rate(rows, _many(job, rows))
        single = await _rate(rows // 100, _single(job, rows // 100))
        callers = await _rate(rows // 4, *(_single(job, rows // 4 // CALLERS) for _ in range(CALLERS)))
        await application.app.close()
    return {"sdk enqueue_many": many, "sdk enqueue": single, f"sdk enqueue, {CALLERS} callers": callers}


async def _rate(rows: int, *adding: Any) -> float:
    started = time.perf_counter()
    await asyncio.gather(*adding)
    return rows / (time.perf_counter() - started)


async def _many(job: Job[..., None], rows: int, at_once: int = MANY) -> None:
    for first in range(0, rows, at_once):
        await job.enqueue_many([PAYLOAD] * min(at_once, rows - first))


async def _single(job: Job[..., None], rows: int) -> None:
    for _ in range(rows):
        await job.enqueue(PAYLOAD)


async def immediate(sitting: Sitting) -> Sample:
    """From the call of `enqueue` here to the function's first line in a worker elsewhere, at a steady rate."""
    calls = max(int(RATE * sitting.size.seconds), 1)
    async with sitting.database("sdk_immediate") as url:
        async with child(*module(__name__, url)) as worker_process:
            application = Noting(url, FEW)
            for job in application.jobs:
                await job.enqueue(PAYLOAD)
            called = await _steadily(application.jobs, calls)
            await asyncio.gather(*(handle.result(timeout=60) for handle, _ in called))
            await application.app.close()
            began: dict[str, float] = await worker_process.finish()
    delays = sorted((began[handle.id] - at) * 1000 for handle, at in called)
    return {f"sdk immediate p{p}": delays[min(len(delays) * p // 100, len(delays) - 1)] for p in (50, 95, 99)}


async def _steadily(jobs: list[Job[..., None]], calls: int) -> list[tuple[Handle[None], float]]:
    begin = time.monotonic() + 0.05
    waiting: list[asyncio.Task[tuple[Handle[None], float]]] = []
    for number in range(calls):
        await asyncio.sleep(max(begin + number / RATE - time.monotonic(), 0))
        waiting.append(asyncio.create_task(_called(jobs[number % len(jobs)])))
    return await asyncio.gather(*waiting)


async def _called(job: Job[..., None]) -> tuple[Handle[None], float]:
    at = time.monotonic()
    return await job.enqueue(PAYLOAD), at


async def latency(sitting: Sitting) -> Sample:
    """Measure the delay from the execute time of an instance to the start of its function, at steady rates."""
    found: dict[str, float] = {"sdk early": 0}
    for rate in RATES:
        delays = await scheduled(sitting, rate, sitting.size.seconds)
        found["sdk early"] += sum(1 for delay in delays if delay < 0)
        found |= {f"sdk {rate:,}/s p{p}": delays[len(delays) * p // 100] * 1000 for p in (50, 99)}
    return found


async def scheduled(sitting: Sitting, rate: int, seconds: float) -> list[float]:
    """The delays of so many instances a second, in order."""
    rows = max(int(rate * seconds), 1)
    async with sitting.database("sdk_latency") as url:
        application = Noting(url)
        await application.app.declare()
        await application.app.close()
        connection = await connect(url, "bench")
        lead = sitting.size.wait(2.0, quick=2.0) + rows / INSERTS_PER_SECOND
        await backlog.fill(connection, rows, Spread(lead, even=seconds, scatter=0.0), lanes=LANES)
        async with worker(url, application.app) as health:
            await settled(health, rows)
        await backlog.require_settled(connection, rows)
        await connection.close()
    return sorted(application.delays)


DRAIN = Scenario(
    "sdk_drain",
    "backlog through a worker's no-op async functions",
    drain,
    (
        Line("sdk drain", "/s", per="raw_limit", at_least=0.6),
        Line("sdk drain", "/s", per="own_sql"),
        Line("sdk python", "µs of CPU an instance"),
        Line("sdk PostgreSQL", "µs of CPU an instance"),
        Line("sdk CPU", "µs of CPU an instance", at_most=40.0),
    ),
    needs=("raw_limit", "own_sql"),
)
ENQUEUE = Scenario(
    "sdk_enqueue",
    "instances added through the SDK",
    enqueue,
    (
        Line("sdk enqueue_many", "/s", at_least=60_000.0),
        Line("sdk enqueue", "/s"),
        Line(f"sdk enqueue, {CALLERS} callers", "/s"),
    ),
)
IMMEDIATE = Scenario(
    "sdk_immediate",
    "enqueue in one process, function in another, 200/s",
    immediate,
    (
        Line("sdk immediate p50", "ms"),
        Line("sdk immediate p95", "ms"),
        Line("sdk immediate p99", "ms", at_most=10.0),
    ),
)
LATENCY = Scenario(
    "sdk_latency",
    "scheduled, from its time to the function's first line",
    latency,
    (
        *(Line(f"sdk {rate:,}/s p50", "ms") for rate in RATES),
        *(Line(f"sdk {rate:,}/s p99", "ms", at_most=10.0) for rate in RATES),
        Line("sdk early", "calls", at_most=0),
    ),
)


async def _serve(url: str) -> None:
    application = Noting(url, FEW)
    await application.app.declare()
    await application.app.close()
    async with worker(url, application.app):
        tell("ready")
        await told_to_end()
    tell(application.moments)


if __name__ == "__main__":
    quiet()
    uvloop.run(_serve(sys.argv[1]))
