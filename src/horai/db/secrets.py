"""Named secrets: one function per statement of sql/secrets.sql."""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from horai.db.catalog import sql
from horai.db.pool import AnyRead, TenantRead, TenantWrite


@dataclass(frozen=True, slots=True)
class SecretRow:
    """A named secret without its value."""

    name: str
    version: int
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class SealedSecret:
    """The envelope of a named secret."""

    tenant_id: int
    name: str
    version: int
    value: Mapping[str, Any]


async def lock_secret_names(connection: TenantWrite, tenant_id: int) -> None:
    """Make other transactions that add secrets of the tenant wait until commit."""
    await connection.execute(sql("lock_secret_names"), tenant_id)


async def count_secrets(connection: TenantRead, tenant_id: int) -> int:
    """Return the number of the tenant's secrets."""
    return await connection.fetchval(sql("count_secrets"), tenant_id)


async def insert_secret(
    connection: TenantWrite, tenant_id: int, name: str, value: Mapping[str, Any]
) -> SecretRow | None:
    """Insert a secret; return None if the name is taken."""
    row = await connection.fetchrow(sql("insert_secret"), tenant_id, name, json.dumps(value))
    return None if row is None else SecretRow(**row)


async def replace_secret(
    connection: TenantWrite, tenant_id: int, name: str, value: Mapping[str, Any]
) -> SecretRow | None:
    """Replace the value of a secret; return None if there is none of this name."""
    row = await connection.fetchrow(sql("replace_secret"), tenant_id, name, json.dumps(value))
    return None if row is None else SecretRow(**row)


async def list_secrets(connection: TenantRead, tenant_id: int, after: str, limit: int) -> list[SecretRow]:
    """Return a page of secrets by name, without their values."""
    return [SecretRow(**row) for row in await connection.fetch(sql("list_secrets"), tenant_id, after, limit)]


async def lock_secret(connection: TenantWrite, tenant_id: int, name: str) -> bool:
    """Lock a secret until commit. Return whether it exists."""
    return await connection.fetchval(sql("lock_secret"), tenant_id, name) is not None


async def share_secrets(connection: TenantWrite, tenant_id: int, names: Collection[str]) -> set[str]:
    """Return those of the names that exist, and keep them from being deleted until commit."""
    return {row["name"] for row in await connection.fetch(sql("share_secrets"), tenant_id, list(names))}


async def user_of_secret(connection: TenantRead, tenant_id: int, name: str) -> str | None:
    """Return the name of a job that sends the secret, or None."""
    return await connection.fetchval(sql("user_of_secret"), tenant_id, name)


async def delete_secret(connection: TenantWrite, tenant_id: int, name: str) -> None:
    """Delete a secret that the caller has locked."""
    await connection.execute(sql("delete_secret"), tenant_id, name)


async def secret_values(connection: AnyRead, wanted: Collection[tuple[int, str]]) -> list[SealedSecret]:
    """Return the envelopes of secrets by tenant and name; those that do not exist are absent."""
    tenants, names = [tenant for tenant, _ in wanted], [name for _, name in wanted]
    rows = await connection.fetch(sql("secret_values"), tenants, names)
    return [SealedSecret(row["tenant_id"], row["name"], row["version"], json.loads(row["value"])) for row in rows]
