"""Wakes between processes: one function per statement of sql/notify.sql, and LISTEN."""

from collections.abc import Callable
from typing import Any

from horai.db.catalog import sql
from horai.db.pool import Connection, Dedicated

CHANNEL = "horai_wake"

Hearing = Callable[[Any, int, str, Any], None]
"""(the connection, the sending backend's pid, the channel, the payload), as asyncpg calls it."""


async def notify(connection: Connection, payload: str) -> None:
    """Tells every process that listens."""
    await connection.execute(sql("notify"), payload)


async def listen(connection: Dedicated, hearing: Hearing) -> None:
    """From the answer on, `hearing` is called for every notification, until the connection ends."""
    await connection.add_listener(CHANNEL, hearing)
