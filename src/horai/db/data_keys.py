"""Data keys as the database holds them, wrapped: one function per statement of sql/data_keys.sql."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import date

from horai.db import payload_digests
from horai.db.catalog import sql
from horai.db.pool import AnyRead, AnyWrite, Platform


@dataclass(frozen=True, slots=True)
class WrappedKey:
    """A wrapped data key, and the id of the key-encryption key that wraps it."""

    tenant_id: int
    id: str
    wrapped: bytes = field(repr=False)
    kek: str


@dataclass(frozen=True, slots=True)
class WrappedCount:
    """The number of data keys under one key-encryption key, and their first month."""

    kek: str
    keys: int
    since: date


async def current_data_key(connection: AnyWrite, tenant_id: int) -> WrappedKey | None:
    """Return the tenant's key of this month and keep it from being erased until commit."""
    row = await connection.fetchrow(sql("current_data_key"), tenant_id)
    return None if row is None else WrappedKey(tenant_id, row["id"], row["wrapped"], row["kek"])


async def newest_data_key(connection: AnyRead, tenant_id: int) -> WrappedKey | None:
    """Return the tenant's newest key, without a lock."""
    row = await connection.fetchrow(sql("newest_data_key"), tenant_id)
    return None if row is None else WrappedKey(tenant_id, row["id"], row["wrapped"], row["kek"])


async def oldest_data_key(connection: AnyWrite, tenant_id: int) -> WrappedKey | None:
    """Return the tenant's first key and keep it from being erased until commit."""
    row = await connection.fetchrow(sql("oldest_data_key"), tenant_id)
    return None if row is None else WrappedKey(tenant_id, row["id"], row["wrapped"], row["kek"])


async def insert_data_key(connection: AnyWrite, key: WrappedKey) -> None:
    """Insert the tenant's key of this month, unless it has one."""
    await connection.execute(sql("insert_data_key"), key.tenant_id, key.id, key.wrapped, key.kek)


async def data_keys(connection: AnyRead, wanted: Collection[tuple[int, str]]) -> list[WrappedKey]:
    """Return the keys with these tenants and ids; those that were erased are absent."""
    tenants, ids = [tenant for tenant, _ in wanted], [key_id for _, key_id in wanted]
    return [WrappedKey(**row) for row in await connection.fetch(sql("data_keys"), tenants, ids)]


async def data_keys_of_tenant(connection: AnyRead, tenant_id: int) -> list[WrappedKey]:
    """Return all keys of a tenant."""
    return [WrappedKey(**row) for row in await connection.fetch(sql("data_keys_of_tenant"), tenant_id)]


async def count_data_keys(connection: Platform) -> list[WrappedCount]:
    """Count the keys of all tenants by the key-encryption key that wraps them."""
    return [WrappedCount(**row) for row in await connection.fetch(sql("count_data_keys"))]


async def data_keys_to_rewrap(
    connection: Platform, newest: str, known: Collection[str], limit: int
) -> list[WrappedKey]:
    """Lock and return a page of keys that one of the `known` key-encryption keys wraps, but not the newest."""
    rows = await connection.fetch(sql("data_keys_to_rewrap"), newest, list(known), limit)
    return [WrappedKey(**row) for row in rows]


async def rewrap_data_keys(connection: Platform, fresh: Sequence[WrappedKey], kek: str) -> None:
    """Store keys that were wrapped again by `kek`."""
    tenants, ids = [key.tenant_id for key in fresh], [key.id for key in fresh]
    await connection.execute(sql("rewrap_data_keys"), tenants, ids, [key.wrapped for key in fresh], kek)


async def erase_data_keys(connection: Platform, tenant_id: int) -> int:
    """Delete all keys of a tenant, and the digests that they made. Return how many keys there were.

    Transactions that seal with one of the keys end before the digests are deleted; the janitor deletes digests that
    another transaction copies meanwhile.
    """
    async with connection.transaction():
        count = len(await connection.fetch(sql("erase_data_keys"), tenant_id))
        await payload_digests.wipe_payload_digests(connection, tenant_id)
    return count
