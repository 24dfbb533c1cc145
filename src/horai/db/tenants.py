"""Tenants: one function per statement of sql/tenants.sql."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

import asyncpg

from horai.core.retention import NOT_SET, KeepTimes
from horai.db.catalog import sql
from horai.db.pool import AnyRead, Platform


class TenantStatus(StrEnum):
    """The life of a tenant. A paused one keeps its data and its keys, and none of its instances start."""

    ACTIVE = "active"
    PAUSED = "paused"
    DELETING = "deleting"


@dataclass(frozen=True, slots=True)
class TenantRow:
    """A tenant. `version` counts the changes of its settings."""

    id: int
    name: str
    created_at: datetime
    weight: int
    version: int
    paused_at: datetime | None
    deleting_at: datetime | None

    @property
    def status(self) -> TenantStatus:
        """Return the status."""
        if self.deleting_at is not None:
            return TenantStatus.DELETING
        return TenantStatus.ACTIVE if self.paused_at is None else TenantStatus.PAUSED


async def insert_tenant(connection: Platform, name: str) -> TenantRow | None:
    """Insert a tenant with its signing secret. Return None if the name is taken."""
    return _tenant(await connection.fetchrow(sql("insert_tenant"), name))


async def list_tenants(connection: Platform, after: str, limit: int) -> list[TenantRow]:
    """Return a page of tenants, by name."""
    return [TenantRow(**row) for row in await connection.fetch(sql("list_tenants"), after, limit)]


async def find_tenant(connection: AnyRead, name: str) -> TenantRow | None:
    """Return a tenant by name."""
    return _tenant(await connection.fetchrow(sql("find_tenant"), name))


async def find_tenant_by_id(connection: Platform, tenant_id: int) -> TenantRow | None:
    """Return a tenant by id."""
    return _tenant(await connection.fetchrow(sql("find_tenant_by_id"), tenant_id))


async def lock_tenant(connection: Platform, name: str) -> TenantRow | None:
    """Lock a tenant for a change of its settings. New jobs and queues of it wait."""
    row = _tenant(await connection.fetchrow(sql("lock_tenant"), name))
    if row is not None:
        await connection.execute(sql("hold_tenant"), row.id)
    return row


async def write_tenant(connection: Platform, tenant_id: int, weight: int, *, is_paused: bool) -> TenantRow:
    """Write the settings of a locked tenant, and increase its version."""
    row = await connection.fetchrow(sql("write_tenant"), tenant_id, weight, is_paused)
    assert row is not None  # noqa: S101 — the caller has locked the row
    return TenantRow(**row)


async def read_keep_times(connection: AnyRead, tenant_id: int) -> KeepTimes:
    """Return the times for which a tenant keeps history and dead letters."""
    row = await connection.fetchrow(sql("read_keep_times"), tenant_id)
    return NOT_SET if row is None else KeepTimes(row["keep_history"], row["keep_dead_letters"])


async def write_keep_times(connection: Platform, tenant_id: int, times: KeepTimes) -> None:
    """Write the times of a locked tenant. Waits for a drop of history in progress."""
    await connection.execute(sql("write_keep_times"), tenant_id, times.history, times.dead_letters)


async def shut_queues(connection: Platform, tenant_id: int) -> None:
    """Wait for claims in progress in the queues of a locked tenant, and block claims until the transaction ends."""
    await connection.execute(sql("shut_queues"), tenant_id)


async def hold_queues(connection: Platform, tenant_id: int) -> list[int]:
    """Hold or release the queues of a locked tenant, as its pause and the holds on its dispatch say.

    Return those that changed. No claim under way is missed.
    """
    await shut_queues(connection, tenant_id)
    return [row["id"] for row in await connection.fetch(sql("hold_queues"), tenant_id)]


async def mark_deleting(connection: Platform, tenant_id: int) -> TenantRow:
    """Start the deletion of a locked tenant. It loses its keys and the roles of groups; its jobs take no instances."""
    row = await connection.fetchrow(sql("mark_deleting"), tenant_id)
    assert row is not None  # noqa: S101 — the caller has locked the row
    await connection.fetchrow(sql("revoke_access_to_tenant"), tenant_id)
    await connection.execute(sql("delete_jobs_of_tenant"), tenant_id)
    return TenantRow(**row)


async def tenants_to_erase(connection: Platform) -> dict[int, str]:
    """Return the names of the tenants that are being deleted, by id."""
    return {row["id"]: row["name"] for row in await connection.fetch(sql("tenants_to_erase"))}


async def end_running(connection: Platform, tenant_id: int, limit: int) -> list[tuple[int, int]]:
    """Delete running instances of a tenant that is being deleted; return the id and fence of each."""
    rows = await connection.fetch(sql("end_running_of_tenant"), tenant_id, limit)
    return [(row["id"], row["fence"]) for row in rows]


async def erase_some(connection: Platform, tenant_id: int, limit: int) -> int:
    """Delete up to `limit` rows of each table; return how many. 0 means that only the tenant itself is left."""
    return await connection.fetchval(sql("erase_some"), tenant_id, limit)


async def erase_tenant(connection: Platform, tenant_id: int) -> None:
    """Delete the row of a tenant that has no others left. Its name is free from now on."""
    await connection.execute(sql("end_sessions_in_tenant"), tenant_id)
    await connection.execute(sql("erase_tenant"), tenant_id)


def _tenant(row: asyncpg.Record | None) -> TenantRow | None:
    return None if row is None else TenantRow(**row)
