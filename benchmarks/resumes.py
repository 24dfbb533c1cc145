"""Pause and resume of many cron jobs by one request each, over REST."""

import time

from aiohttp import ClientSession

from benchmarks.processes import child, module
from benchmarks.scenario import Line, Sample, Scenario
from benchmarks.sitting import Sitting
from horai.core.actor import SYSTEM
from horai.db.pool import open_pool
from horai.db.wakeups import Wakeups
from horai.features.registry import JOB_HOOKS
from horai.operations import jobs
from horai.operations.job_rows import JobDocument
from horai.operations.scope import Scope

JOBS = 1_000
CRONS = 60
"""Schedules that the jobs share."""
TAG = "nightly"


async def sample(sitting: Sitting) -> Sample:
    """Jobs per second."""
    count = min(JOBS, sitting.size.rows)
    found: dict[str, float] = {}
    async with sitting.database("resumes") as url:
        await _make(url, count)
        async with child(*module("benchmarks.api_process", url)) as api, ClientSession() as session:
            for name, verb in (("paused", "pause"), ("resumed", "resume")):
                began = time.perf_counter()
                address = f"{api.told['url']}/api/v1/jobs/{verb}"
                async with session.post(address, json={"tag": TAG}) as answer:
                    told = await answer.json()
                if told["changed"] != count:
                    raise RuntimeError(f"{told}, not {count}")
                found[name] = count / (time.perf_counter() - began)
    return found


async def _make(url: str, count: int) -> None:
    pool = await open_pool(url, "bench", 2)
    scope = Scope(pool, Wakeups(), 1, "default", SYSTEM, JOB_HOOKS)
    for number in range(count):
        document = {"name": f"job{number}", "cron": f"{number % CRONS} 3 * * *", "tags": [TAG]}
        await jobs.create_job(scope, JobDocument(document, None))
    await pool.close()


SCENARIO = Scenario(
    "resumes",
    f"pause and resume of {JOBS:,} cron jobs, one request each",
    sample,
    (Line("paused", "/s"), Line("resumed", "/s", at_least=500)),
)
