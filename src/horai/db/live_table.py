"""Upkeep of the table of live instances: one function per statement of live_table.sql."""

from horai.db.catalog import sql
from horai.db.pool import Platform


async def dead_live_rows(connection: Platform) -> int | None:
    """Return the estimated number of dead rows in the live table, or None if this login may not vacuum it."""
    return await connection.fetchval(sql("dead_live_rows"))


async def vacuum_live_table(connection: Platform) -> None:
    """Vacuum the live table, unless another process does. It cannot run in a transaction."""
    await connection.execute(sql("vacuum_live_table"))
