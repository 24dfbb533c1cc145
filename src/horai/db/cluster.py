"""The identity of the cluster: one function per statement of sql/cluster.sql."""

from uuid import UUID

from horai.db.catalog import sql
from horai.db.pool import Platform


async def cluster_id(connection: Platform) -> UUID:
    """Return the id that distinguishes this database from those of other clusters."""
    return await connection.fetchval(sql("cluster_id"))
