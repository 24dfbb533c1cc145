"""Faults between a function and its worker, both ways: nothing is lost, and neighbours are not harmed."""

import asyncio
import signal
from collections import Counter
from pathlib import Path

import pytest
from sizes import IS_LONG

from faults.outside import until
from faults.scene import WITHIN, scene
from horai.db.pool import Platform

BLOCKED = 15.0 if IS_LONG else 4.0
NEIGHBOURS = 2_000 if IS_LONG else 200
ROUNDS = 5 if IS_LONG else 1

CODE = f"""
import asyncio, os, resource, signal, time
from pathlib import Path
from horai import Horai, Instance, Retry

app = Horai("faults")
QUICK = Retry(max=2, base="10ms", jitter="none")


@app.job(retry=Retry(max=20, base="10ms", jitter="none"))
async def steady(instance: Instance[int]) -> int:
    await asyncio.sleep(0.05)
    return instance.payload


@app.job(retry=Retry(max=20, base="10ms", jitter="none"))
async def told() -> None:
    Path(__file__).with_name(f"begun-{{os.getpid()}}").touch()
    await asyncio.sleep(1)


@app.job(retry=Retry(max=20, base="10ms", jitter="none"))
async def orders(instance: Instance[int]) -> None:
    await steady.enqueue(0)
    await steady.enqueue_many(list(range(instance.payload)))
    await asyncio.sleep(0.2)


@app.job
async def blocks() -> str:
    time.sleep({BLOCKED})
    return "awake"


@app.job(retry=QUICK, isolation="process")
def devours() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (2**30, 2**30))
    kept = []
    while True:
        kept.append(bytearray(2**24))


@app.job(retry=QUICK, isolation="process")
def killed() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@app.job(retry=QUICK, isolation="process", timeout="500ms")
def hangs() -> None:
    while True:
        pass
"""


@pytest.fixture
def place(short_place: Path, request: pytest.FixtureRequest) -> Path:
    return short_place / f"worker-{abs(hash(request.node.nodeid))}"


async def test_a_killed_workers_instances_are_run_by_another(url: str, place: Path, connection: Platform):
    async with scene(url, place, connection, CODE) as stage:
        await stage.worker("stays")
        for number in range(ROUNDS):
            victim = await stage.worker(f"victim-{number}")
            await stage.add("steady", list(range(NEIGHBOURS)))
            await until(victim.has_work(connection), WITHIN, "the victim runs something")
            victim.kill()
        ended = await stage.until_final()
    assert ended == {"steady": Counter(SUCCESS=NEIGHBOURS * ROUNDS)}
    assert await connection.fetchval("select count(*) from horai.attempt where error_code = 'NODE_LOST'") > 0


AT_BIRTH = """
    select exists (select from horai.instance_live live join horai.node on node.incarnation = live.node
    where node.name like 'victim%' and live.state = 1 and live.claimed_at <= live.created_at)
"""


async def test_instances_that_a_killed_worker_had_claimed_at_birth_are_run_by_another(
    url: str, place: Path, connection: Platform
):
    async with scene(url, place, connection, CODE) as stage:
        for number in range(ROUNDS):
            victim = await stage.worker(f"victim-{number}")
            await stage.add("orders", [NEIGHBOURS])
            await until(lambda: connection.fetchval(AT_BIRTH), WITHIN, "the victim runs what it has added itself")
            victim.kill()
        await stage.worker("stays")
        ended = await stage.until_final()
    assert ended["orders"] == Counter(SUCCESS=ROUNDS)
    # The function that adds is run again after the kill; each instance that it added runs to its end.
    assert set(ended["steady"]) == {"SUCCESS"}
    assert ended["steady"]["SUCCESS"] >= NEIGHBOURS * ROUNDS
    lost = "select count(*) from horai.attempt a join horai.job j on j.id = a.job_id where error_code = 'NODE_LOST' and j.name = 'steady'"
    assert await connection.fetchval(lost) > 0


async def test_a_frozen_workers_results_come_too_late(url: str, place: Path, connection: Platform):
    async with scene(url, place, connection, CODE) as stage:
        await stage.worker("stays")
        frozen = await stage.worker("frozen")
        begun = place / f"begun-{frozen.pid}"
        for _ in range(ROUNDS):
            begun.unlink(missing_ok=True)
            await stage.add("told", [None] * NEIGHBOURS)
            await until(lambda: asyncio.to_thread(begun.exists), WITHIN, "a function of the victim has begun")
            frozen.signal(signal.SIGSTOP)
            await until(frozen.is_rescued(connection), WITHIN, "its work is given to others")
            frozen.signal(signal.SIGCONT)
        ended = await stage.until_final()
        late = "select count(*) from horai.attempt where late"
        await until(lambda: connection.fetchval(f"select ({late}) > 0"), WITHIN, "late results kept")
    assert ended == {"told": Counter(SUCCESS=NEIGHBOURS * ROUNDS)}


async def test_a_function_that_blocks_the_loop_loses_nothing(url: str, place: Path, connection: Platform):
    async with scene(url, place, connection, CODE) as stage:
        await stage.worker("blocked")
        await stage.add("blocks", [None])
        await stage.add("steady", list(range(20)))
        ended = await stage.until_final()
    assert ended == {"blocks": Counter(SUCCESS=1), "steady": Counter(SUCCESS=20)}
    assert await connection.fetchval("select max(attempt) from horai.instance_history") == 1


@pytest.mark.parametrize(
    ("job", "codes"),
    [("devours", {"MemoryError", "PROCESS_DIED"}), ("killed", {"PROCESS_DIED"}), ("hangs", {"TIMEOUT"})],
)
async def test_an_isolated_function_costs_its_own_instance_and_nothing_else(
    url: str, place: Path, connection: Platform, job: str, codes: set[str]
):
    async with scene(url, place, connection, CODE) as stage:
        worker = await stage.worker("isolating")
        await stage.add(job, [None])
        await stage.add("steady", list(range(NEIGHBOURS)))
        ended = await stage.until_final()
        assert worker.is_alive
    assert ended == {job: Counter(DEAD=1), "steady": Counter(SUCCESS=NEIGHBOURS)}
    assert await connection.fetchval("select error_code from horai.dead_letter") in codes
    assert await connection.fetchval("select count(*) from horai.attempt where error_code = 'NODE_LOST'") == 0
    assert (
        await connection.fetchval(
            "select max(attempt) from horai.instance_history h join horai.job j on j.id = h.job_id where j.name = 'steady'"
        )
        == 1
    )


async def test_a_worker_that_is_told_to_stop_leaves_nothing_running(url: str, place: Path, connection: Platform):
    async with scene(url, place, connection, CODE) as stage:
        worker = await stage.worker("leaving")
        await stage.add("steady", list(range(NEIGHBOURS)))
        await until(worker.has_work(connection), WITHIN, "it runs something")
        assert await asyncio.to_thread(worker.stop) == 0
        assert await connection.fetchval("select count(*) from horai.instance_live where state = 1") == 0
        await stage.worker("next")
        ended = await stage.until_final()
    assert ended == {"steady": Counter(SUCCESS=NEIGHBOURS)}
    assert await connection.fetchval("select count(*) from horai.attempt") == 0


async def test_C40_workers_are_added_and_removed_under_load_and_nothing_is_lost_or_repeated(
    url: str, place: Path, connection: Platform
):
    async with scene(url, place, connection, CODE) as stage:
        running = [await stage.worker("first")]
        for number in range(ROUNDS + 1):
            await stage.add("told", [None] * NEIGHBOURS)
            running.append(await stage.worker(f"added-{number}"))
            await stage.add("told", [None] * NEIGHBOURS)
            await until(running[-1].has_work(connection), WITHIN, "the added worker takes a part of the load")
            leaving = running.pop(0)
            assert await asyncio.to_thread(leaving.stop) == 0
        ended = await stage.until_final()
    assert ended == {"told": Counter(SUCCESS=2 * NEIGHBOURS * (ROUNDS + 1))}
    assert await connection.fetchval("select count(*) from horai.attempt") == 0
    assert await connection.fetchval("select count(*) from horai.instance_history where attempt <> 1") == 0
    assert await connection.fetchval("select count(distinct node) from horai.instance_history") >= ROUNDS + 1
