"""Punctuality by path: a row starts at its time by any path that adds it, with notifications and without them.

Each path has jobs of its own, so that no row is found because another one of its lane is looked at. One worker hears
every notification. The other hears its own heartbeat and nothing else: it has no reason to think that it is deaf.
"""

import asyncio
import re
import statistics
import subprocess
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

import harness
import pytest
from callers import KINDS, Opening
from harness import Client
from sizes import IS_LONG
from working import working

from faults.proxy import Proxy
from horai import Horai
from horai.core.put import PutOptions
from horai.core.settings import EngineSettings
from horai.core.shards import Role
from horai.core.wakes import is_beat
from horai.db import caller_transaction
from horai.db.pool import Platform
from horai.sdk.job import Job

OFFSETS = (5.5, 17.0, 29.0, 33.0, 45.0, 62.0, 90.0, 120.0) if IS_LONG else (5.5, 14.0, 28.0, 31.0, 32.0)
"""Seconds from now to the due times of one path's rows. Rows due later than 30 s are sent without a notification by SQL."""
EARS = {"heard": 1.0, "deaf": 2.0}
"""The workers, and the seconds that a row of theirs may be late."""
LATER = timedelta(hours=1)
PUT = "select horai.put_instance($1, $2, $3)"

Add = Callable[[str, str, datetime], Awaitable[object]]
"""Adds the instance of a key to a job, due at a time."""

OTHER_PROCESS = """
import asyncio, sys
from datetime import UTC, datetime, timedelta
from horai import Horai

async def main(url, job, *offsets):
    async with Horai("elsewhere", database_url=url) as app:
        there = app.job(lambda: None, name=job)
        for offset in offsets:
            await there.put(f"key-{offset}", at=datetime.now(UTC) + timedelta(seconds=float(offset)))

asyncio.run(main(*sys.argv[1:]))
"""


def named(path: str, ear: str) -> str:
    return f"{ear}-{re.sub('[^A-Za-z0-9]+', '-', path)}"


@dataclass(slots=True)
class Score:
    """Rows that are expected, and those that have run."""

    expected: int = 0
    ran: int = 0
    all_ran: asyncio.Event = field(default_factory=asyncio.Event)

    async def count(self) -> None:
        self.ran += 1
        if self.ran == self.expected:
            self.all_ran.set()


def application(ear: str, url: str, paths: Sequence[str], score: Score) -> Horai:
    app = Horai(ear, database_url=url)
    for path in paths:
        app.job(score.count, name=named(path, ear))
    return app


@asynccontextmanager
async def simple_paths(url: str, api: Client, connection: Platform) -> AsyncGenerator[dict[str, Add]]:
    """The ways that take one call each."""
    async with Horai("caller", database_url=url) as app:

        async def rest(job: str, key: str, at: datetime) -> None:
            reply = await api("PUT", f"/api/v1/jobs/{job}/instances/{key}", {"executeTime": at.isoformat()})
            assert reply.status in {200, 201}, reply.json

        @cache
        def there(job: str) -> Job[..., Any]:
            return app.job(lambda: None, name=job)

        async def sdk_put(job: str, key: str, at: datetime) -> None:
            await there(job).put(key, at=at)

        async def sdk_enqueue(job: str, _: str, at: datetime) -> None:
            await there(job).enqueue(at=at)

        async def sql_put(job: str, key: str, at: datetime) -> None:
            await connection.execute(PUT, job, key, at)

        async def sql_enqueue(job: str, _: str, at: datetime) -> None:
            await connection.execute("select horai.enqueue($1, null, $2)", job, at)

        async def sql_enqueue_many(job: str, _: str, at: datetime) -> None:
            await connection.execute(
                "select horai.enqueue_many($1, array[null]::json[], array[$2::timestamptz])", job, at
            )

        yield {
            "REST": rest,
            "SDK put": sdk_put,
            "SDK enqueue": sdk_enqueue,
            "SQL put_instance": sql_put,
            "SQL enqueue": sql_enqueue,
            "SQL enqueue_many": sql_enqueue_many,
            "moved earlier REST": rest,
            "moved earlier SDK": sdk_put,
            "moved earlier SQL": sql_put,
        }


SIMPLE = (
    "REST", "SDK put", "SDK enqueue", "SQL put_instance", "SQL enqueue", "SQL enqueue_many",
    "moved earlier REST", "moved earlier SDK", "moved earlier SQL",
)  # fmt: skip
PROCESS = "another process"
WITHIN = tuple(f"conn= {kind}" for kind in KINDS)


def soon(offset: float) -> datetime:
    return datetime.now(UTC) + timedelta(seconds=offset)


def add_within(url: str, kind: str, opening: Opening) -> None:
    """Put as `conn=` does over a connection of this kind, in a transaction of its owner."""
    with asyncio.Runner() as runner, opening(url, runner) as caller:
        for ear in EARS:
            for offset in OFFSETS:
                caller.begin()
                job = named(f"conn= {kind}", ear)
                caller.ask(caller_transaction.put(job, f"key-{offset}", soon(offset), None, PutOptions()))
                caller.commit()


def add_all_within(url: str) -> None:
    for kind, opening in KINDS.items():
        add_within(url, kind, opening)


async def add_simply(adds: dict[str, Add]) -> None:
    moved = [path for path in adds if path.startswith("moved")]
    for path in moved:
        for ear in EARS:
            for offset in OFFSETS:
                await adds[path](named(path, ear), f"key-{offset}", datetime.now(UTC) + LATER)
    for path, add in adds.items():
        for ear in EARS:
            for offset in OFFSETS:
                await add(named(path, ear), f"key-{offset}", soon(offset))


def add_elsewhere(url: str) -> None:
    for ear in EARS:
        arguments = [url, named(PROCESS, ear), *map(str, OFFSETS)]
        subprocess.run([sys.executable, "-c", OTHER_PROCESS, *arguments], check=True, timeout=60)


LATENESS = """
    select job.name, extract(epoch from past.claimed_at - past.execute_time)::float as late
    from horai.instance_history past join horai.job on job.id = past.job_id
"""


def quantile(values: Sequence[float], share: float) -> float:
    return sorted(values)[min(int(len(values) * share), len(values) - 1)]


@pytest.mark.early
@pytest.mark.timeout(300)
async def test_F1a_F1b_a_row_added_by_any_path_starts_at_its_time_with_notifications_and_without(
    url: str, connection: Platform
) -> None:
    paths, score = (*SIMPLE, *WITHIN, PROCESS), Score()
    score.expected = len(paths) * len(OFFSETS) * len(EARS)
    async with AsyncExitStack() as stack:
        proxy = await stack.enter_async_context(Proxy(url, lambda payload: not is_beat(payload)).listening())
        for ear, place in (("heard", url), ("deaf", proxy.url)):
            await stack.enter_async_context(working(application(ear, place, paths, score), EngineSettings(), name=ear))
        door = harness.node(url, EngineSettings(), name="door", roles=frozenset({Role.api}))
        adds = await stack.enter_async_context(simple_paths(url, await stack.enter_async_context(door), connection))
        assert tuple(adds) == SIMPLE

        await asyncio.gather(
            add_simply(adds), asyncio.to_thread(add_all_within, url), asyncio.to_thread(add_elsewhere, url)
        )
        async with asyncio.timeout(max(OFFSETS) + 35):
            await score.all_ran.wait()

        async def all_are_settled() -> bool:
            return await connection.fetchval("select count(*) from horai.instance_history") == score.expected

        async with asyncio.timeout(10):
            while not await all_are_settled():
                await asyncio.sleep(0.05)
        dropped = [payload for payload in proxy.dropped if payload.startswith("w:")]

    late: dict[str, list[float]] = {}
    for row in await connection.fetch(LATENESS):
        late.setdefault(row["name"], []).append(row["late"])
    print(f"\n{'path':<44}{'heard p50':>10}{'p99 s':>8}{'deaf p50':>10}{'p99 s':>8}")
    for path in paths:
        cells = [late[named(path, ear)] for ear in EARS]
        shown = "".join(f"{statistics.median(cell):>10.3f}{quantile(cell, 0.99):>8.3f}" for cell in cells)
        print(f"{path:<44}{shown}", flush=True)
    assert dropped, "the deaf worker was sent wakes, and lost them"
    assert {len(cell) for cell in late.values()} == {len(OFFSETS)}
    assert min(min(cell) for cell in late.values()) >= 0.0, "none before its time"
    for ear, bound in EARS.items():
        worst = {path: quantile(late[named(path, ear)], 0.99) for path in paths}
        assert {path: each for path, each in worst.items() if each > bound} == {}, ear
