"""Faults between a server and its remote workers: nothing is lost, and only work in flight is done again."""

import asyncio
import os
import signal
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from harness import Client, HoraiProcess, NodeProcess
from sizes import IS_LONG

from faults.outside import until, violations
from horai.db.pool import Platform

INSTANCES = 2_000 if IS_LONG else 200
CREDITS = 8
WITHIN = 60.0
LEASE = "2s"

HISTORY = """
select id, state, attempt, retry_count, (
    select count(*) from horai.attempt where instance_id = history.id and error_code = 'NODE_LOST'
) as lost from horai.instance_history history order by id
"""

CODE = """
import asyncio, os
from pathlib import Path
from horai import Horai, Instance

app = Horai("remote")
HERE = Path(__file__).parent


@app.job
async def steady(instance: Instance[int]) -> int:
    with (HERE / "diary").open("a") as diary:
        diary.write(f"{instance.id} {instance.fence} {os.getpid()}\\n")
    await asyncio.sleep(0.05)
    return instance.payload


@app.job
async def held(instance: Instance[None]) -> str:
    with (HERE / "diary").open("a") as diary:
        diary.write(f"{instance.id} {instance.fence} {os.getpid()}\\n")
    while not (HERE / "go").exists():
        await asyncio.sleep(0.01)
    return "held"
"""


class RemoteProcess(HoraiProcess):
    """`horai worker remote --server URL` in a process that can be frozen and killed. It knows no database."""

    def __init__(self, place: Path, name: str, *servers: str, slots: int = CREDITS) -> None:
        super().__init__(place / name, PYTHONPATH=str(place))
        flags = [part for server in servers for part in ("--server", server)]
        self._arguments = ("worker", "remote", "--name", name, "--concurrency", str(slots), *flags)

    def signal(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)


class RemoteScene:
    """A database with servers and remote workers, which end with the test."""

    def __init__(self, url: str, place: Path, connection: Platform, session: aiohttp.ClientSession) -> None:
        self.place, self._url, self._connection, self._session = place, url, connection, session
        self._started: list[HoraiProcess] = []
        self.api = Client("", session)
        self.jobs: dict[str, Any] = {}

    async def server(self, name: str, lease: str = LEASE) -> NodeProcess:
        node = NodeProcess(self.place / name, self._url, "--lease-ttl", lease)
        await self._start(node)
        self.api = Client(node.base, self._session)
        return node

    async def worker(self, name: str, *servers: HoraiProcess, slots: int = CREDITS) -> RemoteProcess:
        worker = RemoteProcess(self.place, name, *(server.base for server in servers), slots=slots)
        await self._start(worker)
        return worker

    async def _start(self, process: HoraiProcess) -> None:
        await asyncio.to_thread(process.start)
        self._started.append(process)

    async def job(self, function: str) -> None:
        target = {"type": "worker", "handler": function}
        retry = {"maxRetry": 0, "maxLost": 20, "base": "10ms", "jitter": "none"}
        made = await self.api("POST", "/api/v1/jobs", {"name": function, "target": target, "retry": retry})
        assert made.status == 201, made.json

    async def add(self, function: str, count: int) -> None:
        items = [{"executeTime": "2020-01-01T00:00:00Z", "payload": number} for number in range(count)]
        reply = await self.api("POST", f"/api/v1/jobs/{function}/instances/batch", {"items": items})
        assert reply.status == 200, reply.json

    @property
    def begun(self) -> list[tuple[int, int, int]]:
        """The calls that functions have begun: instance, fence and process."""
        diary = self.place / "diary"
        lines = diary.read_text().splitlines() if diary.exists() else []
        return [tuple(map(int, line.split())) for line in lines]  # pyright: ignore

    async def until_final(self, count: int) -> list[Any]:
        """The instances of the history, once all are there."""

        async def final() -> bool:
            return await self._connection.fetchval("select count(*) from horai.instance_history") == count

        await until(final, WITHIN, "every instance is final")
        rows = await self._connection.fetch(HISTORY)
        return [dict(row) for row in rows]

    def end(self) -> None:
        for process in self._started:
            if process._process is not None and process._process.poll() is None:
                os.kill(process.pid, signal.SIGCONT)
                process.kill()


@pytest.fixture
def place(short_place: Path, request: pytest.FixtureRequest) -> Path:
    made = short_place / f"remote-{abs(hash(request.node.nodeid))}"
    made.mkdir()
    (made / "remote.py").write_text(CODE)
    return made


@asynccontextmanager
async def scene(url: str, place: Path, connection: Platform) -> AsyncGenerator[RemoteScene]:
    async with aiohttp.ClientSession() as session:
        made = RemoteScene(url, place, connection, session)
        try:
            yield made
        finally:
            made.end()
    assert not await violations(connection)


def again(rows: list[Any]) -> list[Any]:
    """The instances that were run more than once."""
    return [row for row in rows if row["attempt"] > 1]


async def test_a_killed_workers_calls_are_run_by_another_and_nothing_else_twice(
    url: str, place: Path, connection: Platform
):
    async with scene(url, place, connection) as stage:
        server = await stage.server("server")
        await stage.job("steady")
        victim = await stage.worker("victim", server)
        await stage.worker("stays", server)
        await stage.add("steady", INSTANCES)
        await until(lambda: _is(_of(stage, victim) >= CREDITS), WITHIN, "the victim runs something")
        victim.kill()
        rows = await stage.until_final(INSTANCES)
    assert Counter(row["state"] for row in rows) == {2: INSTANCES}
    assert len(again(rows)) <= CREDITS
    assert all((row["lost"], row["retry_count"]) == (1, 0) for row in again(rows))
    assert max(Counter(instance for instance, _, _ in stage.begun).values()) <= 2


async def test_a_frozen_workers_calls_run_elsewhere_and_it_begins_nothing_when_it_wakes(
    url: str, place: Path, connection: Platform
):
    """Half of its leases have begun; the other half are still in its socket when it is frozen."""
    running = "select count(*) from horai.instance_live where state = 1"
    late = "select count(*) from horai.attempt where late"
    async with scene(url, place, connection) as stage:
        server = await stage.server("server", lease="6s")
        await stage.job("held")
        frozen = await stage.worker("frozen", server, slots=2 * CREDITS)
        await stage.add("held", CREDITS)
        await until(lambda: _is(len(stage.begun) == CREDITS), WITHIN, "the worker runs the first half")
        frozen.signal(signal.SIGSTOP)
        await stage.add("held", CREDITS)
        await until(
            lambda: _counts(connection, running, 2 * CREDITS, 0), WITHIN, "the second half is leased, or all is lost"
        )
        is_leased = await connection.fetchval(running) == 2 * CREDITS
        await stage.worker("stays", server, slots=2 * CREDITS)
        (stage.place / "go").touch()
        rows = await stage.until_final(2 * CREDITS)
        frozen.signal(signal.SIGCONT)
        await until(lambda: _counts(connection, late, CREDITS), WITHIN, "its late reports are kept")
        after = await stage.until_final(2 * CREDITS)
    lost = 2 * CREDITS if is_leased else CREDITS  # on a slow machine its silence is noticed before the second half
    expected = Counter({(2, 2, 1): lost, (2, 1, 0): 2 * CREDITS - lost})
    assert Counter((row["state"], row["attempt"], row["lost"]) for row in rows) == expected
    assert Counter(Counter(instance for instance, _, _ in stage.begun).values()) == {2: CREDITS, 1: CREDITS}
    assert (after, _of(stage, frozen)) == (rows, CREDITS)


async def test_workers_of_a_killed_server_go_on_with_another_server(url: str, place: Path, connection: Platform):
    async with scene(url, place, connection) as stage:
        first = await stage.server("first")
        second = await stage.server("second")
        await stage.job("steady")
        await stage.worker("mover", first, second)
        await stage.add("steady", INSTANCES)
        await until(lambda: _is(len(stage.begun) >= CREDITS), WITHIN, "the worker runs something")
        first.kill()
        rows = await stage.until_final(INSTANCES)
    assert Counter(row["state"] for row in rows) == {2: INSTANCES}
    assert all(row["lost"] == row["attempt"] - 1 for row in rows)
    assert max(Counter(instance for instance, _, _ in stage.begun).values()) <= 2


async def test_a_call_whose_server_is_frozen_is_settled_once(url: str, place: Path, connection: Platform):
    async with scene(url, place, connection) as stage:
        first = await stage.server("first")
        await stage.job("held")
        second = await stage.server("second")
        await stage.worker("mover", first, second)
        await stage.add("held", 1)
        await until(lambda: _is(len(stage.begun) == 1), WITHIN, "the call has begun")
        first.signal(signal.SIGSTOP)
        (stage.place / "go").touch()
        rows = await stage.until_final(1)
        first.signal(signal.SIGCONT)
        await stage.add("held", 1)
        after = await stage.until_final(2)
    assert [row["state"] for row in rows] == [2]
    assert rows[0] in after


async def _is(value: bool) -> bool:
    return value


async def _counts(connection: Platform, query: str, *counts: int) -> bool:
    return await connection.fetchval(query) in counts


def _of(stage: RemoteScene, worker: HoraiProcess) -> int:
    return sum(pid == worker.pid for _, _, pid in stage.begun)
