"""Lists of instances over REST with many instances behind them: the times of pages, in both orders, and of totals.

A tenth of the instances waits, the others have ended, one of a hundred dead. `--rows 1000000` is the size of the promise.
"""

import json
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import ClientSession

from benchmarks import backlog
from benchmarks.backlog import LONG
from benchmarks.processes import child, module
from benchmarks.scenario import Line, Sample, Scenario
from benchmarks.sitting import Sitting
from horai.db.pool import connect

ASKED = 60
"""Requests of each kind."""
PROMISED_P95 = 300.0
PROMISED_ORDER_AND_TOTAL = 1_000.0
PATHS: Mapping[str, str] = {
    "first page": "/api/v1/instances?limit=100",
    "by state": "/api/v1/instances?limit=100&state=DEAD",
    "by job": "/api/v1/instances?limit=100&job=noop3",
}
ORDERS: Mapping[str, str] = {
    "oldest first": "/api/v1/instances?limit=100&order=oldest",
    "oldest by state": "/api/v1/instances?limit=100&order=oldest&state=DEAD",
}
TOTALS: Mapping[str, str] = {
    "total": "/api/v1/instances/count",
    "total by state": "/api/v1/instances/count?state=DEAD",
    "total by job": "/api/v1/instances/count?job=noop3",
}
"""The server counts 100,000 live and 100,000 finished instances at most."""
LATER = "later page"
PAGES = 20
"""Pages before the later one."""
ENDED = """
insert into horai.instance_history
    (id, job_id, tenant_id, lane, fire_time, execute_time, born_for, slot, attempt, fence, node, payload, created_at, claimed_at,
    finished_at, state, retry_count, events)
select id, job_id, tenant_id, lane, fire_time, execute_time, born_for, slot, 1, 1, 1, payload, created_at, due,
    greatest(date_trunc('day', clock_timestamp(), 'UTC'), clock_timestamp() - interval '1 hour' * random()),
    case when id % 100 = 1 then 4 else 2 end, 0, 0
from gone
"""
MOVE = f"with gone as (delete from horai.instance_live where id % 10 <> 0 returning *) {ENDED}"


async def sample(sitting: Sitting) -> Sample:
    """Milliseconds of the 95th percentile of each kind of request."""
    found: dict[str, float] = {}
    async with served(sitting, "lists") as base, ClientSession(base) as session:
        for name, path in {**PATHS, **ORDERS, **TOTALS}.items():
            found[name] = await _p95(session, path)
        found[LATER] = await _p95(session, await _later(session))
    return found


@asynccontextmanager
async def served(sitting: Sitting, database: str) -> AsyncGenerator[str]:
    """The address of an API, and of its console, with the instances behind it."""
    async with sitting.database(database) as url:
        await backlog.make_jobs(url)
        connection = await connect(url, "bench")
        await backlog.fill(connection, sitting.size.rows)
        await connection.execute(MOVE, timeout=LONG)
        await connection.execute("vacuum analyze", timeout=LONG)
        await connection.close()
        async with child(*module("benchmarks.api_process", url)) as api:
            yield str(api.told["url"])


async def _p95(session: ClientSession, path: str) -> float:
    """Ask for a page again and again, after one request that prepares the statement."""
    times: list[float] = []
    for _ in range(ASKED + 1):
        begun = time.perf_counter()
        page = await _page(session, path)
        times.append((time.perf_counter() - begun) * 1000)
        if not (page.get("items") or page.get("count")):
            raise RuntimeError(f"{path} is empty")
    return sorted(times[1:])[ASKED * 95 // 100]


async def _later(session: ClientSession) -> str:
    """Return the path of a page after the first pages; with few rows, of the last one."""
    path = PATHS["first page"]
    for _ in range(PAGES):
        cursor = (await _page(session, path))["nextCursor"]
        following = f"{PATHS['first page']}&cursor={cursor}"
        if cursor is None or not (await _page(session, following))["items"]:
            break
        path = following
    return path


async def _page(session: ClientSession, path: str) -> dict[str, Any]:
    async with session.get(path) as answer:
        if answer.status != 200:
            raise RuntimeError(f"{path}: {answer.status}")
        return json.loads(await answer.read())


SCENARIO = Scenario(
    "lists",
    "pages and totals of instances over REST",
    sample,
    (
        *(Line(name, "ms", at_most=PROMISED_P95) for name in (*PATHS, LATER)),
        *(Line(name, "ms", at_most=PROMISED_ORDER_AND_TOTAL) for name in (*ORDERS, *TOTALS)),
    ),
)
