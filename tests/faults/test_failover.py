"""A primary that becomes silent, dies, is made read-only, or returns from an old timeline; its standby is promoted."""

import asyncio
import json
import os
import signal
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from harness import NodeProcess
from sizes import IS_LONG
from terminal import Terminal

from faults.outside import BUSY
from faults.replicas import Replicas, Server, caught_up, replicas

PROMISED = 5.0
"""Seconds from the promotion to the first write."""
FAR = "2999-01-01T00:00:00Z"
pytestmark = pytest.mark.usefixtures("postgres")
SOON = {} if IS_LONG else {"horai.db.pool.CONNECT_TIMEOUT": 3.0, "horai.db.watch.LOOK_AROUND_EVERY": 2}
"""Seconds for a connection, more than a silent host has, and looks at the host in use for one at the others."""
JOB = {"name": "probe", "target": {"type": "http", "url": "http://127.0.0.1:9/hook"}}


async def become_silent(cluster: Replicas) -> None:
    cluster.first_door.set_mode("blackhole")


async def refuse_connections(cluster: Replicas) -> None:
    await cluster.first.stop(signal.SIGQUIT)


async def become_read_only(cluster: Replicas) -> None:
    await cluster.first.execute("alter system set default_transaction_read_only = on")
    await cluster.first.execute("select pg_reload_conf()")


class Writer:
    """Puts one key after another over REST; requests are cut after a second, as impatient clients do."""

    def __init__(self, session: aiohttp.ClientSession, base: str) -> None:
        self._session = session
        self._base = base
        self._count = 0

    async def create_job(self) -> None:
        async with self._session.post(f"{self._base}/api/v1/jobs", json=JOB) as answer:
            assert answer.status == 201, await answer.text()

    async def put(self) -> bool:
        """Put the next key. Return true if it was acknowledged."""
        self._count += 1
        path = f"{self._base}/api/v1/jobs/probe/instances/key-{self._count}"
        limit = aiohttp.ClientTimeout(total=1)
        try:
            async with self._session.put(path, json={"executeTime": FAR}, timeout=limit) as answer:
                return answer.status == 201
        except (TimeoutError, aiohttp.ClientError):
            return False

    async def first_success(self, within: float) -> float:
        """Seconds until a put is acknowledged."""
        began = time.monotonic()
        async with asyncio.timeout(within):
            while not await self.put():
                await asyncio.sleep(0.05)
        return time.monotonic() - began


def node_of(cluster: Replicas, place: Path, state: Path) -> NodeProcess:
    home = place / f"failover-{os.urandom(3).hex()}"
    return NodeProcess(home, cluster.url, "--lease-ttl", "3s", "--grace", "1s", **environment(state))


def environment(state: Path) -> dict[str, str]:
    return {"HORAI_STATE_DIR": str(state), "HORAI_TEST_CONSTANTS": json.dumps(SOON)}


@asynccontextmanager
async def running(node: NodeProcess) -> AsyncGenerator[Writer]:
    try:
        await asyncio.to_thread(node.start)
        async with aiohttp.ClientSession() as session:
            yield Writer(session, node.base)
    except BaseException:
        print(node.log.read_text()[-6_000:])
        raise
    finally:
        await asyncio.to_thread(node.kill)


async def instances(server: Server) -> int:
    connection = await server.connect()
    try:
        return await connection.fetchval("select count(*) from horai.instance_live")
    finally:
        await connection.close()


async def incarnations(server: Server) -> int:
    connection = await server.connect()
    try:
        return await connection.fetchval("select count(*) from horai.node")
    finally:
        await connection.close()


@pytest.mark.parametrize("fail", [become_silent, refuse_connections, become_read_only])
async def test_writes_resume_within_5_s_of_the_promotion(
    fail: Callable[[Replicas], Awaitable[None]], short_place: Path, tmp_path: Path
) -> None:
    async with replicas(short_place) as cluster, running(node_of(cluster, short_place, tmp_path)) as writer:
        await writer.create_job()
        await writer.first_success(PROMISED + BUSY)
        await caught_up(cluster.first, cluster.second)

        await fail(cluster)
        await cluster.second.promote()
        took = await writer.first_success(PROMISED + BUSY)

        print(f"writes resumed {took:.2f} s after the promotion ({fail.__name__})")
        assert took <= PROMISED + BUSY
        assert await instances(cluster.second) >= 2


async def test_a_node_that_restarts_beside_an_old_primary_works_on_the_new_one_or_not_at_all(
    short_place: Path, tmp_path: Path
) -> None:
    async with replicas(short_place) as cluster:
        node = node_of(cluster, short_place, tmp_path)
        async with running(node) as writer:
            await writer.create_job()
            await caught_up(cluster.first, cluster.second)
            await cluster.first.stop(signal.SIGQUIT)
            await cluster.second.promote()
            await writer.first_success(PROMISED + BUSY)
        await cluster.first.start()  # writable again, on timeline 1
        before = (await instances(cluster.first), await incarnations(cluster.first))
        assert before[0] == 0

        async with running(node) as writer:
            await writer.first_success(PROMISED + BUSY)
        assert await instances(cluster.second) >= 2
        cluster.second_door.set_mode("blackhole")
        refused = await asyncio.to_thread(_start, cluster, tmp_path)

        assert refused.code == 1, refused.err
        assert "is on timeline 1 of the cluster" in refused.err
        assert "promoted to timeline 2" in refused.err
        assert "hint: Rebuild the old primary as a standby of the new one." in refused.err
        assert (await instances(cluster.first), await incarnations(cluster.first)) == before


def _start(cluster: Replicas, state: Path) -> Any:
    return Terminal()("node", "--port", "0", HORAI_DATABASE_URL=cluster.url, **environment(state))


async def test_a_node_without_a_memory_chooses_the_later_timeline_of_two_writable_servers(
    short_place: Path, tmp_path: Path
) -> None:
    async with replicas(short_place) as cluster:
        async with running(node_of(cluster, short_place, tmp_path / "first")) as writer:
            await writer.create_job()
        await caught_up(cluster.first, cluster.second)
        await cluster.second.promote()  # the first one goes on
        before = await incarnations(cluster.first)

        async with running(node_of(cluster, short_place, tmp_path / "other")) as writer:
            await writer.first_success(PROMISED + BUSY)

        assert (await instances(cluster.first), await incarnations(cluster.first)) == (0, before)
        assert await instances(cluster.second) >= 1


async def test_a_running_node_leaves_a_primary_that_goes_on_beside_a_promoted_one(
    short_place: Path, tmp_path: Path
) -> None:
    async with replicas(short_place) as cluster, running(node_of(cluster, short_place, tmp_path)) as writer:
        await writer.create_job()
        await caught_up(cluster.first, cluster.second)
        await cluster.second.promote()

        async with asyncio.timeout(30 + BUSY):
            while not await instances(cluster.second):
                await writer.put()
                await asyncio.sleep(0.1)
