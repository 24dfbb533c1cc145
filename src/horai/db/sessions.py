"""A test whether each connection has its own server session, or a pooler shares sessions by transaction."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg

from horai.db.catalog import sql
from horai.db.route import Dedicated, ServerAnswer, ServerRules, ServerUnfit
from horai.db.urls import DatabaseHost

LIMIT = 5.0
"""Seconds for each step of the test; the call that runs it has its own limit."""
ROUNDS = 16
"""Rounds of the test. One round misses a pool whose other clients are busy about every second time."""
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


async def require_own_session(route: ServerRules, answer: ServerAnswer) -> None:
    """Raise `ServerUnfit` if a pooler multiplexes transactions. Tests once per process and URL."""
    is_direct = answer.host is None or answer.host.is_socket
    if route.is_proven or (is_direct and answer.server.has_settings):
        return
    named = address_of(answer.host)
    async with _trial(route, named) as first, _trial(route, named) as second:
        if await _is_shared(first, second):
            raise shared()
    route.is_proven = True


@asynccontextmanager
async def _trial(route: ServerRules, named: dict[str, Any]) -> AsyncGenerator[Dedicated]:
    """Open a connection that leaves no prepared statement in a session that other clients may share."""
    limits: dict[str, Any] = {"timeout": LIMIT, "command_timeout": LIMIT, "statement_cache_size": 0}
    settings = {"application_name": "horai trial"}
    connection: Dedicated = await asyncpg.connect(route.url, **named, **limits, server_settings=settings)
    try:
        yield connection
    finally:
        connection.terminate()


async def _is_shared(first: Dedicated, second: Dedicated) -> bool:
    """Return whether one of the connections changes its session between transactions, or both use the same one.

    The transaction of `second` stays open during one of `first`: a pooler that has the last session of `first` to spare
    gives it to `second`, and the next transaction of `first` gets another one.
    """
    try:
        own, other = await _session(first), None
        for _ in range(ROUNDS):
            async with second.transaction():
                found = await second.fetchval(sql("backend"))
                if found == own or other not in {None, found}:
                    return True
                other = found
                if await _session(first) != own:
                    return True
    except MIXED_UP:
        return True
    return False


async def _session(connection: Dedicated) -> int:
    async with connection.transaction():
        return await connection.fetchval(sql("backend"))
