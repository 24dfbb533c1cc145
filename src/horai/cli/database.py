"""The database of a place, opened for one command. An embedded one that does not run is started, and stopped after."""

import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import asyncpg

from horai.cli.environment import Place
from horai.cli.errors import CommandFailed
from horai.cli.logs import talk_on_stderr
from horai.db.embedded import EmbeddedPostgres, EmbeddedSettings, NotRunning, default_data_dir, url_of
from horai.db.embedded.area import Area
from horai.db.migrate import Migration, migrate, pending_migrations
from horai.db.pool import GONE, Dedicated, opened
from horai.db.verify import Finding, verify


async def apply_migrations(place: Place, *, dry_run: bool) -> list[Migration]:
    """What was applied, or with `dry_run` would be."""
    async with _opened(place, may_create=not dry_run) as connection:
        return await migrate(connection, dry_run=dry_run)


async def find_violations(place: Place) -> list[Finding]:
    """One finding per invariant."""
    async with _opened(place, may_create=False) as connection:
        if missing := await pending_migrations(connection):
            raise CommandFailed(f"The database lacks {len(missing)} migrations.", "horai migrate applies them.")
        return await verify(connection)


@asynccontextmanager
async def _opened(place: Place, *, may_create: bool) -> AsyncGenerator[Dedicated]:
    talk_on_stderr(logging.WARNING)
    async with _running(place, may_create) as url, opened(url, "horai command") as connection:
        try:
            yield connection
        except (asyncpg.PostgresError, *GONE) as error:
            raise CommandFailed(f"The database did not do it: {error}.") from error


@asynccontextmanager
async def _running(place: Place, may_create: bool) -> AsyncGenerator[str]:
    if place.url is not None:
        yield place.url
        return
    directory = _directory(place)
    if not may_create and not Area.at(directory).lock.exists():
        raise CommandFailed(f"There is no database in {directory}.", "horai up and horai migrate make one.")
    if (url := _url_if_running(directory)) is not None:
        yield url
        return
    postgres = EmbeddedPostgres(EmbeddedSettings(directory))
    await postgres.start()
    try:
        yield postgres.url
    finally:
        await postgres.stop()


def _url_if_running(directory: Path) -> str | None:
    try:
        return url_of(directory)
    except NotRunning:
        return None


def _directory(place: Place) -> Path:
    return place.data_dir or default_data_dir()
