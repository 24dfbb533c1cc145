"""Sessions of users: functions over the statements of sql/user_sessions.sql."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from horai.core.roles import AccessRole, RoleGrant, best_grants
from horai.db.catalog import sql
from horai.db.pool import Platform


@dataclass(frozen=True, slots=True)
class UserInForce:
    """A user with a session that has not ended, and the grant in whose tenant the user acts."""

    subject: str
    name: str
    grants: tuple[RoleGrant, ...]
    chosen: RoleGrant
    seconds_left: float


@dataclass(frozen=True, slots=True)
class UserWrite:
    """A user who has signed in. `groups` are those that the provider named."""

    subject: str
    name: str
    groups: Sequence[str]


async def grants_of_groups(connection: Platform, groups: Sequence[str]) -> tuple[RoleGrant, ...]:
    """Return what these groups give: the best role of each tenant, by name, then the platform."""
    rows = await connection.fetch(sql("grants_of_groups"), list(groups))
    return best_grants(RoleGrant(row["tenant_id"], row["tenant"], AccessRole(row["role"])) for row in rows)


async def user_of_session(connection: Platform, session_hash: bytes) -> UserInForce | None:
    """Return the user of a session that has not ended.

    Return None if no group gives the chosen tenant any longer: a user must never act in another tenant unasked.
    """
    rows = await connection.fetch(sql("user_of_session"), session_hash)
    if not rows:
        return None
    grants = best_grants(RoleGrant(row["tenant_id"], row["tenant"], AccessRole(row["role"])) for row in rows)
    session = rows[0]
    chosen = next((grant for grant in grants if grant.tenant_id == session["chosen_tenant_id"]), None)
    if chosen is None:
        return None
    return UserInForce(session["subject"], session["user_name"], grants, chosen, session["seconds_left"])


async def insert_user_session(
    connection: Platform, session_hash: bytes, user: UserWrite, tenant_id: int | None, length: timedelta
) -> None:
    """Open a session of a user, who acts in this tenant; None stands for the platform."""
    groups = list(user.groups)
    await connection.execute(
        sql("insert_user_session"), session_hash, user.subject, user.name, groups, tenant_id, length
    )


async def move_user_session(
    connection: Platform, session_hash: bytes, new_hash: bytes, tenant_id: int | None
) -> float | None:
    """Give a user's session another hash and tenant. Return its remaining seconds, or None if it has ended."""
    return await connection.fetchval(sql("move_user_session"), session_hash, new_hash, tenant_id)
