"""A test whether each connection has its own server session, or a pooler shares sessions by transaction."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg

from horai.db.catalog import sql
from horai.db.route import Dedicated, Route, ServerAnswer, ServerUnfit
from horai.db.urls import DatabaseHost

LIMIT = 5.0
"""Seconds for each step of the test; the call that runs it has its own limit."""
ROUNDS = 2
"""Rounds of the test; one round may be disturbed by the transaction of another client."""
MIXED_UP = (asyncpg.InvalidSQLStatementNameError, asyncpg.DuplicatePreparedStatementError)
"""Errors of shared sessions: a prepared statement of this connection is missing, or that of another one exists."""


def shared() -> ServerUnfit:
    return ServerUnfit(
        "a connection pooler gives the transactions of one connection to different server sessions (transaction or statement "
        "pooling), and Horai needs sessions of its own for LISTEN, prepared statements and settings",
        "Give a URL that leads to PostgreSQL itself, or set pool_mode = session in the pooler.",
    )


def address_of(host: DatabaseHost | None) -> dict[str, Any]:
    """Return the driver's arguments for a host; without a host none, and the driver chooses."""
    return {} if host is None else {"host": host.name, "port": host.port}


async def require_own_session(route: Route, answer: ServerAnswer) -> None:
    """Raise `ServerUnfit` if a pooler multiplexes transactions. Tests once per process and URL."""
    is_direct = answer.host is None or answer.host.is_socket
    if route.is_proven or (is_direct and answer.server.has_settings):
        return
    named = address_of(answer.host)
    async with _trial(route, named) as first, _trial(route, named) as second:
        for _ in range(ROUNDS):
            if await _is_shared(first, second):
                raise shared()
    route.is_proven = True


@asynccontextmanager
async def _trial(route: Route, named: dict[str, Any]) -> AsyncGenerator[Dedicated]:
    """Open a connection that leaves no prepared statement in a session that other clients may share."""
    limits: dict[str, Any] = {"timeout": LIMIT, "command_timeout": LIMIT, "statement_cache_size": 0}
    settings = {"application_name": "horai trial"}
    connection: Dedicated = await asyncpg.connect(route.url, **named, **limits, server_settings=settings)
    try:
        yield connection
    finally:
        connection.terminate()


async def _is_shared(first: Dedicated, second: Dedicated) -> bool:
    """Return whether `first` changes its session between transactions, or `second` gets an earlier one of `first`."""
    try:
        had = {await _session(first), await _session(first)}
        async with second.transaction():
            if len(had) > 1 or await second.fetchval(sql("backend")) in had:
                return True
            return await _session(first) not in had
    except MIXED_UP:
        return True


async def _session(connection: Dedicated) -> int:
    async with connection.transaction():
        return await connection.fetchval(sql("backend"))
