"""Immediate: from the call of the API in one process to the handler's first line in another, at a steady rate."""

import asyncio
import time
import uuid
from dataclasses import dataclass

import aiohttp

from benchmarks import backlog
from benchmarks.processes import child, module
from benchmarks.scenario import Line, Sample, Scenario
from benchmarks.sitting import Sitting
from horai.db.pool import connect

RATE, JOBS, WARM_UP = 200, 5, 40


async def sample(sitting: Sitting) -> Sample:
    """The generator of the load is a third process: this one."""
    calls = max(int(RATE * sitting.size.seconds), 1)
    async with sitting.database("immediate") as url:
        await backlog.make_jobs(url, JOBS)
        async with (
            child(*module("benchmarks.engine_process", url)) as engine,
            child(*module("benchmarks.api_process", url)) as api,
        ):
            async with aiohttp.ClientSession(api.told["url"]) as session:
                # All at once: each of the API's connections makes its plans, once in its life.
                await asyncio.gather(*(_trigger(session, number % JOBS) for number in range(WARM_UP)))
                called = await _load(session, calls)
            await _until_settled(url, WARM_UP + calls)
            began: dict[str, float] = await engine.finish()
    missing = called.keys() - began.keys()
    if missing:
        raise RuntimeError(f"{len(missing)} of {calls} triggered instances never ran")
    begins = [(began[instance] - call.at) * 1000 for instance, call in called.items()]
    answers = [(call.answered - call.at) * 1000 for call in called.values()]
    return _quantiles("immediate", begins) | _quantiles("answered", answers)


@dataclass(frozen=True, slots=True)
class Trigger:
    """One call of the API: when it began, and when it was answered."""

    at: float
    answered: float


def _quantiles(name: str, delays: list[float]) -> dict[str, float]:
    ordered = sorted(delays)
    return {f"{name} p{share}": ordered[min(len(ordered) * share // 100, len(ordered) - 1)] for share in (50, 95, 99)}


async def _load(session: aiohttp.ClientSession, calls: int) -> dict[str, Trigger]:
    """Triggers at a steady rate, whether or not the answers keep up, by instance."""
    begin = time.monotonic() + 0.05
    waiting: list[asyncio.Task[tuple[str, Trigger]]] = []
    for number in range(calls):
        await asyncio.sleep(max(begin + number / RATE - time.monotonic(), 0))
        waiting.append(asyncio.create_task(_trigger(session, number % JOBS)))
    return dict(await asyncio.gather(*waiting))


async def _until_settled(url: str, rows: int) -> None:
    """Wait until all rows are settled.

    A row without a wake waits for a sweep: it counts as late, not as lost.
    """
    connection = await connect(url, "bench")
    async with asyncio.timeout(60):
        while await connection.fetchval("select count(*) from horai.instance_history") < rows:
            await asyncio.sleep(0.1)
    await connection.close()


async def _trigger(session: aiohttp.ClientSession, job: int) -> tuple[str, Trigger]:
    at = time.monotonic()
    key = {"Idempotency-Key": str(uuid.uuid4())}
    async with session.post(f"/api/v1/jobs/noop{job}/trigger", headers=key, json={}) as response:
        answer = await response.json()
        if response.status != 201:
            raise RuntimeError(f"{response.status}: {answer}")
    return answer["instance"]["id"], Trigger(at, time.monotonic())


SCENARIO = Scenario(
    "immediate",
    "API in one process, executor in another, 200/s",
    sample,
    (
        Line("immediate p50", "ms"),
        Line("immediate p95", "ms"),
        Line("immediate p99", "ms", at_most=15.0),
        Line("answered p50", "ms"),
        Line("answered p99", "ms"),
    ),
)
