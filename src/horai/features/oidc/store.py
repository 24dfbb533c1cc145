"""Statements on sign-ins and group mappings: one function per statement of store.sql."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import asyncpg

from horai.core.roles import AccessRole
from horai.db.catalog import sql
from horai.db.pool import Platform


@dataclass(frozen=True, slots=True)
class GroupMapping:
    """A role that a group of the provider has in a tenant; the role platform-admin has no tenant."""

    id: int
    name: str
    role: AccessRole
    tenant: str | None
    created_at: datetime
    created_by: str


async def insert_sign_in(
    connection: Platform, state_hash: bytes, browser_hash: bytes, return_to: str, length: timedelta
) -> None:
    """Begin a sign-in, and delete those that have ended."""
    await connection.execute(sql("delete_ended_sign_ins"))
    await connection.execute(sql("insert_sign_in"), state_hash, browser_hash, return_to, length)


async def take_sign_in(connection: Platform, state_hash: bytes, browser_hash: bytes) -> str | None:
    """Take the sign-in that this browser began, once. Return the page to return to, or None."""
    return await connection.fetchval(sql("take_sign_in"), state_hash, browser_hash)


async def insert_group_mapping(
    connection: Platform, group: str, tenant_id: int | None, role: AccessRole, created_by: str
) -> GroupMapping | None:
    """Give a group a role, and make every node read its callers again. Return None if it has a role there."""
    return _mapping(await connection.fetchrow(sql("insert_group_mapping"), group, tenant_id, role, created_by))


async def find_group_mapping(connection: Platform, group: str, tenant_id: int | None) -> GroupMapping | None:
    """Return the role of a group in a tenant; None for the platform."""
    return _mapping(await connection.fetchrow(sql("find_group_mapping"), group, tenant_id))


async def list_group_mappings(connection: Platform, before: int, limit: int) -> list[GroupMapping]:
    """Return a page of mappings, newest first."""
    rows = await connection.fetch(sql("list_group_mappings"), before, limit)
    return [mapping for row in rows if (mapping := _mapping(row)) is not None]


async def delete_group_mapping(connection: Platform, mapping_id: int) -> tuple[GroupMapping, int | None] | None:
    """Take a role from a group, on every node. Return the mapping and the id of its tenant, or None."""
    row = await connection.fetchrow(sql("delete_group_mapping"), mapping_id)
    mapping = _mapping(row)
    return None if row is None or mapping is None else (mapping, row["tenant_id"])


def _mapping(row: asyncpg.Record | None) -> GroupMapping | None:
    if row is None:
        return None
    fields: dict[str, Any] = {name: row[name] for name in GroupMapping.__slots__}
    fields["role"] = AccessRole(row["role"])
    return GroupMapping(**fields)
