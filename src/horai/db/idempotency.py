"""Idempotency keys: one function per statement of sql/idempotency.sql."""

from dataclasses import dataclass
from datetime import timedelta

from horai.db.catalog import sql
from horai.db.pool import Connection


@dataclass(frozen=True, slots=True)
class RequestKey:
    """A request's name for itself, and a digest of what it asks."""

    tenant_id: int
    scope: str
    key: str
    digest: bytes


@dataclass(frozen=True, slots=True)
class First:
    """The request that took the key first, and what it made."""

    digest: bytes
    job_id: int | None
    instance_id: int | None


async def take_key(connection: Connection, request: RequestKey) -> bool:
    """Whether this request is the first of its key. Waits for a concurrent one to commit or fail."""
    return (
        await connection.fetchval(sql("take_key"), request.tenant_id, request.scope, request.key, request.digest)
        is not None
    )


async def bind_key(connection: Connection, request: RequestKey, job_id: int, instance_id: int | None) -> None:
    """Remembers what the first request made."""
    await connection.execute(sql("bind_key"), request.tenant_id, request.scope, request.key, job_id, instance_id)


async def key_holder(connection: Connection, request: RequestKey) -> First | None:
    """The first request of this key."""
    row = await connection.fetchrow(sql("key_holder"), request.tenant_id, request.scope, request.key)
    return First(*row.values()) if row else None


async def forget_keys(connection: Connection, older_than: timedelta) -> None:
    """Drops keys nobody will repeat any more."""
    await connection.execute(sql("forget_keys"), older_than)
