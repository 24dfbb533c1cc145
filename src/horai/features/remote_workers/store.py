"""Remote workers in the database: one function per statement of store.sql."""

from collections.abc import Sequence

from horai.db.catalog import sql
from horai.db.pool import TenantWrite


async def handlers_of_tenant(connection: TenantWrite, tenant_id: int, handlers: Sequence[str]) -> frozenset[str]:
    """Return those of the handlers for which the tenant has or had a job."""
    rows = await connection.fetch(sql("handlers_of_tenant"), tenant_id, list(handlers))
    return frozenset(row["handler"] for row in rows)
