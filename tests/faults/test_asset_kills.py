"""Assets under workers that are killed: each success updates once, and no update is lost."""

import json
import random
from pathlib import Path

import pytest
from sizes import IS_LONG

from faults.outside import until
from faults.scene import WITHIN, scene
from horai.db.pool import Platform

CODE = """
import asyncio
from horai import Horai, Instance, Retry

app = Horai("faults")
OFTEN = Retry(max=50, base="10ms", jitter="none")


@app.job(retry=OFTEN, produces=["sales"])
async def load(instance: Instance[int]) -> None:
    await asyncio.sleep(0.5)


@app.job(retry=OFTEN, when=["sales"])
async def report(instance: Instance) -> None:
    await asyncio.sleep(0.01)
"""
CALLS = 600 if IS_LONG else 60
ROUNDS = 5 if IS_LONG else 2


@pytest.fixture
def place(short_place: Path) -> Path:
    return short_place / "assets"


@pytest.mark.timeout(900 if IS_LONG else 240)
async def test_each_success_starts_a_report_once_while_workers_are_killed(
    url: str, place: Path, connection: Platform
) -> None:
    dice = random.Random(7)
    async with scene(url, place, connection, CODE) as stage:
        workers = [await stage.worker(f"worker-{number}") for number in range(2)]
        await stage.until_declared("report")
        for number in range(ROUNDS):
            await stage.add("load", list(range(CALLS)))
            victim = await stage.busy_one(workers, dice)
            workers[victim].kill()
            workers[victim] = await stage.worker(f"worker-{2 + number}")

        async def all_have_started() -> bool:
            told = "select count(*) from horai.asset_delivery where instance_id is not null"
            return await connection.fetchval(told) >= CALLS * ROUNDS

        await until(all_have_started, WITHIN, "every update has started a report")
        await stage.until_final()
    assert await connection.fetchval("select count(*) from horai.asset_update") == CALLS * ROUNDS
    rows = await connection.fetch(
        "select past.payload::text from horai.instance_history past join horai.job on job.id = past.job_id where job.name = 'report'"
    )
    named = [each["instance"] for row in rows for each in json.loads(row["payload"])["assets"]["sales"]]
    assert len(named) == len(set(named)) == CALLS * ROUNDS
