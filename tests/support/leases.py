"""Leases of nodes for tests, and the shards that they hold by the database."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import timedelta

from horai.core.health import EngineHealth
from horai.core.shards import EVERY_ROLE, Duty, Role
from horai.db import shards
from horai.db.clock import DatabaseClock
from horai.db.pool import Platform
from horai.engine.lease import NodeLease

LEASE = timedelta(seconds=1.8)


@asynccontextmanager
async def kept(url: str, time: timedelta = LEASE, roles: frozenset[Role] = EVERY_ROLE) -> AsyncGenerator[NodeLease]:
    lease = NodeLease(url, "n", time, DatabaseClock(), EngineHealth(), roles)
    await lease.start()
    try:
        yield lease
    finally:
        await lease.stop()


async def holders(connection: Platform, duty: Duty = Duty.dispatch) -> dict[int, int | None]:
    return {lease.shard: lease.node for lease in await shards.shard_leases(connection) if lease.duty is duty}


async def epochs(connection: Platform) -> list[int]:
    return [lease.epoch for lease in await shards.shard_leases(connection)]
