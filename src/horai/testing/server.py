"""The PostgreSQL of tests: one per process, started when first needed, with a separate database for each test.

It is an embedded server in a temporary directory, or the server that HORAI_TEST_DATABASE_URL names, whose user must be
allowed to create databases. A database is a copy of a template that was migrated once and has the virtual time. Copying
takes longer than most tests, so a database is emptied and used again if its test has created no objects.
"""

import asyncio
import atexit
import os
import tempfile
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast
from urllib.parse import urlsplit

import asyncpg

from horai.db.database_location import secret
from horai.db.isolation import Isolation
from horai.db.migrate import migrate
from horai.db.pool import Dedicated, Platform
from horai.db.urls import plain_url
from horai.embedded import EmbeddedPostgres, EmbeddedSettings
from horai.sdk.portal import Portal
from horai.testing.store import script, show_virtual_time

ENVIRONMENT = "HORAI_TEST_DATABASE_URL"
SEARCH_PATH = "public, virtual_time, pg_catalog"
"""User objects go to `public`, as usual; the virtual time comes before the real one."""
USES = 100
"""Uses of a database before it is dropped: deleted rows still take space."""


class Host:
    """A running server and its template. All methods run in one event loop."""

    def __init__(self, url: str, postgres: EmbeddedPostgres | None = None) -> None:
        self._url = url
        self._postgres = postgres
        self._template = _fresh_name("template")
        self._admin: Dedicated | None = None
        self._asking = asyncio.Lock()
        self._uses: dict[str, int] = {}
        self._coming: deque[asyncio.Task[str | None]] = deque()

    async def start(self) -> None:
        """Start the server if it is embedded, and create the template."""
        if self._postgres is not None:
            await self._postgres.start()
        self._admin = await asyncpg.connect(self._url)
        await self._ask(f"create database {self._template}")
        settings = {"search_path": SEARCH_PATH}
        connection = cast("Platform", await asyncpg.connect(self.url_of(self._template), server_settings=settings))
        try:
            await connection.execute(script("virtual_time.sql"))
            await migrate(connection, isolation=Isolation(single_role=True))
            await show_virtual_time(connection)
            await connection.execute(script("reuse.sql"))
        finally:
            await connection.close()

    def url_of(self, database: str) -> str:
        """Return the URL of another database of this server."""
        return urlsplit(self._url)._replace(path=f"/{database}").geturl()

    async def take(self) -> str:
        """Return the name of a new or emptied database."""
        name: str | None = None
        while self._coming and name is None:
            name = await self._coming.popleft()
        name = name or await self._make()
        self._uses[name] = self._uses.get(name, 0) + 1
        return name

    async def _make(self) -> str:
        name = _fresh_name("test")
        await self._ask(
            f"create database {name} template {self._template}",
            f"alter database {name} set search_path = {SEARCH_PATH}",
            f"alter database {name} set synchronous_commit = off",  # the data need not survive a crash
        )
        return name

    def give_back(self, name: str) -> None:
        """Empty or drop the database in the background."""
        self._coming.append(asyncio.create_task(self._renewed(name)))

    async def _renewed(self, name: str) -> str | None:
        if self._uses[name] < USES and await self._is_emptied(name):
            return name
        await self._ask(f"drop database if exists {name} with (force)")
        return None

    async def _is_emptied(self, name: str) -> bool:
        """Empty the database; return False if the test has created objects or still holds locks after 1 s."""
        try:
            connection: Dedicated = await asyncpg.connect(self.url_of(name), server_settings={"lock_timeout": "1s"})
            try:
                await connection.execute("select virtual_seed.send_away()")
                return await connection.fetchval("select virtual_seed.restore()")
            finally:
                await connection.close()
        except (OSError, asyncpg.PostgresError):
            return False

    async def _ask(self, *statements: str) -> None:
        async with self._asking:
            for statement in statements:
                assert self._admin is not None  # noqa: S101 — `start` runs first
                await self._admin.execute(statement)

    async def stop(self) -> None:
        """Drop all databases that this host created, and stop the server if it is embedded."""
        kept = [name for name in await asyncio.gather(*self._coming, return_exceptions=True) if isinstance(name, str)]
        if self._postgres is None and self._admin is not None:
            await self._ask(*(f"drop database if exists {name} with (force)" for name in [*kept, self._template]))
        if self._admin is not None:
            await self._admin.close()
        if self._postgres is not None:
            await self._postgres.stop()


class Server:
    """A server that starts once for all threads and event loops, and stops with the process at the latest."""

    def __init__(self) -> None:
        self._portal = Portal()
        self._starting: asyncio.Task[Host] | None = None
        self._directory: tempfile.TemporaryDirectory[str] | None = None

    @asynccontextmanager
    async def database(self) -> AsyncGenerator[str]:
        """Yield the URL of a database for the caller alone, and take it back afterwards."""
        name, url = await asyncio.to_thread(self._portal.run, self._take())
        try:
            yield url
        finally:
            await asyncio.to_thread(self._portal.run, self._give_back(name))

    def stop(self) -> None:
        """Stop the server and remove its files. The next caller starts it again."""
        atexit.unregister(self.stop)
        self._portal.run(self._stop())
        if self._directory is not None:
            self._directory.cleanup()
            self._directory = None

    def _host(self) -> Host:
        """Return the host of the environment variable, or an embedded one in a temporary directory."""
        if named := secret(ENVIRONMENT, os.environ):
            return Host(plain_url(named))
        self._directory = tempfile.TemporaryDirectory(prefix="horai-testing-", ignore_cleanup_errors=True)
        place = Path(self._directory.name)
        place.chmod(0o755)  # under root, PostgreSQL runs as another user, who needs access
        settings = EmbeddedSettings(place / "server", extra={"autovacuum": "off"})
        postgres = EmbeddedPostgres(settings)
        return Host(postgres.url, postgres)

    async def _start(self) -> Host:
        host = self._host()
        try:
            await host.start()
        except BaseException:
            await host.stop()
            raise
        return host

    async def _take(self) -> tuple[str, str]:
        if self._starting is None or (self._starting.done() and self._starting.exception() is not None):
            atexit.register(self.stop)
            self._starting = asyncio.create_task(self._start())
        host = await self._starting
        name = await host.take()
        return name, host.url_of(name)

    async def _give_back(self, name: str) -> None:
        if self._starting is not None:
            (await self._starting).give_back(name)

    async def _stop(self) -> None:
        starting, self._starting = self._starting, None
        if starting is not None:
            (host,) = await asyncio.gather(starting, return_exceptions=True)
            if isinstance(host, Host):
                await host.stop()


SERVER = Server()


def _fresh_name(kind: str) -> str:
    return f"horai_{kind}_{os.urandom(6).hex()}"
