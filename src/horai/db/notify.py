"""Wakes between processes: one function per statement of sql/notify.sql, and LISTEN."""

from collections.abc import Callable
from typing import Any

from horai.db.catalog import sql
from horai.db.pool import Platform

CHANNEL = "horai_wake"

Hearing = Callable[[Any, int, str, Any], None]
"""The signature of an asyncpg listener: (connection, pid of the sending backend, channel, payload)."""


async def notify(connection: Platform, payload: str) -> None:
    """Send the payload to every process that listens."""
    await connection.execute(sql("notify"), payload)


async def listen(connection: Platform, hearing: Hearing) -> None:
    """Call `hearing` for every notification, from the return of this call until the connection ends."""
    await connection.add_listener(CHANNEL, hearing)
