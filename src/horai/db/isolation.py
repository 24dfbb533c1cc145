"""Row-level security between tenants: the roles that it needs, and its policies (decision 0038)."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import asyncpg

from horai.core.errors import HoraiError
from horai.db.catalog import sql
from horai.db.pool import Platform

Change: TypeAlias = Callable[[], Awaitable[None]]
TableRunner: TypeAlias = Callable[[Sequence[str], Change], Awaitable[None]]

LOGIN_LOCK = 0x486F72616B
"""The advisory lock under which the login of nodes is created: `migrate` holds another one for longer."""
FIRST_MIGRATION = 26
"""The migration that names the tenant in every row. An older database has not decided on its isolation."""


class RolesMissing(HoraiError):
    """The database lacks the roles of row-level security, and this login cannot create them."""

    code = "SCH_500_ROLES_MISSING"
    title = "Database roles missing"


@dataclass(frozen=True, slots=True)
class Isolation:
    """A choice for a database. Without one, a new database gets row-level security and an existing one stays as it is."""

    single_role: bool


async def is_isolated(connection: Platform) -> bool:
    """Return whether row-level security separates the tenants of this database."""
    return await connection.fetchval(sql("is_isolated"))


async def require_roles(connection: Platform) -> None:
    """Create the missing roles and grant them to this login. Raises `RolesMissing` if it has no right to do so."""
    login = await connection.fetchval("select session_user")
    if not await connection.fetchval(sql("missing_memberships"), login):
        return
    try:
        await grant_roles(connection, login)
    except asyncpg.InsufficientPrivilegeError as error:
        raise RolesMissing(
            f"The role {login!r} is no member of horai_api, horai_auth and horai_engine, and cannot create them: {error}.",
            "Run `horai migrate --admin-url URL` once with a role that can create roles, or `horai migrate --single-role`"
            " to run without row-level security.",
        ) from error


async def grant_roles(connection: Platform, login: str) -> None:
    """Create the missing roles and make `login` a member of all of them."""
    await connection.execute(sql("create_roles"))
    for role in await connection.fetchval(sql("missing_memberships"), login) or ():
        quoted = await connection.fetchval("select quote_ident($1)", login)
        await connection.execute(f"grant {role} to {quoted}")


async def make_login(connection: Platform, login: str) -> None:
    """Create the login of the nodes of an embedded server, unless it exists. Needs the superuser.

    It is one transaction: a login that exists has its roles, and the objects that users created as superuser before.
    """
    async with connection.transaction():
        await connection.execute("select pg_advisory_xact_lock($1)", LOGIN_LOCK)
        for row in await connection.fetch(sql("login_statements"), login):
            await connection.execute(row["statement"])
        await grant_roles(connection, login)


async def run_once(_: Sequence[str], change: Change) -> None:
    """Run the change of tables that no other session uses."""
    await change()


async def isolate(connection: Platform, run: TableRunner = run_once) -> None:
    """Put the policies of every table in force, each table in its own transaction.

    `run` gets the names of the locked tables and a function that it may call again after a lock timeout.
    """
    for table in await connection.fetchval(sql("tables_to_isolate")):
        await run([f"horai.{table}"], partial(_isolate_table, connection, table))
    await run([], partial(_grant_rights, connection))


async def is_unprotected(connection: Platform) -> bool:
    """Return whether a table lacks row-level security, because a process stopped between a migration and its policies."""
    return await connection.fetchval(sql("has_unprotected_table"))


async def _isolate_table(connection: Platform, table: str) -> None:
    async with connection.transaction():
        await connection.execute("select set_config('horai.isolated', $1, true)", table)
        await connection.execute(sql("isolate_table"))


async def _grant_rights(connection: Platform) -> None:
    async with connection.transaction():
        await connection.execute(sql("grant_schema"))
        await connection.execute(sql("grant_views"))


async def merge(connection: Platform) -> None:
    """Take the policies of every table out of force."""
    async with connection.transaction():
        await connection.execute(sql("merge_tables"))
