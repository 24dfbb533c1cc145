"""A tenant with due work in two queues, to claim from under the quota `concurrency`."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

import make

from horai.core.limits import SHARDS
from horai.core.queue import QueueSettings
from horai.db import claims, queues
from horai.db.claims import ClaimedBy, ClaimedRow, Position
from horai.db.pool import Platform
from horai.features.tenants.service import TenantChange, TenantSettings, change_tenant
from horai.operations import queues as setting
from horai.operations.scope import Scope


@dataclass
class TenantPress:
    """A tenant with due work in the queues `wide` and `narrow`. Each knows its lane and its id."""

    scope: Scope
    connection: Platform
    lanes: dict[str, int]
    ids: dict[str, int]

    async def quota(self, most: int | None) -> TenantSettings:
        platform = make.platform_scope(self.scope)
        return await change_tenant(platform, "default", TenantChange(quotas={"concurrency": most}))

    async def limit(self, queue: str, limit: int | None, *, paused: bool = False) -> None:
        await setting.set_queue(self.scope, queue, QueueSettings(max_concurrency=limit, paused=paused))

    async def add(self, queue: str, instances: int) -> None:
        """A queue of this name with a job of this name, and due work in it."""
        job = await make.job(self.scope, queue, queue=queue)
        await make.many(self.scope, instances, job=queue)
        self.lanes[queue], self.ids[queue] = job.lane_id, (await setting.read_queue(self.scope, queue)).id

    def positions(self, queue: str) -> list[Position]:
        return [Position(shard, self.lanes[queue], make.LONG_AGO, -1) for shard in range(SHARDS)]

    async def claim(self, connection: Platform, node: int, queue: str, limit: int = 50, n: int = 1) -> list[ClaimedRow]:
        by = ClaimedBy(node, n, datetime.now(UTC))
        return await queues.claim_limited(connection, by, self.ids[queue], self.positions(queue), limit)

    async def claim_freely(self, connection: Platform, node: int, queue: str, n: int = 1) -> list[ClaimedRow]:
        """As a dispatcher does that knows of no limit."""
        by = ClaimedBy(node, n, datetime.now(UTC))
        return await claims.claim_due(connection, by, self.positions(queue), [1] * SHARDS)

    async def pool(self) -> queues.PoolRow:
        pool = await queues.find_pool(self.connection, 1)
        assert pool is not None
        return pool

    async def permits(self) -> list[tuple[bool, bool]]:
        """(taken, retired) of every permit of the tenant, by number."""
        found = await self.connection.fetch(
            "select instance_id is not null, retired from horai.queue_slot where queue_id = $1 order by n",
            (await self.pool()).id,
        )
        return [(row[0], row[1]) for row in found]


@asynccontextmanager
async def tenant_press(url: str, connection: Platform, instances: int = 50) -> AsyncGenerator[TenantPress]:
    async with make.scope(url) as scope:
        press = TenantPress(scope, connection, {}, {})
        for queue in ("wide", "narrow"):
            await press.add(queue, instances)
        yield press
