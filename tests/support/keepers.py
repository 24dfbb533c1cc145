"""Keepers of leases for tests, and what the database says that they hold."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import timedelta

from horai.core.health import EngineHealth
from horai.core.shards import EVERY_ROLE, Duty, Role
from horai.db import shards
from horai.db.clock import DatabaseClock
from horai.db.pool import Dedicated
from horai.engine.lease import NodeLease

LEASE = timedelta(seconds=1.8)


@asynccontextmanager
async def kept(url: str, lease: timedelta = LEASE, roles: frozenset[Role] = EVERY_ROLE) -> AsyncGenerator[NodeLease]:
    keeper = NodeLease(url, "n", lease, DatabaseClock(), EngineHealth(), roles)
    await keeper.start()
    try:
        yield keeper
    finally:
        await keeper.stop()


async def holders(connection: Dedicated, duty: Duty = Duty.dispatch) -> dict[int, int | None]:
    return {lease.shard: lease.node for lease in await shards.shard_leases(connection) if lease.duty is duty}


async def epochs(connection: Dedicated) -> list[int]:
    return [lease.epoch for lease in await shards.shard_leases(connection)]
