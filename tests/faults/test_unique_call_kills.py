"""Unique calls from several processes that are killed: each argument has one instance, and never two live ones."""

import asyncio
import json
import random
import signal
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
from rows import until
from sizes import IS_LONG
from terminal import clean_environment
from working import working

from faults.scene import scene
from horai import Horai
from horai.db.pool import Platform

CALLER = """
import json, random, sys
from horai import Horai

seed, unique, numbers, rounds = json.loads(sys.argv[1])
app = Horai("shop")

@app.job
def charge(order: int) -> int:
    return order

once = charge.sync.options(unique=unique)
order = list(range(numbers)) * rounds
random.Random(seed).shuffle(order)
for number in order:
    handle = once.enqueue(number)
    print(json.dumps([number, handle.id, handle.duplicate]), flush=True)
"""
OVERLAPPING = """select count(*) from (
    select created_at < lag(finished_at) over (partition by payload::text order by created_at, id) as is_early
    from horai.instance_history) known where is_early"""
WORKING = """
import asyncio
from horai import Horai, Retry

app = Horai("faults")


@app.job(retry=Retry(max=20, base="10ms", jitter="none"))
async def charge(order: int) -> int:
    await asyncio.sleep(0.02)
    return order
"""
CALLS = 2_000 if IS_LONG else 300
KILLS = 8 if IS_LONG else 3
ORDERS = 5
PROCESSES = 4
KILLED_AFTER = (7, 13, 29)
"""The lines after which a process is killed, one after the other. The last process of a row runs to its end."""


@contextmanager
def calling(url: str, seed: int, unique: object, numbers: int, rounds: int) -> Generator[subprocess.Popen[str]]:
    environment = clean_environment() | {"HORAI_DATABASE_URL": url}
    given = json.dumps([seed, unique, numbers, rounds])
    process = subprocess.Popen(
        [sys.executable, "-c", CALLER, given], env=environment, stdout=subprocess.PIPE, text=True, bufsize=1
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait(30)
        assert process.stdout is not None
        process.stdout.close()


def call_and_kill(url: str, seed: int, unique: object, numbers: int, rounds: int) -> list[tuple[int, str, bool]]:
    """Run callers one after the other, kill all but the last of them, and return what they were answered."""
    told: list[tuple[int, str, bool]] = []
    for turn, lines in enumerate((*KILLED_AFTER, None)):
        with calling(url, seed * 10 + turn, unique, numbers, rounds) as process:
            assert process.stdout is not None
            for position, line in enumerate(process.stdout, 1):
                number, instance, is_duplicate = json.loads(line)
                told.append((number, instance, is_duplicate))
                if position == lines:
                    process.send_signal(signal.SIGKILL)
                    break
            else:
                assert process.wait(30) == 0
    return told


async def test_callers_that_are_killed_get_one_instance_for_each_argument(url: str, connection: Platform) -> None:
    rows = await asyncio.gather(
        *(asyncio.to_thread(call_and_kill, url, seed, "1h", 40, 2) for seed in range(PROCESSES))
    )

    answered: defaultdict[int, set[str]] = defaultdict(set)
    for number, instance, _ in (each for row in rows for each in row):
        answered[number].add(instance)
    stored = await connection.fetch("select id, payload::text as payload from horai.instance_live")
    assert {int(row["payload"]): {str(row["id"])} for row in stored} == answered
    assert len(stored) == len(answered) == 40
    assert sum(not is_duplicate for row in rows for _, _, is_duplicate in row) <= 40
    assert await connection.fetchval("select count(*) from horai.unique_call") == 40


async def test_two_live_instances_never_have_the_same_arguments(url: str, connection: Platform) -> None:
    app = Horai("shop", database_url=url)

    @app.job
    def charge(order: int) -> int:
        return order

    async with working(app):
        rows = await asyncio.gather(
            *(asyncio.to_thread(call_and_kill, url, seed, True, 5, 30) for seed in range(PROCESSES))
        )

        async def is_drained() -> bool:
            return not await connection.fetchval("select exists (select from horai.instance_live)")

        await until(is_drained)
    assert charge.name == "charge"
    assert await connection.fetchval(OVERLAPPING) == 0
    ran = {str(row["id"]) for row in await connection.fetch("select id from horai.instance_history where state = 2")}
    assert {instance for row in rows for _, instance, _ in row} <= ran
    assert len(ran) > 5


@pytest.mark.timeout(900 if IS_LONG else 240)
async def test_two_live_instances_never_have_the_same_arguments_while_four_workers_are_killed(
    url: str, short_place: Path, connection: Platform
) -> None:
    dice, created = random.Random(3), set[str]()
    async with scene(url, short_place / "unique", connection, WORKING) as stage:

        @stage.app.job
        async def charge(order: int) -> int:
            return order

        async def call(seed: int) -> None:
            chosen = random.Random(seed)
            for _ in range(CALLS):
                handle = await charge.options(unique=True).enqueue(chosen.randrange(ORDERS))
                if not handle.duplicate:
                    created.add(handle.id)

        workers = [await stage.worker(f"worker-{number}") for number in range(PROCESSES)]
        await stage.until_declared("charge")
        calls = [asyncio.create_task(call(seed)) for seed in range(PROCESSES)]
        try:
            for number in range(KILLS):
                await charge.enqueue(ORDERS + number)  # never without work for a victim
                victim = await stage.busy_one(workers, dice)
                workers[victim].kill()
                workers[victim] = await stage.worker(f"worker-{PROCESSES + number}")
            await asyncio.gather(*calls)
        finally:
            for each in calls:
                each.cancel()
            await asyncio.gather(*calls, return_exceptions=True)
        ended = await stage.until_final()

    assert ended == {"charge": Counter(SUCCESS=len(created) + KILLS)}
    assert await connection.fetchval(OVERLAPPING) == 0
    assert len(created) > ORDERS
    assert await connection.fetchval("select count(*) from horai.attempt where error_code = 'NODE_LOST'") > 0
