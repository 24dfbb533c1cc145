"""Lanes, the units of claiming: one function per statement of sql/claim_lanes.sql."""

from dataclasses import dataclass, field

import asyncpg

from horai.core.job import Definition, Priority
from horai.core.queue import QueueSettings, Rate
from horai.db.catalog import sql
from horai.db.pool import Platform, TenantWrite


@dataclass(frozen=True, slots=True)
class Lane:
    """A unit of claiming: a process with its handler can run its instances (empty handler: HTTP)."""

    id: int
    tenant_id: int
    queue: str
    priority: Priority
    handler: str
    queue_id: int = 0
    weight: int = 1
    limits: QueueSettings = field(default_factory=QueueSettings)
    """The limits of its queue."""
    pool_id: int | None = None
    """The permits of its tenant, if the tenant has the quota `concurrency`."""
    is_keyed: bool = False
    """Instances of it have concurrency keys, or had: claims check them."""

    @property
    def is_limited(self) -> bool:
        """Return whether its instances need permits: of the queue, of the tenant, or of both."""
        return self.limits.max_concurrency is not None or self.pool_id is not None


async def lane_of(connection: TenantWrite, tenant_id: int, definition: Definition) -> int:
    """Return the lane of a job's instances; create it if it does not exist."""
    stated = None if definition.priority is None else int(definition.priority)
    for _ in range(2):
        lane = await connection.fetchval(sql("lane_of"), tenant_id, definition.queue, stated, definition.handler)
        if lane is not None:
            return lane
    raise RuntimeError("the lane does not exist and cannot be created")


async def lanes(connection: Platform) -> list[Lane]:
    """Return every lane."""
    return [_lane(row) for row in await connection.fetch(sql("lanes"))]


def _lane(row: asyncpg.Record) -> Lane:
    rate = None if row["rate_count"] is None else Rate(row["rate_count"], row["rate_per"])
    return Lane(
        row["id"],
        row["tenant_id"],
        row["queue"],
        Priority(row["priority"]),
        row["handler"],
        row["queue_id"],
        row["weight"],
        QueueSettings(None, row["max_concurrency"], rate, row["paused"]),
        row["pool_id"],
        row["is_keyed"],
    )
