"""The census: the stage that counts the live instances of tenants with the quota `liveInstances`.

Writes add to an estimate; only this count takes ended instances off it. A tenant near its limit is counted once a
second, others every ten seconds, and none for more than a twentieth of the time that its count takes. One node counts,
the owner of the first trigger shard. Without such tenants the stage sends one statement every three minutes.
"""

import asyncio
import time
from datetime import datetime, timedelta
from typing import Literal

import structlog

from horai.core.quotas import next_count
from horai.core.shards import Role
from horai.core.wakes import EverywhereWake
from horai.db import quotas
from horai.db.pool import Platform
from horai.db.quotas import CountedTenant
from horai.db.stage_connection import StageConnection
from horai.engine.lease import Lease, leads
from horai.engine.loop import Stage
from horai.features.parts import StageParts
from horai.features.tenants.eraser import Eraser
from horai.operations.archive_place import store_of

log = structlog.get_logger(__name__)

IDLE = timedelta(minutes=3)


class Census:
    """The stage that counts."""

    name = "census"
    is_background: Literal[True] = True

    def __init__(self, line: StageConnection, lease: Lease) -> None:
        self.line = line
        self.signal = asyncio.Event()
        self._lease = lease
        self._due: dict[int, datetime] = {}

    def wake(self) -> None:
        """Look now: a quota was set, or this node may have become the one that counts."""
        self._due.clear()
        self.signal.set()

    async def step(self, now: datetime) -> datetime:
        """Count the tenants that are due. Return the time of the next step."""
        if not self._lease.holds() or not leads(self._lease):
            return now + IDLE
        connection = await self.line.get()
        known = await quotas.tenants_to_count(connection)
        self._due = {tenant.tenant_id: self._due.get(tenant.tenant_id, now) for tenant in known}
        for tenant in known:
            if self._due[tenant.tenant_id] <= now:
                self._due[tenant.tenant_id] = now + await self._count(connection, tenant)
        return min(self._due.values(), default=now + IDLE)

    async def _count(self, connection: Platform, tenant: CountedTenant) -> timedelta:
        """Count the tenant's live instances; return the time until the next count."""
        began = time.monotonic()
        await quotas.begin_count(connection, tenant.tenant_id)
        counted = await quotas.finish_count(connection, tenant.tenant_id)
        return next_count(counted or 0, tenant.limit, timedelta(seconds=time.monotonic() - began))


def stages(parts: StageParts) -> list[Stage]:
    """Build the stage in processes that may own trigger shards."""
    if Role.scheduler not in parts.roles:
        return []
    census = Census(parts.line("census"), parts.lease)
    eraser = Eraser(parts.line("eraser"), parts.lease, parts.wakeups, archive=store_of(parts.settings))
    for wake in (census.wake, eraser.signal.set):
        parts.wakeups.subscribe(EverywhereWake, lambda _, wake=wake: wake())
        parts.lease.on_change.append(wake)
    return [census, eraser]
