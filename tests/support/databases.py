"""The databases of the test server: one migrated template, and short-lived copies of it."""

import asyncio
import os
import warnings
from collections.abc import Generator
from contextlib import contextmanager
from functools import cache
from typing import cast

import asyncpg

from horai.db.pool import Dedicated, Platform, TenantWrite, connect
from horai.embedded import EmbeddedPostgres
from horai.embedded.admin import admin_url
from horai.embedded.sockets import NODE_LOGIN, SUPERUSER

TEMPLATE = "horai_template"
PARTITIONS_AHEAD = 3
"""Days for which the template has partitions: of today, and of the next days for a run over midnight."""
END_SESSIONS = "select pg_terminate_backend(pid) from pg_stat_activity where datname = $1"
LOOK_PAUSE = 0.002
MOST_LOOKS = 1000
IS_SINGLE_ROLE = bool(os.environ.get("HORAI_TEST_SINGLE_ROLE"))
"""Without row-level security, so that a statement that forgets its tenant shows. With it, the tests pass all the same."""


class Superuser(TenantWrite, Platform):
    """The connection of a test. It may do all that a tenant and the platform may, so every function takes it."""


async def superuser(url: str, application: str = "horai test") -> Superuser:
    """Open a connection that every function takes."""
    return cast("Superuser", await connect(url, application))


async def analyze(connection: Superuser, table: str = "") -> None:
    """Count the rows of a table, or of every table. Report pending inserts first: PostgreSQL adds those reported later."""
    await connection.execute("select pg_stat_force_next_flush()")
    await connection.execute(f"analyze {table}")


def url_for(server: EmbeddedPostgres, database: str) -> str:
    """Another database of the same server, as its superuser."""
    return admin_url(server.url).replace("/horai?", f"/{database}?")


def as_node(url: str) -> str:
    """The same database as the login of nodes, which owns nothing. One with a single role is left as it is."""
    is_single = IS_SINGLE_ROLE or "/horai_test_" in url  # the databases of `horai.testing`
    return url if is_single else url.replace(f"//{SUPERUSER}@", f"//{NODE_LOGIN}@")


class Admin:
    """One connection for all that makes and drops databases, in a loop that stands still in between.

    A new one each time, and a loop with it, would take as long as the statement. A connection that the server has closed
    is replaced, with a warning that shows the end of the server's log: one crash must not fail all later tests.
    """

    def __init__(self, server: EmbeddedPostgres) -> None:
        self._server = server
        self._runner = asyncio.Runner(loop_factory=asyncio.new_event_loop)
        self._connection: Dedicated = self._runner.run(asyncpg.connect(admin_url(server.url)))

    def execute(self, statement: str) -> None:
        if self._connection.is_closed():
            self._runner.run(self._reconnect())
        self._runner.run(self._connection.execute(statement))

    def drop(self, database: str) -> None:
        """Drop a database. The server looks every 100 ms whether its sessions have ended; this looks more often."""
        if self._connection.is_closed():
            self._runner.run(self._reconnect())
        self._runner.run(self._end_sessions(database))
        self.execute(f"drop database if exists {database} with (force)")

    async def _end_sessions(self, database: str) -> None:
        for _ in range(MOST_LOOKS):
            ended = await self._connection.fetch(END_SESSIONS, database)
            if not ended:
                return
            await asyncio.sleep(LOOK_PAUSE)

    async def _reconnect(self) -> None:
        ending = "\n".join(self._server.log_path.read_text().splitlines()[-30:])
        warnings.warn(f"The test server closed its connection. Its log ends with:\n{ending}", stacklevel=1)
        await self._server.start()
        async with asyncio.timeout(60):
            while self._connection.is_closed():
                try:
                    self._connection = await asyncpg.connect(admin_url(self._server.url))
                except (OSError, asyncpg.PostgresError):  # it recovers from a crash
                    await asyncio.sleep(0.1)

    def close(self) -> None:
        self._runner.run(self._connection.close())
        self._runner.close()


@cache
def admin_of(server: EmbeddedPostgres) -> Admin:
    """Return the admin connection of this server; close it before you stop the server."""
    return Admin(server)


@contextmanager
def fresh_database(server: EmbeddedPostgres, template: str = TEMPLATE) -> Generator[str]:
    """The URL of a new database, which is dropped afterwards."""
    name, admin = f"t{os.urandom(6).hex()}", admin_of(server)
    admin.execute(f"create database {name} template {template} strategy file_copy")
    try:
        yield url_for(server, name)
    finally:
        admin.drop(name)
