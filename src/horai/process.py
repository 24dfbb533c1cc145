"""The common parts of every Horai process, node or worker: open the database, and run until told to stop."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import timedelta

import asyncpg
import structlog

from horai.core.errors import DatabaseUnavailable, HoraiError
from horai.core.settings import EngineSettings
from horai.db import nodes
from horai.db.audit import continue_audit
from horai.db.migrate import migrate
from horai.db.pool import POOL_REST_AFTER, Pool, acquire, close_pool, open_pool, retrying
from horai.embedded.admin import opened_for_migrations
from horai.stages import Engine

log = structlog.get_logger(__name__)

API_CONNECTIONS = 10
START_ATTEMPTS = 6
"""Attempts of a process that starts to get its first connection, each of up to `ACQUIRE_TIMEOUT` seconds."""


class StartError(HoraiError):
    """The process cannot start, or has ended by itself."""

    code = "SCH_500_START"
    title = "Cannot start"


async def prepare(url: str, settings: EngineSettings) -> None:
    """Migrate the database to this version, and create partitions for the coming days.

    A database that is up to one minor version ahead is left as it is: the node works, and reports that it is degraded.
    The superuser does it on an embedded server, whose URL of nodes is `url`.
    """
    async with opened_for_migrations(url) as connection:
        await migrate(connection, accepts_newer=True, progress=lambda line: log.info("migration", progress=line))
        try:
            await nodes.make_partitions(connection, settings.partitions_ahead)
        except asyncpg.PostgresError as error:  # rows go to the default partitions, and the janitor tries again
            log.error("partitions of the coming days not created", error=repr(error))
        if skipped := await continue_audit(connection):
            log.warning("the database was restored from a dump: the audit log goes on", skipped_transactions=skipped)


@asynccontextmanager
async def pool(
    url: str, application: str, idle_timeout: timedelta, rest_after: float = POOL_REST_AFTER
) -> AsyncGenerator[Pool]:
    """Open a pool of connections for requests, and close it on exit."""
    opened_pool = await open_pool(url, application, API_CONNECTIONS, idle_timeout, rest_after=rest_after)
    try:
        yield opened_pool
    finally:
        await close_pool(opened_pool)


async def await_database(pool: Pool) -> None:
    """Wait until the database gives a connection, which stays in the pool. A server that has just started may be slow.

    Raises `DatabaseUnavailable` after `START_ATTEMPTS` attempts.
    """

    async def connect_once() -> None:
        async with acquire(pool):
            pass

    await retrying(connect_once, START_ATTEMPTS, (DatabaseUnavailable,))


async def until_stopped(stop: asyncio.Event, engine: Engine, server: "asyncio.Task[None] | None" = None) -> None:
    """Wait for `stop`. Raise if a loop or the server ends by itself: health must not report OK over a dead loop."""
    told = asyncio.create_task(stop.wait())
    watched = asyncio.create_task(engine.watch())
    serving = {server} if server is not None else set[asyncio.Task[None]]()
    done, pending = await asyncio.wait({told, watched, *serving}, return_when=asyncio.FIRST_COMPLETED)
    for task in pending - serving:
        task.cancel()
    for task in done:
        task.result()
    if told not in done:
        raise StartError("The server has ended by itself.")
