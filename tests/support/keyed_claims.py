"""Instances with concurrency keys, and claims that check them."""

from datetime import UTC, datetime

import make

from horai.core.limits import SHARDS
from horai.db import concurrency_keys
from horai.db.claims import ClaimedBy, Position
from horai.db.concurrency_keys import KeyedRows
from horai.db.pool import Platform
from horai.operations.scope import Scope

JOB = "publish"


async def add(scope: Scope, *keys: str, job: str = JOB, at: datetime | None = None) -> list[int]:
    """Add an instance for each key."""
    async with scope.write() as connection:
        made = await concurrency_keys.enqueue_with_keys(connection, scope.tenant_id, job, at, [None] * len(keys), keys)
    assert made is not None
    return [*made.ids]


async def positions(connection: Platform) -> list[Position]:
    return [
        Position(shard, lane, make.LONG_AGO, -1) for lane in await make.lanes(connection) for shard in range(SHARDS)
    ]


async def claim(connection: Platform, node: int, number: int = 1, each: int = 1_000) -> KeyedRows:
    """Claim from every lane, as a claimer does that knows of keys."""
    scans = await positions(connection)
    by = ClaimedBy(node, number, datetime.now(UTC))
    return await concurrency_keys.claim_keyed(connection, by, scans, [each] * len(scans))
