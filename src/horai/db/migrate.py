"""Migrations to the schema of this version: plain `.sql` files, applied in order, each once, under an advisory lock.

A file whose first line is `-- no-transaction` runs outside a transaction. `migrate` refuses a changed file, and a
database with a migration that this version does not know: a guess could lose data.
"""

import hashlib
import re
from collections.abc import Container
from dataclasses import dataclass
from importlib import resources

import asyncpg

from horai.core.errors import HoraiError
from horai.db.isolation import FIRST_MIGRATION, Isolation, is_isolated, isolate, merge, require_roles
from horai.db.pool import Platform

MINIMUM_SERVER = 140000
LOCK = 0x486F726169  # "Horai"
NOT_OWNER = "Run `horai migrate` with the --database-url of the role that owns the schema horai, then start the nodes."
_FILE = re.compile(r"^(\d{4})_(\w+)\.sql$")
_LEDGER = """
create schema if not exists horai;
create table if not exists horai.migration (
    number integer primary key,
    name text not null,
    checksum text not null,
    at timestamptz not null default clock_timestamp()
);
"""


class MigrationError(HoraiError):
    """The database cannot be migrated to this version."""

    code = "SCH_500_MIGRATION"
    title = "Migration refused"


@dataclass(frozen=True, slots=True)
class Migration:
    """One migration file."""

    number: int
    name: str
    text: str

    @property
    def checksum(self) -> str:
        """Return the SHA-256 of the file."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    @property
    def in_transaction(self) -> bool:
        """Return False for a file that PostgreSQL refuses in a transaction (`create index concurrently`)."""
        return not self.text.startswith("-- no-transaction")


def migrations() -> list[Migration]:
    """Return all migrations of this version, in order."""
    found: list[Migration] = []
    for file in resources.files("horai.db").joinpath("migrations").iterdir():
        if match := _FILE.match(file.name):
            found.append(Migration(int(match[1]), match[2], file.read_text("utf-8")))
    return sorted(found, key=lambda migration: migration.number)


def newest_known() -> int:
    """Return the number of the newest migration of this version."""
    return migrations()[-1].number


async def schema_version(connection: Platform) -> int:
    """Return the number of the newest migration that was applied; 0 for a new database."""
    return max(await _applied(connection), default=0)


async def migrate(
    connection: Platform, *, dry_run: bool = False, isolation: Isolation | None = None
) -> list[Migration]:
    """Apply the missing migrations and return them; with `dry_run`, only return them.

    A new database gets row-level security between its tenants. `isolation` chooses or changes it.
    """
    await _check_server(connection)
    await connection.execute("select pg_advisory_lock($1)", LOCK)
    try:
        applied = await _applied(connection)
        known = migrations()
        pending = _pending(applied, known)
        if not dry_run and (pending or isolation is not None):
            is_single = await _is_single_role(connection, applied, isolation)
            if not is_single:
                await require_roles(connection)
            for migration in pending:
                await _apply(connection, migration)
            if known[-1].number >= FIRST_MIGRATION:
                async with connection.transaction():
                    await (merge(connection) if is_single else isolate(connection))
        return pending
    finally:
        await connection.execute("select pg_advisory_unlock($1)", LOCK)


async def _is_single_role(connection: Platform, applied: Container[int], isolation: Isolation | None) -> bool:
    if isolation is not None:
        return isolation.single_role
    return FIRST_MIGRATION in applied and not await is_isolated(connection)


async def pending_migrations(connection: Platform) -> list[Migration]:
    """Return the migrations that `migrate` would apply."""
    return _pending(await _applied(connection), migrations())


async def _check_server(connection: Platform) -> None:
    number = int(await connection.fetchval("show server_version_num"))
    if number < MINIMUM_SERVER:
        raise MigrationError(f"PostgreSQL {number // 10000} is too old.", "Horai needs PostgreSQL 14 or newer.")
    for setting in ("fsync", "synchronous_commit"):
        if await connection.fetchval(f"show {setting}") == "off":
            raise MigrationError(
                f"This PostgreSQL runs with {setting}=off: a power cut would lose acknowledged work.",
                f"Set {setting}=on, or leave --database-url out to use the embedded database.",
            )


async def _applied(connection: Platform) -> dict[int, tuple[str, str]]:
    if await connection.fetchval("select to_regclass('horai.migration')") is None:
        return {}
    rows = await connection.fetch("select number, name, checksum from horai.migration")
    return {row["number"]: (row["name"], row["checksum"]) for row in rows}


def _pending(applied: dict[int, tuple[str, str]], known: list[Migration]) -> list[Migration]:
    numbers = {migration.number for migration in known}
    if newer := sorted(set(applied) - numbers):
        raise MigrationError(
            f"The database has migration {newer[-1]:04d}_{applied[newer[-1]][0]}, which this version of Horai does not know.",
            "Run the newer Horai, or give another database.",
        )
    for migration in known:
        if migration.number in applied and applied[migration.number][1] != migration.checksum:
            raise MigrationError(
                f"Migration {migration.number:04d}_{migration.name} was applied with content other than this version's.",
                "Use the version that created this database; a released migration never changes.",
            )
    return [migration for migration in known if migration.number not in applied]


async def _apply(connection: Platform, migration: Migration) -> None:
    try:
        if migration.in_transaction:
            async with connection.transaction():
                await connection.execute(_LEDGER)
                await connection.execute(migration.text)
                await _record(connection, migration)
        else:
            await connection.execute(migration.text)
            await _record(connection, migration)
    except asyncpg.PostgresError as error:
        hint = NOT_OWNER if isinstance(error, asyncpg.InsufficientPrivilegeError) else None
        raise MigrationError(f"Migration {migration.number:04d}_{migration.name} failed: {error}", hint) from error


async def _record(connection: Platform, migration: Migration) -> None:
    await connection.execute(
        "insert into horai.migration (number, name, checksum) values ($1, $2, $3)",
        migration.number,
        migration.name,
        migration.checksum,
    )
