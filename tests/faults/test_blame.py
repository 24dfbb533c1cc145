"""A lost attempt is not a failure: of all that ran beside a crash, only the function that caused it becomes a dead letter."""

from collections import Counter
from pathlib import Path

import pytest
from sizes import IS_LONG

from faults.outside import until
from faults.scene import WITHIN, Scene, scene
from horai.db.pool import Platform

KILLS = 10 if IS_LONG else 3
WAITING = 30 if IS_LONG else 2
BESIDE = 60
PLACES = 40
"""Of each of two processes: neither has room for all, so that each runs some of them when one is killed."""

CODE = """
import asyncio, os
from pathlib import Path
from horai import Horai, Instance, Retry

app = Horai("faults")
OPEN = Path(__file__).with_name("open")


@app.job(retry=Retry(max=0, base="10ms", cap="1s"))
async def waits() -> None:
    while not OPEN.exists():
        await asyncio.sleep(0.05)


@app.job(retry=Retry(max=0))
async def innocent(instance: Instance[int]) -> int:
    while not OPEN.exists():
        await asyncio.sleep(0.05)
    await asyncio.sleep(0.3)
    return instance.payload


@app.job(retry=Retry(max=2, base="10ms", cap="1s", jitter="none"))
async def kills() -> None:
    OPEN.touch()
    os._exit(7)


@app.job(retry=Retry(max=0, base="10ms", cap="1s", max_lost=3))
async def kills_parent(instance: Instance[int]) -> None:
    if instance.attempt <= 2:
        os._exit(7)
    os.kill(os.getppid(), 9)
    await asyncio.sleep(60)
"""


@pytest.fixture
def place(short_place: Path, request: pytest.FixtureRequest) -> Path:
    return short_place / f"blame-{abs(hash(request.node.nodeid))}"


async def test_B17_a_node_in_a_crash_loop_sends_no_innocent_instance_to_the_dead_letters(
    url: str, place: Path, connection: Platform
):
    """Every instance runs, or waits in line to run alone, at every kill: each is lost as often as the node."""
    async with scene(url, place, connection, CODE) as stage:
        for kill in range(KILLS):
            victim = await stage.worker(f"victim-{kill}")
            if kill == 0:
                await stage.add("waits", [None] * WAITING)
            await _until_run(stage, WAITING, f"victim-{kill}")
            victim.kill()
        (place / "open").touch()
        await stage.worker("stays")
        ended = await stage.until_final()
    assert ended == {"waits": Counter(SUCCESS=WAITING)}
    assert await connection.fetchval("select max(retry_count) from horai.instance_history") == 0
    assert await connection.fetchval("select count(*) from horai.attempt where outcome = 'LOST'") == KILLS * WAITING


async def test_B17_of_sixty_one_instances_on_a_worker_only_the_one_that_kills_it_becomes_a_dead_letter(
    url: str, place: Path, connection: Platform
):
    async with scene(url, place, connection, CODE) as stage:
        await stage.worker("guarded", "--processes", "2", "--concurrency", str(PLACES))
        await stage.until_declared("kills")
        await stage.add("innocent", list(range(BESIDE)))
        await _until_run(stage, BESIDE)
        await stage.add("kills", [None])
        ended = await stage.until_final()
    assert ended == {"kills": Counter(DEAD=1), "innocent": Counter(SUCCESS=BESIDE)}
    tried = await _outcomes(connection, "kills")
    assert tried == ["LOST", "LOST", "FAIL", "FAIL", "DEAD"], "two losses, then alone: each death is its own failure"
    letter = await connection.fetchrow("select error_code, tags from horai.dead_letter")
    assert letter is not None
    assert (letter["error_code"], letter["tags"]) == ("PROCESS_DIED", ["transient_error", "crash_loop"])
    beside = await _outcomes(connection, "innocent")
    assert beside.count("LOST") == len(beside) > 0, "some ran beside the crash, and none failed"


async def test_B17_a_function_that_kills_its_worker_even_when_it_runs_alone_becomes_a_dead_letter_by_maxLost(
    url: str, place: Path, connection: Platform
):
    async with scene(url, place, connection, CODE) as stage:
        await stage.worker("guarded", "--processes", "2")
        await stage.until_declared("kills_parent")
        await stage.add("kills_parent", [0])
        ended = await stage.until_final()
    assert ended == {"kills_parent": Counter(DEAD=1)}
    assert await _outcomes(connection, "kills_parent") == ["LOST"] * 4
    letter = await connection.fetchrow("select error_code, tags from horai.dead_letter")
    assert letter is not None
    assert (letter["error_code"], letter["tags"]) == ("NODE_LOST", ["transient_error", "crash_loop"])


async def _until_run(stage: Scene, count: int, worker: str | None = None) -> None:
    async def look() -> bool:
        return await stage.connection.fetchval(
            "select count(*) = $1 from horai.instance_live live join horai.node on node.incarnation = live.node"
            " where live.state = 1 and ($2::text is null or node.name = $2)",
            count,
            worker,
        )

    await until(look, WITHIN, f"{count} instances run")


async def _outcomes(connection: Platform, job: str) -> list[str]:
    rows = await connection.fetch(
        "select outcome from horai.attempt join horai.job on job.id = attempt.job_id"
        " where job.name = $1 and not late order by attempt.attempt",
        job,
    )
    return [row["outcome"] for row in rows]
