"""kill -9 of workers in the middle of chains and chords: each run ends once, with the result of an undisturbed one."""

import random
from pathlib import Path

import pytest
from sizes import IS_LONG

from faults.scene import WITHIN, scene
from horai import chain, chord, group
from horai.db.pool import Platform

CODE = """
import asyncio
from horai import Horai, Retry

app = Horai("faults")
OFTEN = Retry(max=20, base="10ms", jitter="none")


@app.job(retry=OFTEN)
async def square(n: int) -> int:
    await asyncio.sleep(0.05)
    return n * n


@app.job(retry=OFTEN)
async def add(numbers: list[int], more: int = 0) -> int:
    await asyncio.sleep(0.02)
    return sum(numbers) + more
"""
RUNS = 40 if IS_LONG else 8
WORKERS = 3
KILLS = 2
GROUP = 60
TOTAL = sum(n * n for n in range(GROUP))


@pytest.mark.timeout(900 if IS_LONG else 240)
async def test_compositions_end_with_their_results_while_workers_are_killed(
    url: str, short_place: Path, connection: Platform
) -> None:
    dice = random.Random(7)
    async with scene(url, short_place / "composed", connection, CODE) as stage:

        @stage.app.job
        async def square(n: int) -> int:
            return n * n

        @stage.app.job
        async def add(numbers: list[int], more: int = 0) -> int:
            return sum(numbers) + more

        workers = [await stage.worker(f"worker-{number}", "--concurrency", "4") for number in range(WORKERS)]
        await stage.until_declared("add")
        chords = [
            await chord(group(square.s(n) for n in range(GROUP)), add.s(more=number)).enqueue()
            for number in range(RUNS)
        ]
        chains = [await chain(square.s(number), square.s(), square.s()).enqueue() for number in range(RUNS)]
        for _ in range(KILLS):
            workers.pop(await stage.busy_one(workers, dice)).kill()
        for number in range(KILLS):
            await stage.worker(f"late-{number}")
        assert [await run.result(WITHIN) for run in chords] == [TOTAL + number for number in range(RUNS)]
        assert [await run.result(WITHIN) for run in chains] == [number**8 for number in range(RUNS)]
        assert {await run.wait(WITHIN) for run in (*chords, *chains)} == {"SUCCESS"}
        await stage.until_final()
    nodes = await connection.fetch(
        "select run_id, name, count(*) as times from horai.workflow_node group by 1, 2 having count(*) > 1"
    )
    assert nodes == [], "each call was made once"
    assert await connection.fetchval("select count(*) from horai.attempt where error_code = 'NODE_LOST'") > 0
