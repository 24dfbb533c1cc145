"""Backfill: what online work notices of as many slots of the past as there are rows, alone first and then beside them.

The online work is added by this process, 200 instances a second, and run by an engine in another one, which makes and runs
the slots too. Its delay is that from the call to the handler's first line. Alone and beside are one run: the same processes
and the same database. Beside counts from when the slots are counted and the backfill is written, to its end.
"""

import asyncio
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from itertools import count, takewhile

from benchmarks import backlog
from benchmarks.processes import child, module
from benchmarks.scenario import Line, Sample, Scenario
from benchmarks.sitting import Sitting
from horai.core.backfill_status import BackfillStatus
from horai.db.database_location import DatabaseLocation
from horai.db.pool import Dedicated, connect
from horai.features.backfill import service as backfills
from horai.features.backfill.rules import BackfillRequest
from horai.operations import jobs
from horai.operations.job_rows import JobDocument
from horai.sdk.client import Client, open_client

RATE, JOBS, WARM_UP = 200, 5, 200
CAP = 1_000
"""Maximum number of slots under way at once: as many as a user would dare."""
LOOK = 0.5
PATIENCE = 900.0
ALLOWED_MS = 20.0
START = datetime(2024, 1, 1, tzinfo=UTC)
STEP = timedelta(minutes=1)
FILLED = {"name": "filled", "every": "1m", "target": backlog.WORKER}

ACCOUNT = """
select count(*) as slots, count(distinct fire_time) as once,
    count(*) filter (where state = 2 and attempt = 1 and slot = 0) as at_first
from horai.instance_history past join horai.job on job.id = past.job_id
where job.name = 'filled' and fire_time < $1
"""

Called = Mapping[str, float]
"""When each instance was asked for, by its id."""


async def sample(sitting: Sitting) -> Sample:
    """The same work of now twice; the second time a backfill runs."""
    calls, slots = max(int(RATE * sitting.size.seconds), 1), sitting.size.rows
    warm_up, look = min(WARM_UP, calls), sitting.size.wait(LOOK, quick=LOOK)
    async with sitting.database("backfill") as url:
        await backlog.make_jobs(url, JOBS)
        client = await open_client(DatabaseLocation(url=url))
        await jobs.create_job(client.scope, JobDocument(FILLED, None))
        async with child(*module("benchmarks.engine_process", url, "noop")) as engine:
            await _load(client, lambda number: number < warm_up)
            alone = await _load(client, lambda number: number < calls)
            beside, counted, took = await _beside(client, slots, look)
            connection = await connect(url, "bench")
            await _require_exact(connection, slots, warm_up + len(alone) + len(beside))
            await connection.close()
            began: dict[str, float] = await engine.finish()
        await client.close()
    found = _quantiles("online alone", alone, began) | _quantiles("online beside", beside, began)
    return found | {
        "online p95 / allowed": found["online beside p95"] / max(ALLOWED_MS, 2 * found["online alone p95"]),
        "backfill": slots / took,
        "backfill counted": counted,
    }


async def _beside(client: Client, slots: int, look: float) -> tuple[Called, float, float]:
    """Online work until a backfill is done; the seconds that took to count, and to run."""
    asked_at = time.monotonic()
    wish = BackfillRequest(START, START + slots * STEP, max_concurrency=CAP)
    backfill = await backfills.start_backfill(client.scope, "filled", wish)
    begun_at = time.monotonic()
    is_over = asyncio.Event()
    online = asyncio.create_task(_load(client, lambda _: not is_over.is_set()))
    try:
        async with asyncio.timeout(PATIENCE):
            while backfill.status is not BackfillStatus.DONE:
                await asyncio.sleep(look)
                backfill = await backfills.read_backfill(client.scope, backfill.id)
    finally:
        is_over.set()
    took = time.monotonic() - begun_at
    return await online, begun_at - asked_at, took


async def _load(client: Client, goes_on: Callable[[int], bool]) -> Called:
    """Adds instances at a steady rate, whether or not the answers keep up; `goes_on` is asked before each."""
    begin = time.monotonic() + 0.05
    waiting: list[asyncio.Task[tuple[str, float]]] = []
    for number in takewhile(goes_on, count()):
        await asyncio.sleep(max(begin + number / RATE - time.monotonic(), 0))
        waiting.append(asyncio.create_task(_add(client, number % JOBS)))
    return dict(await asyncio.gather(*waiting))


async def _add(client: Client, job: int) -> tuple[str, float]:
    at = time.monotonic()
    return str(await client.enqueue(f"noop{job}", None, None)), at


def _quantiles(name: str, called: Called, began: Mapping[str, float]) -> dict[str, float]:
    """Milliseconds from the call to the handler's first line."""
    if missing := called.keys() - began.keys():
        raise RuntimeError(f"{len(missing)} of {len(called)} instances never ran")
    delays = sorted((began[instance] - at) * 1000 for instance, at in called.items())
    return {f"{name} p{share}": delays[min(len(delays) * share // 100, len(delays) - 1)] for share in (50, 95, 99)}


async def _require_exact(connection: Dedicated, slots: int, online: int) -> None:
    """Every slot of the range a success, once, at its first attempt; and no online call left."""
    row = await connection.fetchrow(ACCOUNT, START + slots * STEP, timeout=backlog.LONG)
    found = dict(row) if row else {}
    if found != {"slots": slots, "once": slots, "at_first": slots}:
        raise RuntimeError(f"of {slots} slots: {found}")
    async with asyncio.timeout(60):
        while await connection.fetchval("select count(*) from horai.instance_history where slot < 0") < online:
            await asyncio.sleep(0.1)


SCENARIO = Scenario(
    "backfill",
    "online work beside a backfill of as many slots as rows",
    sample,
    (
        *(Line(f"online alone p{share}", "ms") for share in (50, 95, 99)),
        *(Line(f"online beside p{share}", "ms") for share in (50, 95, 99)),
        Line("online p95 / allowed", "", at_most=1.0),
        Line("backfill", "/s"),
        Line("backfill counted", "s"),
    ),
)
