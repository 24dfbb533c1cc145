"""A queue with due work in it, to claim from with and without a limit."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import make

from horai.core.limits import SHARDS
from horai.core.outcome import Release
from horai.core.queue import QueueSettings
from horai.db import claims, queues
from horai.db.claims import ClaimedBy, ClaimedRow, Position
from horai.db.pool import Platform
from horai.operations import queues as setting
from horai.operations.scope import Scope

QUEUE = "press"


@dataclass
class Press:
    """A queue with due work in it."""

    scope: Scope
    connection: Platform
    queue_id: int
    lane: int

    async def limit(self, limit: int | None, **more: Any) -> queues.QueueRow:
        return await setting.set_queue(self.scope, QUEUE, QueueSettings(max_concurrency=limit, **more))

    def positions(self) -> list[Position]:
        return [Position(shard, self.lane, make.LONG_AGO, -1) for shard in range(SHARDS)]

    async def claim(self, connection: Platform, node: int, limit: int, number: int = 1) -> list[ClaimedRow]:
        by = ClaimedBy(node, number, datetime.now(UTC))
        return await queues.claim_limited(connection, by, self.queue_id, self.positions(), limit)

    async def claim_freely(self, connection: Platform, node: int, each: int = 1, number: int = 1) -> list[ClaimedRow]:
        """As a dispatcher does that knows of no limit."""
        by = ClaimedBy(node, number, datetime.now(UTC))
        return await claims.claim_due(connection, by, self.positions(), [each] * SHARDS)

    async def slots(self) -> list[tuple[bool, bool]]:
        """(taken, retired) of every slot, by number."""
        found = await self.connection.fetch(
            "select instance_id is not null, retired from horai.queue_slot where queue_id = $1 order by n",
            self.queue_id,
        )
        return [(row[0], row[1]) for row in found]

    async def taken(self) -> int:
        return sum(taken for taken, _ in await self.slots())


@asynccontextmanager
async def press(url: str, connection: Platform, instances: int = 50) -> AsyncGenerator[Press]:
    async with make.scope(url) as scope:
        job = await make.job(scope, queue=QUEUE)
        await make.many(scope, instances)
        queue = await setting.read_queue(scope, QUEUE)
        yield Press(scope, connection, queue.id, job.lane_id)


def ended(claimed: Sequence[ClaimedRow]) -> list[tuple[int, int]]:
    return [(row.held.id, row.held.fence) for row in claimed]


async def give_back(connection: Platform, claimed: Sequence[ClaimedRow], node: int) -> None:
    """The calls have ended: each row waits again, and its slot is free, in one transaction."""
    left = list(claimed)
    while left:  # rows that another transaction locked were skipped
        async with connection.transaction():
            released = await claims.release_if_running(connection, [(row.held, Release()) for row in left])
            ids = {woken.id for woken in released}
            await queues.free_slots(connection, ended([row for row in left if row.held.id in ids]), node)
        left = [row for row in left if row.held.id not in ids]
