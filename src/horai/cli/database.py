"""A database, opened for one command. An embedded database that is not running is started, and then stopped."""

import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import asyncpg

from horai.cli.errors import CommandFailed
from horai.db.database_location import DatabaseLocation
from horai.db.isolation import Isolation, grant_roles
from horai.db.migrate import Migration, migrate, pending_migrations
from horai.db.pool import GONE, Platform, opened
from horai.db.verify import Finding, verify
from horai.embedded.area import Area
from horai.embedded.visit import directory_of, running
from horai.logs import write_to_stderr


async def apply_migrations(
    place: DatabaseLocation, *, dry_run: bool, isolation: Isolation | None = None, admin_url: str | None = None
) -> list[Migration]:
    """Apply the pending migrations and return them. With `dry_run`, return them without applying any.

    With `admin_url`, that role first creates the roles of row-level security and grants them.
    """
    async with opened_database(place, may_create=not dry_run) as connection:
        if admin_url is not None and not dry_run:
            login = await connection.fetchval("select session_user")
            async with opened(admin_url, "horai migrate") as admin:
                await grant_roles(admin, login)
        return await migrate(connection, dry_run=dry_run, isolation=isolation)


async def find_violations(place: DatabaseLocation) -> list[Finding]:
    """Check every invariant and return one finding for each. Raises `CommandFailed` if migrations are missing."""
    async with opened_database(place, may_create=False) as connection:
        if missing := await pending_migrations(connection):
            raise CommandFailed(f"The database lacks {len(missing)} migrations.", "horai migrate applies them.")
        return await verify(connection)


@asynccontextmanager
async def opened_database(place: DatabaseLocation, *, may_create: bool) -> AsyncGenerator[Platform]:
    """Open a database. Raises `CommandFailed` if it does not exist and `may_create` is false, or refuses a statement."""
    write_to_stderr(logging.WARNING)
    if not may_create:
        _require_database(place)
    async with running(place) as url, opened(url, "horai command") as connection:
        try:
            yield connection
        except (asyncpg.PostgresError, *GONE) as error:
            raise CommandFailed(f"The database refused the command: {error}.") from error


def _require_database(place: DatabaseLocation) -> None:
    directory = directory_of(place)
    if place.url is None and not Area.at(directory).lock.exists():
        raise CommandFailed(f"There is no database in {directory}.", "horai up and horai migrate create one.")
