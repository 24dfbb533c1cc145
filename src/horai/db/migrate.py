"""Migrations to the schema of this version: plain `.sql` files, applied in order, each once, under an advisory lock.

`migrate` refuses a changed file, a database with a migration that this version does not know, and a file that would stop the
nodes of a large database for longer than a second (docs/guides/upgrading.md).
"""

import asyncio
from collections.abc import AsyncGenerator, Container, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import partial

import asyncpg

from horai import __version__
from horai.db.catalog import sql
from horai.db.isolation import (
    FIRST_MIGRATION,
    Isolation,
    is_isolated,
    is_unprotected,
    isolate,
    merge,
    require_roles,
)
from horai.db.migration_errors import MigrationError
from horai.db.migration_file import Migration, migrations, newest_known
from horai.db.migration_locks import PAGE
from horai.db.migration_plan import MigrationPlan, PlanStep, plan_of
from horai.db.migration_runner import PATIENT, LockPatience, MigrationRunner, Progress
from horai.db.pool import Platform
from horai.db.releases import may_work_on, minor_of, minor_version, own_minor

__all__ = [
    "Migration",
    "MigrationError",
    "migrate",
    "migrations",
    "newest_known",
    "pending_migrations",
    "plan_migrations",
]

MINIMUM_SERVER = 140000
LOCK = 0x486F726169  # "Horai"
ASK_AGAIN = 0.1
"""Seconds between two tries for the advisory lock."""
SAY_AGAIN = 100
"""Tries between two lines that say so."""
NOT_OWNER = "Run `horai migrate` with the --database-url of the role that owns the schema horai, then start the nodes."
_LEDGER = """
create schema if not exists horai;
create table if not exists horai.migration (
    number integer primary key,
    name text not null,
    checksum text not null,
    at timestamptz not null default clock_timestamp(),
    release text not null default '0.1'
);
"""
_LEDGER_OF_BEFORE = "alter table horai.migration add column if not exists release text not null default '0.1'"


@dataclass(frozen=True, slots=True)
class AppliedMigration:
    """A row of the ledger. `release` is the minor version of the migration."""

    name: str
    checksum: str
    release: str


def _quiet(_: str) -> None:
    """Say nothing."""


async def schema_version(connection: Platform) -> int:
    """Return the number of the newest migration that was applied; 0 for a new database."""
    return max(await _applied(connection), default=0)


async def migrate(
    connection: Platform,
    *,
    dry_run: bool = False,
    isolation: Isolation | None = None,
    is_offline: bool = False,
    accepts_newer: bool = False,
    progress: Progress = _quiet,
    patience: LockPatience = PATIENT,
) -> list[Migration]:
    """Apply the missing migrations and return them; with `dry_run`, only return them.

    A new database gets row-level security between its tenants. `isolation` chooses or changes it. With `is_offline`, files
    that are not online are applied too, if no node is live. With `accepts_newer`, a database that is up to one minor version
    ahead is left as it is.
    """
    await _check_server(connection)
    async with _turn(connection, progress):
        applied, known = await _applied(connection), migrations()
        pending = _pending(applied, known)
        newer = _newer(applied, known)
        if newer and not accepts_newer:
            raise _unknown(applied, newer)
        if dry_run or newer:
            return pending
        runner = MigrationRunner(connection, progress, patience)
        is_single = await _is_single_role(connection, applied, isolation)
        if not is_single and (pending or isolation is not None):
            await require_roles(connection)
        if pending:
            await _require_together(connection)
            plan = await _require_online(connection, pending, is_offline=is_offline)
            with _explained("The ledger of migrations"):
                await runner.retried(["horai.migration"], partial(_keep_ledger, connection))
            for migration in pending:
                progress(f"applying {migration.label}")
                with _explained(f"Migration {migration.label}"):
                    tables = plan.tables_of(migration)
                    await runner.apply(migration, tables, partial(_record, connection, migration))
        if known[-1].number >= FIRST_MIGRATION and (
            pending or isolation is not None or (not is_single and await is_unprotected(connection))
        ):
            await (runner.retried([], partial(merge, connection)) if is_single else isolate(connection, runner.retried))
        return pending


@asynccontextmanager
async def _turn(connection: Platform, progress: Progress) -> AsyncGenerator[None]:
    """Hold the advisory lock of migrations; wait for another process that migrates.

    A session that waits inside `pg_advisory_lock` has a snapshot, which a concurrent index build of the other process would
    wait for: both would wait for ever. And it would be limited by the lock timeout of the session.
    """
    tries = 0
    while not await connection.fetchval("select pg_try_advisory_lock($1)", LOCK):
        if tries % SAY_AGAIN == 0:
            progress("another process migrates this database: waiting until it has finished")
        tries += 1
        await asyncio.sleep(ASK_AGAIN)
    try:
        yield
    finally:
        if not connection.is_closed():
            await connection.execute("select pg_advisory_unlock($1)", LOCK)


async def _is_single_role(connection: Platform, applied: Container[int], isolation: Isolation | None) -> bool:
    if isolation is not None:
        return isolation.single_role
    return FIRST_MIGRATION in applied and not await is_isolated(connection)


async def pending_migrations(connection: Platform) -> list[Migration]:
    """Return the migrations that `migrate` would apply. Raises `MigrationError` if this version cannot use the database."""
    return _pending(await _applied(connection), migrations())


async def plan_migrations(connection: Platform) -> MigrationPlan:
    """Return what `migrate` would do, statement by statement."""
    await _check_server(connection)
    return await plan_of(connection, await pending_migrations(connection))


async def _require_together(connection: Platform) -> None:
    """Refuse to migrate while a node works that is too old for the schema of this version."""
    for name, version in await _live_nodes(connection):
        minor = minor_version(version)
        if minor is not None and not may_work_on(minor, own_minor()):
            raise MigrationError(
                f"Node {name} runs Horai {version}, which cannot work on the schema of {__version__}.",
                "Upgrade one minor version at a time: every node to the next one, and then to the one after it.",
            )


async def _require_online(connection: Platform, pending: Sequence[Migration], *, is_offline: bool) -> MigrationPlan:
    """Return the plan. Refuse a file that is not online: without `is_offline`, and while nodes are live."""
    plan = await plan_of(connection, pending)
    if not plan.refused:
        return plan
    if not is_offline:
        raise _not_online(plan.refused[0])
    if live := await _live_nodes(connection):
        names = ", ".join(dict.fromkeys(name for name, _ in live))
        raise MigrationError(
            f"Nodes are live: {names}. A migration that is not online would stop them in the middle of their work.",
            "Stop every node and worker, then run `horai migrate --offline` again.",
        )
    return plan


def _not_online(step: PlanStep) -> MigrationError:
    rule, size = step.rule, step.size
    assert rule is not None  # noqa: S101 - a refused step breaks a rule
    assert size is not None  # noqa: S101
    where = f"{step.effect.table or 'a table'} ({size.rows:,} rows, {size.size_bytes // 2**20:,} MB)"
    return MigrationError(
        f"Migration {step.migration} is not online: `{step.statement}` takes the lock {step.effect.lock} of {where};"
        f" work: {step.effect.work}. Rule {rule.id}.",
        "Stop every node and worker, then run `horai migrate --offline`. `horai migrate --plan` shows every statement;"
        f" {PAGE} explains the rules.",
    )


async def _live_nodes(connection: Platform) -> list[tuple[str, str]]:
    if await connection.fetchval("select to_regclass('horai.node')") is None:
        return []
    return [(row["name"], row["version"]) for row in await connection.fetch(sql("versions_of_live_nodes"))]


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


async def _applied(connection: Platform) -> dict[int, AppliedMigration]:
    if await connection.fetchval("select to_regclass('horai.migration')") is None:
        return {}
    rows = await connection.fetch(
        "select number, name, checksum, coalesce(to_jsonb(ledger) ->> 'release', '0.1') as release from horai.migration ledger"
    )
    return {row["number"]: AppliedMigration(row["name"], row["checksum"], row["release"]) for row in rows}


def _newer(applied: dict[int, AppliedMigration], known: list[Migration]) -> list[int]:
    """Return the numbers of the applied migrations that this version does not know."""
    return sorted(set(applied) - {migration.number for migration in known})


def _unknown(applied: dict[int, AppliedMigration], newer: list[int]) -> MigrationError:
    label = f"{newer[-1]:04d}_{applied[newer[-1]].name}"
    return MigrationError(
        f"The database has migration {label}, which this version of Horai does not know.",
        "Run the newer Horai, or give another database.",
    )


def _pending(applied: dict[int, AppliedMigration], known: list[Migration]) -> list[Migration]:
    """Return the migrations to apply. Raises if the database is more than one minor version ahead, or a file has changed."""
    newer = _newer(applied, known)
    for number in newer:
        schema = minor_version(applied[number].release)
        if schema is None or not may_work_on(own_minor(), schema):
            raise MigrationError(
                f"The database has migration {number:04d}_{applied[number].name} of Horai {applied[number].release}, and this"
                f" is {__version__}: a node works on the schema of its own minor version and of the next one.",
                "Run the newer Horai, or give another database.",
            )
    for migration in known:
        if migration.number in applied and applied[migration.number].checksum != migration.checksum:
            raise MigrationError(
                f"Migration {migration.label} was applied with content other than this version's.",
                "Use the version that created this database; a released migration never changes.",
            )
    return [migration for migration in known if migration.number not in applied]


async def _keep_ledger(connection: Platform) -> None:
    """Create the ledger, or add the column that an earlier one lacks: nodes read the table with each beat."""
    columns = (
        "select count(*) from pg_attribute where attrelid = to_regclass('horai.migration') and attname = 'release'"
    )
    if await connection.fetchval(columns):
        return
    async with connection.transaction():
        await connection.execute(_LEDGER)
        await connection.execute(_LEDGER_OF_BEFORE)


@contextmanager
def _explained(what: str) -> Generator[None]:
    try:
        yield
    except asyncpg.PostgresError as error:
        hint = NOT_OWNER if isinstance(error, asyncpg.InsufficientPrivilegeError) else None
        raise MigrationError(f"{what} failed: {error}", hint) from error


async def _record(connection: Platform, migration: Migration) -> None:
    await connection.execute(
        "insert into horai.migration (number, name, checksum, release) values ($1, $2, $3, $4)",
        migration.number,
        migration.name,
        migration.checksum,
        minor_of(migration.number),
    )
