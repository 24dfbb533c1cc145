"""Concurrency keys under four workers that are killed: never more than the limit run, and no instance is forgotten."""

import asyncio
import random
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from sizes import IS_LONG

from faults.scene import Scene, scene
from horai.core.call_settings import CallSettings
from horai.db.pool import Platform, connect

CODE = """
import asyncio
from horai import Horai, Instance, Retry

app = Horai("faults")
OFTEN = Retry(max=20, base="10ms", jitter="none")


@app.job(retry=OFTEN)
async def charge(instance: Instance[int]) -> None:
    await asyncio.sleep(0.02)


@app.job(retry=OFTEN, concurrency_per_key=2)
async def mail(instance: Instance[int]) -> None:
    await asyncio.sleep(0.02)
    if instance.payload % 7 == 0 and instance.attempt == 1:
        raise ConnectionError("the first try fails")
"""
WORKERS = 4
KEYS = 8
CALLS = 1_200 if IS_LONG else 160
ROUNDS = 6 if IS_LONG else 2
LIMITS = {"charge": 1, "mail": 2}

RUNNING = """
    select job.name, live.concurrency_key, count(*) as running from horai.instance_live live join horai.job on job.id = live.job_id
    where live.state = 1 group by 1, 2
"""
INTERVALS = """
    select job.name, held.concurrency_key, held.began, held.ended from (
        select job_id, concurrency_key, claimed_at as began, finished_at as ended from horai.instance_history where state = 2
        union all
        select past.job_id, past.concurrency_key, tried.started_at, tried.finished_at
        from horai.attempt tried join horai.instance_history past on past.id = tried.instance_id where not tried.late
    ) held join horai.job on job.id = held.job_id
"""


@pytest.fixture
def place(short_place: Path) -> Path:
    return short_place / "keys"


@asynccontextmanager
async def sampled(url: str) -> AsyncGenerator[Counter[tuple[str, str]]]:
    """Count the running instances of each key, again and again, and keep the largest number of each."""
    most: Counter[tuple[str, str]] = Counter()

    async def sample() -> None:
        connection = await connect(url, "horai test")
        try:
            while True:
                for row in await connection.fetch(RUNNING):
                    key = (row["name"], row["concurrency_key"])
                    most[key] = max(most[key], row["running"])
        finally:
            connection.terminate()

    task = asyncio.create_task(sample())
    try:
        yield most
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def most_at_once(connection: Platform) -> Counter[tuple[str, str]]:
    """Return the largest number of runs of each key that lay over one another, by the times that the database has stored."""
    changes: dict[tuple[str, str], list[tuple[object, int]]] = {}
    for name, key, began, ended in await connection.fetch(INTERVALS):
        changes.setdefault((name, key), []).extend([(began, 1), (ended, -1)])
    found: Counter[tuple[str, str]] = Counter()
    for key, moments in changes.items():
        now = 0
        for _, change in sorted(moments, key=lambda each: (each[0], each[1])):
            now += change
            found[key] = max(found[key], now)
    return found


async def add(stage: Scene, job: str) -> None:
    client = await stage.app.client()
    payloads = [str(number) for number in range(CALLS)]
    settings = [CallSettings(f"customer-{number % KEYS}") for number in range(CALLS)]
    await client.enqueue_many(job, None, [payloads], settings=settings)


@pytest.mark.timeout(900 if IS_LONG else 240)
async def test_no_key_runs_more_than_its_limit_under_four_workers_that_are_killed(
    url: str, place: Path, connection: Platform
) -> None:
    dice = random.Random(7)
    async with scene(url, place, connection, CODE) as stage:
        workers = [await stage.worker(f"worker-{number}") for number in range(WORKERS)]
        await stage.until_declared("mail")
        async with sampled(url) as most:
            for number in range(ROUNDS):
                await add(stage, "charge")
                await add(stage, "mail")
                victim = await stage.busy_one(workers, dice)
                workers[victim].kill()
                workers[victim] = await stage.worker(f"worker-{WORKERS + number}")
            ended = await stage.until_final()
    assert ended == {name: Counter(SUCCESS=CALLS * ROUNDS) for name in LIMITS}
    overlapping = await most_at_once(connection)
    assert set(overlapping) == {(name, f"customer-{number}") for name in LIMITS for number in range(KEYS)}
    assert {key: n for key, n in overlapping.items() if n > LIMITS[key[0]]} == {}
    assert {key: n for key, n in most.items() if n > LIMITS[key[0]]} == {}
    assert max(n for (name, _), n in overlapping.items() if name == "mail") == 2  # the limit is used
    assert await connection.fetchval("select count(*) from horai.attempt where error_code = 'NODE_LOST'") > 0
