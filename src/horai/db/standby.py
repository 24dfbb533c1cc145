"""Connections to one standby of the primary's cluster, for reads. A server that accepts writes is refused."""

import asyncio
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import asyncpg

from horai.db.catalog import sql
from horai.db.dial import call, settled
from horai.db.pool import AnyRead, Platform, Pool, open_pool
from horai.db.route import DatabaseServer, Dedicated, ServerAnswer, ServerUnfit
from horai.db.urls import DatabaseHost

CONNECTIONS = 10
"""Connections of one process to one standby."""
_RETICENT = (asyncpg.InsufficientPrivilegeError, asyncpg.UndefinedFunctionError, asyncpg.FeatureNotSupportedError)


class NotAStandby(ServerUnfit):
    """The server accepts writes: it is a primary, or was promoted."""


class OtherDatabase(ServerUnfit):
    """The server has another database than the primary. Waiting does not help."""


@dataclass(frozen=True, slots=True)
class DatabaseIdentity:
    """The numbers that a primary and its standbys share. A managed service may hide `system` (None)."""

    system: str | None
    number: int
    """The oid of the database."""


async def read_identity(connection: AnyRead) -> DatabaseIdentity:
    """Return the identity of the database that the connection is open to."""
    try:
        row = await connection.fetchrow(sql("database_identity"))
    except _RETICENT:
        row = await connection.fetchrow(sql("reticent_database_identity"))
    assert row is not None  # noqa: S101 - every session has a database
    return DatabaseIdentity(row["system"], row["number"])


class StandbyRules:
    """Accept the standbys of one cluster only."""

    def __init__(self, url: str, identity: DatabaseIdentity) -> None:
        self.url = url
        self.identity = identity
        self.passes_settings = True
        self.is_proven = False

    def judge(self, host: DatabaseHost | None, server: DatabaseServer) -> None:
        """Raise `OtherDatabase` for a server of another cluster, `NotAStandby` for one that accepts writes."""
        own = self.identity.system
        if None not in {own, server.system} and server.system != own:
            raise OtherDatabase(
                f"{host or 'the server'} belongs to the cluster with the system identifier {server.system}, and the primary to {own}"
            )
        if not server.is_standby:
            raise NotAStandby(f"{host or 'the server'} is not a standby: it accepts writes", may_pass=True)

    def take(self, answer: ServerAnswer) -> None:
        """Keep no account of the connection: the pool of the host does."""


async def open_standby_pool(rules: StandbyRules, host: DatabaseHost | None, application: str) -> Pool:
    """Open a pool of read-only connections to one host. It connects when a connection is first asked for."""
    dialled = partial(_dial_standby, rules, host)
    return await open_pool(rules.url, application, CONNECTIONS, dialled=dialled, default_transaction_read_only="on")


async def _dial_standby(
    rules: StandbyRules,
    host: DatabaseHost | None,
    _url: str,
    *,
    timeout: float,
    server_settings: dict[str, str],
    **options: Any,
) -> Dedicated:
    options |= {"server_settings": server_settings}
    async with asyncio.timeout(timeout):
        answer = await settled(rules, await call(rules, host, timeout, options), server_settings)
        try:
            await _require_same_database(rules, host, cast("Platform", answer))
        except BaseException:
            answer.terminate()
            raise
    return answer


async def _require_same_database(rules: StandbyRules, host: DatabaseHost | None, connection: AnyRead) -> None:
    number = (await read_identity(connection)).number
    if number != rules.identity.number:
        raise OtherDatabase(f"{host or 'the server'} has a database of another number under the name of the URL")
