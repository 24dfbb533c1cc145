"""A job that may not overlap never does: over nodes that share its work, and over a kill of the one that runs it."""

import asyncio
import os
import random
from collections import Counter, defaultdict
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web
from harness import Client
from sizes import IS_LONG

from faults.cluster import Cluster, cluster
from faults.load import RETRY
from faults.outside import job_document, until, violations
from horai.db.pool import Platform

NODES = ("one", "two", "three") if IS_LONG else ("one", "two")
LEASE = 8.0 if IS_LONG else 2.0
KILLS = 8 if IS_LONG else 1
JOBS = 8 if IS_LONG else 3
"""Of each policy."""
CALLS = 60 if IS_LONG else 2
"""So many calls of each job between two kills."""
SEED = int(os.environ.get("HORAI_TEST_SEED") or random.SystemRandom().randrange(2**32))


class Doors:
    """A target with a door for each job: how often it was used, and how many were ever behind it at once."""

    def __init__(self) -> None:
        self.port = 0
        self.calls: Counter[str] = Counter()
        self.inside: Counter[str] = Counter()
        self.most: dict[str, int] = defaultdict(int)
        self.is_over = asyncio.Event()
        """Set when nothing more is to be learnt: each call ends at once."""
        self._dice = random.Random(SEED)

    async def _handle(self, request: web.Request) -> web.Response:
        job = request.match_info["job"]
        await request.read()
        self.calls[job] += 1
        self.inside[job] += 1
        self.most[job] = max(self.most[job], self.inside[job])
        try:
            with suppress(TimeoutError):
                await asyncio.wait_for(self.is_over.wait(), self._dice.choice([0.01, 0.3, 1.2, 2.2]))
        finally:
            self.inside[job] -= 1
        return web.Response()

    @asynccontextmanager
    async def open(self) -> AsyncGenerator["Doors"]:
        app = web.Application()
        app.router.add_post("/{job}", self._handle)
        runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=1.0)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        self.port = runner.addresses[0][1]
        try:
            yield self
        finally:
            await runner.cleanup()


async def declare(nodes: Cluster, session: aiohttp.ClientSession, port: int) -> list[str]:
    api = Client(next(iter(nodes.doors.values())), session)
    names = [f"{overlap}-{n}" for overlap in ("skip", "queue", "replace") for n in range(JOBS)]
    for name in names:
        fields = {"every": "1s", "overlap": name.split("-")[0], "timeout": "20s", "retry": RETRY}
        made = await api("POST", "/api/v1/jobs", job_document(name, f"http://127.0.0.1:{port}/{name}", **fields))
        assert made.status == 201, made.json
    return names


@pytest.mark.timeout(1200 if IS_LONG else 180)
async def test_slots_that_may_not_overlap_never_do_even_when_their_node_is_killed(
    short_place: Path, url: str, connection: Platform
) -> None:
    print(f"\nHORAI_TEST_SEED={SEED}")
    async with (
        Doors().open() as doors,
        cluster(short_place, url, *NODES, lease=LEASE) as nodes,
        aiohttp.ClientSession() as session,
    ):
        names = await declare(nodes, session, doors.port)
        for number in range(KILLS + 1):
            called = Counter(doors.calls)

            async def everyone_goes_on(before: Counter[str] = called) -> bool:
                return all(doors.calls[name] >= before[name] + CALLS for name in names)

            await until(everyone_goes_on, 300 if IS_LONG else 60, f"{CALLS} more calls of each job")
            if number < KILLS:
                victim = NODES[number % len(NODES)]
                await nodes.kill(victim)
                await nodes.start(victim)
        at_work: int = await connection.fetchval(
            "select coalesce(max(n), 0) from (select count(*) as n from horai.instance_live where state = 1 group by job_id) j"
        )
        found = await violations(connection)
        overlapped: int = await connection.fetchval("select count(*) from horai.instance_history where reason = 3")
        doors.is_over.set()
    held = {name: most for name, most in doors.most.items() if not name.startswith("replace")}
    assert set(held.values()) == {1}, held
    assert at_work <= 1
    assert found == []
    assert overlapped, "nothing ever met, and this proves nothing"
