"""Row-level security between tenants: the roles that it needs, and its policies (decision 0038)."""

from dataclasses import dataclass

import asyncpg

from horai.core.errors import HoraiError
from horai.db.catalog import sql
from horai.db.pool import Platform

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


async def isolate(connection: Platform) -> None:
    """Put the policies of every table in force."""
    await connection.execute(sql("isolate_tables"))


async def merge(connection: Platform) -> None:
    """Take the policies of every table out of force."""
    await connection.execute(sql("merge_tables"))
