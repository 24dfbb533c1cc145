"""Idempotency keys of compositions: one function per statement of features/workflow/composition_store.sql."""

from typing import NamedTuple

from horai.db.catalog import sql
from horai.db.pool import TenantWrite


class TakenKey(NamedTuple):
    """A key of a composition. If it was not free, `first_instance` is its run, and `is_same` says whether that is this composition.

    Both are None if the tenant has as many keys as are kept.
    """

    is_first: bool
    first_instance: int | None
    is_same: bool | None


async def take_key(connection: TenantWrite, tenant_id: int, key: str, form: str, payload: str) -> TakenKey:
    """Take the key of a composition. Waits for another transaction with it, at most the connection's lock_timeout."""
    row = await connection.fetchrow(sql("take_composition_key"), tenant_id, key, form, payload)
    assert row is not None  # noqa: S101 — a function with out parameters returns one row
    return TakenKey(*row)


async def bind_key(connection: TenantWrite, tenant_id: int, key: str, instance_id: int) -> None:
    """Store the instance that the first composition with the key has inserted."""
    await connection.execute(sql("bind_composition_key"), tenant_id, key, instance_id)
