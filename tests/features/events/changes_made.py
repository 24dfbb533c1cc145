"""Changes as tests publish them, what is planned in the end, and waiting for it."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from horai.db.pool import Platform

START = datetime(2100, 1, 1, tzinfo=UTC)


def move(key: str, version: int, **fields: Any) -> dict[str, Any]:
    at = START + timedelta(minutes=version)
    return {"key": key, "executeTime": at.isoformat(), "version": version, **fields}


async def planned(connection: Platform) -> dict[str, int]:
    rows = await connection.fetch("select key, execute_time from horai.instance_live")
    return {key: (time - START) // timedelta(minutes=1) for key, time in rows}


async def until(holds: Callable[[], Awaitable[bool]], within: float = 30.0) -> None:
    async with asyncio.timeout(within):
        while not await holds():
            await asyncio.sleep(0.02)
