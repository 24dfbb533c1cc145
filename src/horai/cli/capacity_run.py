"""The measurement of `horai capacity --measure`: one node drains instances on an embedded database of its own.

The database lies in a temporary directory and is removed afterwards; no database of the user is touched.
"""

import asyncio
import tempfile
import time
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from horai.core.actor import SYSTEM
from horai.core.calls import Call
from horai.core.capacity import CapacityFindings
from horai.core.health import EngineHealth
from horai.core.outcome import SUCCESS, Outcome
from horai.core.settings import EngineSettings
from horai.db.capacity import InstanceStorage, instance_storage
from horai.db.pool import TenantPool, close_pool, open_pool, opened
from horai.db.wakeups import Wakeups
from horai.embedded import EmbeddedPostgres, EmbeddedSettings
from horai.embedded.admin import admin_url
from horai.features.registry import JOB_HOOKS
from horai.operations.enqueue import enqueue_many
from horai.operations.job_rows import JobDocument
from horai.operations.jobs import create_job
from horai.operations.scope import Scope
from horai.process import prepare
from horai.stages import Engine

HANDLER = "capacity"
QUEUES = 8
"""Jobs of the run, each with a queue of its own."""
BATCH = 1_000
PAYLOAD = '{"x":"' + "x" * 100 + '"}'
LONGEST = 600.0
"""Seconds that the drain may take."""
DEFAULT_TENANT = (1, "default")


class CountingExecutor:
    """Does nothing; notes when its first call began."""

    def __init__(self) -> None:
        self.first_at: float | None = None

    async def run(self, call: Call) -> Outcome:
        """Return a success."""
        if self.first_at is None:
            self.first_at = time.monotonic()
        return SUCCESS


async def measure(instances: int) -> CapacityFindings:
    """Measure bytes per instance and instances per second of one node, with as many instances."""
    async with _temporary_server() as url:
        before = await _storage(url)
        await _fill(url, instances)
        waiting = await _storage(url)
        rate = await _drain(url, instances)
        after = await _storage(url)
    return CapacityFindings(
        instances,
        finished_bytes=(after.finished_bytes - before.finished_bytes) / instances,
        waiting_bytes=(waiting.live_bytes - before.live_bytes) / instances,
        node_rate=rate,
    )


@contextmanager
def _temporary_place() -> Generator[Path]:
    with tempfile.TemporaryDirectory(prefix="horai-capacity-", ignore_cleanup_errors=True) as made:
        place = Path(made)
        place.chmod(0o755)  # under root, PostgreSQL runs as another user, who needs access
        yield place


@asynccontextmanager
async def _temporary_server() -> AsyncGenerator[str]:
    with _temporary_place() as place:
        server = EmbeddedPostgres(EmbeddedSettings(place / "data"))
        await server.start()
        try:
            await prepare(server.url, EngineSettings())
            yield server.url
        finally:
            await server.stop()


async def _storage(url: str) -> InstanceStorage:
    async with opened(admin_url(url), "horai capacity") as connection:
        await connection.execute("analyze")
        return await instance_storage(connection)


async def _fill(url: str, instances: int) -> None:
    pool = await open_pool(url, "horai capacity", 2)
    try:
        scope = Scope(TenantPool(pool, DEFAULT_TENANT[0]), Wakeups(), *DEFAULT_TENANT, SYSTEM, JOB_HOOKS)
        for number in range(QUEUES):
            name = f"capacity-{number}"
            target = {"type": "worker", "handler": HANDLER}
            await create_job(scope, JobDocument({"name": name, "queue": name, "target": target}, None))
            own = instances // QUEUES + (number < instances % QUEUES)
            sizes = [min(BATCH, own - begun) for begun in range(0, own, BATCH)]
            await enqueue_many(scope, name, None, ([PAYLOAD] * size for size in sizes))
    finally:
        await close_pool(pool)


async def _drain(url: str, instances: int) -> float:
    """Return the instances per second of one node, from its first call until all outcomes are written."""
    health, executor = EngineHealth(), CountingExecutor()
    engine = Engine(url, "capacity", {HANDLER: executor}, Wakeups(), health, EngineSettings())
    await engine.start()
    try:
        async with asyncio.timeout(LONGEST):
            while health.settled < instances:  # noqa: ASYNC110 - the settler counts, and tells no listener
                await asyncio.sleep(0.005)
        ended_at = time.monotonic()
    finally:
        await engine.stop()
    return instances / max(ended_at - (executor.first_at or ended_at), 1e-3)
