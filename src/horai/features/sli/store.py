"""The service level in the database: one function per statement of store.sql."""

from datetime import datetime, timedelta

from horai.db.catalog import sql
from horai.db.pool import Platform
from horai.features.sli.rules import LAST_CLASS, LevelCounts


async def roll_up_service_level(connection: Platform) -> int:
    """Add the counts of finished minutes; return how many minutes were written."""
    return await connection.fetchval(sql("roll_up_service_level"), LAST_CLASS)


async def forget_service_level(connection: Platform, keep: timedelta) -> None:
    """Delete minutes that are older than `keep`."""
    await connection.execute(sql("forget_service_level"), keep)


async def service_level_since(connection: Platform, period: timedelta) -> list[tuple[datetime, LevelCounts]]:
    """Return the counts of the period per hour, oldest first."""
    rows = await connection.fetch(sql("service_level_since"), period)
    return [(row["hour"], LevelCounts(row["started"], row["on_time"])) for row in rows]
