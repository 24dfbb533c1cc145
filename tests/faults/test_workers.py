"""What a function does to its worker, and a worker to its functions: nothing is lost, and neighbours are not harmed."""

import asyncio
import signal
from collections import Counter
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import harness
from faults.outside import IS_LONG, until, violations
from faults.worker_process import WorkerProcess
from harness import FAST
from horai import Horai
from horai.db.pool import Dedicated

LEASE = 8.0 if IS_LONG else 2.0
BLOCKED = 15.0 if IS_LONG else 5.0
NEIGHBOURS = 2_000 if IS_LONG else 200
ROUNDS = 5 if IS_LONG else 1
WITHIN = 300.0 if IS_LONG else 60.0

CODE = f"""
import asyncio, os, resource, signal, time
from horai import Horai, Instance, Retry

app = Horai("faults")
QUICK = Retry(max=2, base="10ms", jitter="none")


@app.job(retry=Retry(max=20, base="10ms", jitter="none"))
async def steady(instance: Instance[int]) -> int:
    await asyncio.sleep(0.05)
    return instance.payload


@app.job(retry=QUICK)
async def leaves() -> None:
    os._exit(7)


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


class Scene:
    """A node that schedules and rescues, workers, and a client."""

    def __init__(self, url: str, place: Path, stack: AsyncExitStack, connection: Dedicated) -> None:
        self._url = url
        self._place = place
        self._stack = stack
        self.connection = connection
        self.app = Horai("faults", database_url=url)
        (place / "poisoned.py").write_text(CODE)

    async def worker(self, name: str, *flags: str) -> WorkerProcess:
        """Started, and not left behind. Meanwhile the node of this process goes on."""
        made = WorkerProcess(self._place, name, self._url, "poisoned:app", "--lease-ttl", f"{LEASE:g}s", *flags)
        self._stack.callback(made.end)
        return await asyncio.to_thread(made.start)

    async def add(self, job: str, payloads: list[Any]) -> list[int]:
        """Instances of a job that a worker has declared."""
        client = await self.app.client()
        return await client.enqueue_many(job, None, [[None if p is None else str(p) for p in payloads]])

    async def until_final(self) -> Mapping[str, Counter[str]]:
        """How each job's instances ended, once all have."""

        async def nothing_is_live() -> bool:
            return not await self.connection.fetchval("select exists (select from horai.instance_live)")

        await until(nothing_is_live, WITHIN, "nothing live")
        assert not await violations(self.connection)
        found: dict[str, Counter[str]] = {}
        for row in await self.connection.fetch(
            "select job.name, i.state, count(*) as n from horai.job_instance i join horai.job on job.id = i.job_id group by 1, 2"
        ):
            found.setdefault(row["name"], Counter())[row["state"]] = row["n"]
        return found


@asynccontextmanager
async def scene(url: str, place: Path, connection: Dedicated) -> AsyncGenerator[Scene]:
    place.mkdir()
    async with AsyncExitStack() as stack, harness.node(url, FAST):
        made = Scene(url, place, stack, connection)
        stack.push_async_callback(made.app.close)
        yield made


@pytest.fixture
def place(short_place: Path, request: pytest.FixtureRequest) -> Path:
    return short_place / f"worker-{abs(hash(request.node.nodeid))}"


async def test_a_killed_workers_instances_are_run_by_another(url: str, place: Path, connection: Dedicated):
    async with scene(url, place, connection) as stage:
        await stage.worker("stays")
        for number in range(ROUNDS):
            victim = await stage.worker(f"victim-{number}")
            await stage.add("steady", list(range(NEIGHBOURS)))
            await until(victim.has_work(connection), WITHIN, "the victim runs something")
            victim.kill()
        ended = await stage.until_final()
    assert ended == {"steady": Counter(SUCCESS=NEIGHBOURS * ROUNDS)}
    assert await connection.fetchval("select count(*) from horai.attempt where error_code = 'NODE_LOST'") > 0


async def test_a_frozen_workers_results_come_too_late(url: str, place: Path, connection: Dedicated):
    async with scene(url, place, connection) as stage:
        await stage.worker("stays")
        frozen = await stage.worker("frozen")
        for _ in range(ROUNDS):
            await stage.add("steady", list(range(NEIGHBOURS)))
            await until(frozen.has_work(connection), WITHIN, "the victim runs something")
            frozen.signal(signal.SIGSTOP)
            await until(frozen.is_rescued(connection), WITHIN, "its work is given to others")
            frozen.signal(signal.SIGCONT)
        ended = await stage.until_final()
        late = "select count(*) from horai.attempt where late"
        await until(lambda: connection.fetchval(f"select ({late}) > 0"), WITHIN, "late results kept")
    assert ended == {"steady": Counter(SUCCESS=NEIGHBOURS * ROUNDS)}


async def test_a_function_that_ends_its_worker_becomes_a_dead_letter(url: str, place: Path, connection: Dedicated):
    async with scene(url, place, connection) as stage:
        await stage.worker("guarded", "--processes", "2")
        await until(
            lambda: connection.fetchval("select exists (select from horai.job where name = 'leaves')"), WITHIN, "jobs"
        )
        await stage.add("leaves", [None])
        await stage.add("steady", list(range(NEIGHBOURS)))
        ended = await stage.until_final()
    assert ended == {"leaves": Counter(DEAD=1), "steady": Counter(SUCCESS=NEIGHBOURS)}
    letter = await connection.fetchrow("select error_code, tags from horai.dead_letter")
    assert letter is not None
    assert letter["error_code"] == "NODE_LOST"
    assert "crash_loop" in letter["tags"]


async def test_a_function_that_blocks_the_loop_loses_nothing(url: str, place: Path, connection: Dedicated):
    async with scene(url, place, connection) as stage:
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
    url: str, place: Path, connection: Dedicated, job: str, codes: set[str]
):
    async with scene(url, place, connection) as stage:
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


async def test_a_worker_that_is_told_to_stop_leaves_nothing_running(url: str, place: Path, connection: Dedicated):
    async with scene(url, place, connection) as stage:
        worker = await stage.worker("leaving")
        await stage.add("steady", list(range(NEIGHBOURS)))
        await until(worker.has_work(connection), WITHIN, "it runs something")
        assert await asyncio.to_thread(worker.stop) == 0
        assert await connection.fetchval("select count(*) from horai.instance_live where state = 1") == 0
        await stage.worker("next")
        ended = await stage.until_final()
    assert ended == {"steady": Counter(SUCCESS=NEIGHBOURS)}
    assert await connection.fetchval("select count(*) from horai.attempt") == 0
