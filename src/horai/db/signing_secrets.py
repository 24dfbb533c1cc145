"""The secrets that sign a tenant's calls: functions over the statements of sql/signing_secrets.sql."""

from dataclasses import dataclass
from datetime import datetime, timedelta

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


async def signing_secrets(connection: Connection) -> dict[str, tuple[str, ...]]:
    """Return every tenant's secrets in force, newest first."""
    return {row["tenant"]: tuple(row["secrets"]) for row in await connection.fetch(sql("signing_secrets"))}


async def add_missing_secrets(connection: Connection) -> None:
    """Create a secret for each tenant that has none."""
    await connection.execute(sql("add_missing_secrets"))
