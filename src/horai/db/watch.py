"""A watch of the host in use for URLs with several hosts: moves all connections when another host takes over."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import Any

import structlog

from horai.db.catalog import sql
from horai.db.dial import ASK_AGAIN, FAILURES, HOST_LIMIT, call, dial
from horai.db.route import Dedicated, Route, ServerUnfit, route_of

log = structlog.get_logger(__name__)

WATCH_EVERY, WATCH_LIMIT = 1.0, 1.5
"""Seconds between two probes of the host in use, and the time limit of one probe."""
LOOK_AROUND_EVERY = 10
"""Probes of the host in use between two checks of the other hosts."""
SETTINGS = {"application_name": "horai watch"}


@asynccontextmanager
async def watched(url: str) -> AsyncGenerator[None]:
    """Probe the host in use, so that all connections leave it soon after it became silent or another host was promoted.

    A URL with one host is not probed: there is no other host to go to.
    """
    route = route_of(url)
    if not route.is_plural:
        yield
        return
    watching = asyncio.create_task(_watch(route), name="horai database watch")
    try:
        yield
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)


async def _watch(route: Route) -> None:
    """Probe the host until cancelled; continue after every error."""
    connection: Dedicated | None = None
    try:
        while True:
            try:
                if connection is None or connection.is_closed():
                    connection = await dial(route.url, timeout=2 * HOST_LIMIT, server_settings=SETTINGS)
                for _ in range(LOOK_AROUND_EVERY):
                    await _probe(route, connection)
                    await asyncio.sleep(WATCH_EVERY)
                await _look_around(route)
            except Exception as error:
                log.warning("the database host cannot be used", error=str(error) or type(error).__name__)
                route.doubt()
                if connection is not None:
                    connection.terminate()
                await asyncio.sleep(ASK_AGAIN)
    finally:
        if connection is not None:
            connection.terminate()


async def _probe(route: Route, connection: Dedicated) -> None:
    is_read_only = await connection.fetchval(sql("probe"), timeout=WATCH_LIMIT) == "on"
    if is_read_only and route.wants_writable:
        raise ServerUnfit("the host has become read-only")


async def _look_around(route: Route) -> None:
    """Move to a host that was promoted while the host in use still answers."""
    options: dict[str, Any] = {"server_settings": SETTINGS}
    for host in route.hosts:
        if host == route.trusted:
            continue
        with suppress(*FAILURES):
            answer = await call(route, host, HOST_LIMIT, options)
            try:
                if (answer.server.timeline or 0) > route.timeline:
                    route.take(answer)
            finally:
                answer.connection.terminate()
