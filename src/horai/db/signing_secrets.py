"""The secrets that sign a tenant's calls: functions over the statements of sql/signing_secrets.sql."""

from dataclasses import dataclass
from datetime import datetime, timedelta

import asyncpg

from horai.core.addresses import TenantReach
from horai.db.catalog import sql
from horai.db.pool import Connection


@dataclass(frozen=True, slots=True)
class SigningSecret:
    """A secret in force, until `retired_at` if it has a successor. Its text is not in its repr."""

    id: int
    secret: str
    created_at: datetime
    retired_at: datetime | None

    def __repr__(self) -> str:
        return f"SigningSecret(id={self.id})"


async def list_signing_secrets(connection: Connection, tenant_id: int) -> list[SigningSecret]:
    """Return the tenant's secrets in force, newest first."""
    return [SigningSecret(**row) for row in await connection.fetch(sql("list_signing_secrets"), tenant_id)]


async def lock_signing_secrets(connection: Connection, tenant_id: int) -> None:
    """Make other rotations of the tenant wait until commit."""
    await connection.execute(sql("lock_signing_secrets"), tenant_id)


async def rotate_signing_secret(connection: Connection, tenant_id: int, overlap: timedelta) -> None:
    """Insert a new secret, retire the others after `overlap`, and delete those that have ended."""
    await connection.execute(sql("forget_signing_secrets"), tenant_id)
    await connection.execute(sql("retire_signing_secrets"), tenant_id, overlap)
    await connection.execute(sql("insert_signing_secret"), tenant_id)


@dataclass(frozen=True, slots=True)
class CallbackSettings:
    """The settings of a tenant's callbacks: the secrets in force, newest first, and the addresses that they may reach."""

    secrets: tuple[str, ...]
    reach: TenantReach

    def __repr__(self) -> str:
        return f"CallbackSettings(reach={self.reach!r})"


async def callback_settings(connection: Connection) -> dict[str, CallbackSettings]:
    """Return the settings of every tenant with a secret in force, by name."""
    rows = await connection.fetch(sql("callback_settings"))
    return {row["tenant"]: CallbackSettings(tuple(row["secrets"]), _reach(row)) for row in rows}


async def reach_of(connection: Connection, tenant_id: int) -> TenantReach:
    """Return the addresses that a tenant's calls may reach."""
    row = await connection.fetchrow(sql("reach_of"), tenant_id)
    return TenantReach() if row is None else _reach(row)


def _reach(row: asyncpg.Record) -> TenantReach:
    networks = row["networks"]
    return TenantReach(None if networks is None else tuple(networks), row["is_keyed"])


async def add_missing_secrets(connection: Connection) -> None:
    """Create a secret for each tenant that has none."""
    await connection.execute(sql("add_missing_secrets"))
