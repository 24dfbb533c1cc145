"""The secrets that sign a tenant's calls: functions over the statements of sql/signing_secrets.sql."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta

import asyncpg

from horai.core.addresses import TenantReach
from horai.db.catalog import sql
from horai.db.pool import AnyRead, Platform, TenantWrite


@dataclass(frozen=True, slots=True)
class SigningSecret:
    """A secret in force, until `retired_at` if it has a successor. Its text is not in its repr."""

    id: int
    secret: str
    created_at: datetime
    retired_at: datetime | None

    def __repr__(self) -> str:
        return f"SigningSecret(id={self.id})"


async def list_signing_secrets(connection: AnyRead, tenant_id: int) -> list[SigningSecret]:
    """Return the tenant's secrets in force, newest first."""
    return [SigningSecret(**row) for row in await connection.fetch(sql("list_signing_secrets"), tenant_id)]


async def lock_signing_secrets(connection: TenantWrite, tenant_id: int) -> None:
    """Make other rotations of the tenant wait until commit."""
    await connection.execute(sql("lock_signing_secrets"), tenant_id)


async def rotate_signing_secret(
    connection: TenantWrite, tenant_id: int, overlap: timedelta, secret: str | None = None
) -> None:
    """Insert a new secret, retire the others after `overlap`, and delete those that have ended.

    `secret` is the text to store; the database makes one if it is None.
    """
    await connection.execute(sql("forget_signing_secrets"), tenant_id)
    await connection.execute(sql("retire_signing_secrets"), tenant_id, overlap)
    await connection.execute(sql("insert_signing_secret"), tenant_id, secret)


@dataclass(frozen=True, slots=True)
class CallbackSettings:
    """The settings of a tenant's callbacks: the secrets in force, newest first, and the addresses that they may reach."""

    tenant_id: int
    tenant: str
    secrets: tuple[str, ...] = field(repr=False)
    """As they are stored, or opened."""
    reach: TenantReach


async def callback_settings(connection: Platform) -> list[CallbackSettings]:
    """Return the settings of every tenant with a secret in force. Its secrets are as they are stored."""
    return [
        CallbackSettings(row["tenant_id"], row["tenant"], tuple(row["secrets"]), _reach(row))
        for row in await connection.fetch(sql("callback_settings"))
    ]


async def reach_of(connection: Platform, tenant_id: int) -> TenantReach:
    """Return the addresses that a tenant's calls may reach."""
    row = await connection.fetchrow(sql("reach_of"), tenant_id)
    return TenantReach() if row is None else _reach(row)


def _reach(row: asyncpg.Record) -> TenantReach:
    networks = row["networks"]
    return TenantReach(None if networks is None else tuple(networks), row["is_keyed"])


async def replace_signing_secret(connection: Platform, tenant_id: int, secret: str) -> None:
    """Store another text for the secret of a tenant that is being created."""
    await connection.execute(sql("replace_signing_secret"), tenant_id, secret)


async def plain_signing_secrets(connection: Platform, limit: int) -> list[tuple[int, int, str]]:
    """Lock and return secrets that are stored as they are: id, tenant and text."""
    rows = await connection.fetch(sql("plain_signing_secrets"), limit)
    return [(row["id"], row["tenant_id"], row["secret"]) for row in rows]


async def store_sealed_secret(connection: Platform, secret_id: int, sealed: str) -> None:
    """Store the envelope of a secret that the caller has locked."""
    await connection.execute(sql("store_sealed_secret"), secret_id, sealed)


async def add_missing_secrets(connection: Platform) -> None:
    """Create a secret for each tenant that has none."""
    await connection.execute(sql("add_missing_secrets"))
