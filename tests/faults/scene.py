"""A node, workers of a module that the test writes, and a client: the stage of the tests that kill workers."""

import asyncio
import random
from collections import Counter
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import harness
from harness import FAST
from sizes import IS_LONG

from faults.outside import until, violations
from faults.worker_process import WorkerProcess
from horai import Horai
from horai.db.pool import Platform

LEASE = 8.0 if IS_LONG else 2.0
WITHIN = 300.0 if IS_LONG else 60.0


class Scene:
    """A node that schedules and rescues, workers of the module `poisoned`, and a client."""

    def __init__(self, url: str, place: Path, stack: AsyncExitStack, connection: Platform) -> None:
        self._url = url
        self._place = place
        self._stack = stack
        self.connection = connection
        self.app = Horai("faults", database_url=url)

    async def worker(self, name: str, *flags: str) -> WorkerProcess:
        """Start a worker, which ends with the scene. Meanwhile the node of this process goes on."""
        made = WorkerProcess(self._place, name, self._url, "poisoned:app", "--lease-ttl", f"{LEASE:g}s", *flags)
        self._stack.callback(made.end)
        return await asyncio.to_thread(made.start)

    async def add(self, job: str, payloads: list[Any]) -> list[int]:
        """Add instances of a job that a worker has declared."""
        client = await self.app.client()
        return await client.enqueue_many(job, None, [[None if p is None else str(p) for p in payloads]])

    async def until_declared(self, job: str) -> None:
        """Wait until a worker has declared the job."""
        there = "select exists (select from horai.job where name = $1)"
        await until(lambda: self.connection.fetchval(there, job), WITHIN, f"the job {job}")

    async def busy_one(self, workers: Sequence[WorkerProcess], dice: random.Random) -> int:
        """Wait until a worker holds an instance, and return the index of one that does: a quick one may leave the others nothing."""
        busy: list[int] = []

        async def is_any() -> bool:
            busy[:] = [at for at, worker in enumerate(workers) if await worker.has_work(self.connection)()]
            return bool(busy)

        await until(is_any, WITHIN, "a worker runs something")
        return dice.choice(busy)

    async def until_final(self) -> Mapping[str, Counter[str]]:
        """Wait until no instance is live, and return the count of the instances of each job by final state."""

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
async def scene(url: str, place: Path, connection: Platform, code: str) -> AsyncGenerator[Scene]:
    """Set the stage in `place`, with `code` as the workers' module."""
    place.mkdir()
    (place / "poisoned.py").write_text(code)
    async with AsyncExitStack() as stack, harness.node(url, FAST):
        made = Scene(url, place, stack, connection)
        stack.push_async_callback(made.app.close)
        yield made
