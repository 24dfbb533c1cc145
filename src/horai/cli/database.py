"""A database, opened for one command. An embedded database that is not running is started, and then stopped."""

import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import asyncpg

from horai.cli.errors import CommandFailed
from horai.cli.show import say
from horai.db.capacity import InstanceStorage, instance_storage
from horai.db.database_location import DatabaseLocation
from horai.db.isolation import Isolation, grant_roles
from horai.db.migrate import Migration, migrate, pending_migrations, plan_migrations
from horai.db.migration_plan import MigrationPlan
from horai.db.pool import GONE, Platform, opened
from horai.db.verify import Finding, verify
from horai.embedded.admin import is_embedded, opened_for_migrations
from horai.embedded.area import Area
from horai.embedded.visit import directory_of, running
from horai.logs import write_to_stderr


async def apply_migrations(
    place: DatabaseLocation,
    *,
    dry_run: bool,
    isolation: Isolation | None = None,
    admin_url: str | None = None,
    is_offline: bool = False,
) -> list[Migration]:
    """Apply the pending migrations and return them. With `dry_run`, return them without applying any.

    With `admin_url`, that role first creates the roles of row-level security and grants them. With `is_offline`, migrations
    that are not online are applied too.
    """
    if isolation is not None and isolation.single_role and (place.url is None or is_embedded(place.url)):
        raise CommandFailed(
            "The embedded database has the roles of row-level security.",
            "Leave out --single-role, or give --database-url.",
        )
    async with opened_database(place, may_create=not dry_run, migrates=True) as connection:
        if admin_url is not None and not dry_run:
            login = await connection.fetchval("select session_user")
            async with opened(admin_url, "horai migrate") as admin:
                await grant_roles(admin, login)
        return await migrate(
            connection, dry_run=dry_run, isolation=isolation, is_offline=is_offline, progress=_tell_waits
        )


def _tell_waits(line: str) -> None:
    """Print what the migration waits for or builds; the command prints the applied files itself."""
    if not line.startswith("applying "):
        say(line)


async def show_plan(place: DatabaseLocation) -> MigrationPlan:
    """Return the plan of the pending migrations. Applies none."""
    async with opened_database(place, may_create=False, migrates=True) as connection:
        return await plan_migrations(connection)


async def find_violations(place: DatabaseLocation) -> list[Finding]:
    """Check every invariant and return one finding for each. Raises `CommandFailed` if migrations are missing."""
    async with opened_database(place, may_create=False) as connection:
        if missing := await pending_migrations(connection):
            raise CommandFailed(f"The database lacks {len(missing)} migrations.", "horai migrate applies them.")
        return await verify(connection)


async def read_storage(place: DatabaseLocation) -> InstanceStorage:
    """Return the storage of the instances of a database. Raises `CommandFailed` if migrations are missing."""
    async with opened_database(place, may_create=False) as connection:
        if missing := await pending_migrations(connection):
            raise CommandFailed(f"The database lacks {len(missing)} migrations.", "horai migrate applies them.")
        return await instance_storage(connection)


@asynccontextmanager
async def opened_database(
    place: DatabaseLocation, *, may_create: bool, migrates: bool = False
) -> AsyncGenerator[Platform]:
    """Open a database. With `migrates`, the superuser of an embedded one opens it.

    Raises `CommandFailed` if it does not exist and `may_create` is false, or refuses a statement.
    """
    write_to_stderr(logging.WARNING)
    if not may_create:
        _require_database(place)
    async with (
        running(place) as url,
        opened_for_migrations(url) if migrates else opened(url, "horai command") as connection,
    ):
        try:
            yield connection
        except (asyncpg.PostgresError, *GONE) as error:
            raise CommandFailed(f"The database refused the command: {error}.") from error


def _require_database(place: DatabaseLocation) -> None:
    directory = directory_of(place)
    if place.url is None and not Area.at(directory).lock.exists():
        raise CommandFailed(f"There is no database in {directory}.", "horai up and horai migrate create one.")
