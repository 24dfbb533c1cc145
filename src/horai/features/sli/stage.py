"""The stage that keeps the service level: one statement every five minutes, on the owner of the first trigger shard."""

import asyncio
from datetime import datetime, timedelta
from typing import Literal

from horai.core.shards import Role
from horai.db.stage_connection import StageConnection
from horai.engine.lease import Lease, leads
from horai.engine.loop import Stage
from horai.features.parts import StageParts
from horai.features.sli import store

EVERY = timedelta(minutes=5)
KEEP = timedelta(days=35)
FORGET_EVERY = timedelta(hours=6)


class ServiceLevelStage:
    """The stage that adds up the minutes."""

    name = "sli"
    is_background: Literal[True] = True

    def __init__(self, line: StageConnection, lease: Lease, now: datetime) -> None:
        self.line = line
        self.signal = asyncio.Event()
        self._lease = lease
        self._forget_at = now + FORGET_EVERY

    async def step(self, now: datetime) -> datetime:
        """Add up the minutes that are over."""
        if not leads(self._lease):
            return now + EVERY
        connection = await self.line.get()
        await store.roll_up_service_level(connection)
        if now >= self._forget_at:
            await store.forget_service_level(connection, KEEP)
            self._forget_at = now + FORGET_EVERY
        return now + EVERY


def stages(parts: StageParts) -> list[Stage]:
    """Build the stage in processes that may own trigger shards."""
    if Role.scheduler not in parts.roles:
        return []
    stage = ServiceLevelStage(parts.line("sli"), parts.lease, parts.now)
    parts.lease.on_change.append(stage.signal.set)
    return [stage]
