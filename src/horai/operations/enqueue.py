"""Instances without a key, created by the name of their job: the shortest way to insert one."""

import asyncio
from collections.abc import Iterable, Sequence
from datetime import datetime

from horai.core.errors import Duplicate
from horai.core.wakes import LaneWake
from horai.db import instances
from horai.db.claims import Claimable
from horai.db.instances import MadeInstance, Unkeyed
from horai.db.pool import Connection, transaction
from horai.operations import request_keys
from horai.operations.request_keys import Once
from horai.operations.scope import Scope, job_not_found


async def enqueue_within(connection: Connection, tenant_id: int, job: str, items: Sequence[Unkeyed]) -> list[Claimable]:
    """Insert all items in one statement. The caller publishes the wakes.

    The rows are durable when this returns, unless the caller has a transaction open.
    """
    if len(items) == 1:
        one = await instances.enqueue_one(connection, tenant_id, job, items[0])
        made = [] if one is None else [one]
    else:
        made = await instances.enqueue(connection, tenant_id, job, items)
    if items and not made:
        raise job_not_found(job)
    return made


async def enqueue_many(
    scope: Scope, job: str, at: datetime | None, payloads: Iterable[Sequence[str | None]]
) -> list[int]:
    """Insert batch after batch of payloads, all or none. Prepare the next batch while one is written."""
    made: list[MadeInstance | None] = []
    async with transaction(scope.pool) as connection:
        writing: asyncio.Task[MadeInstance | None] | None = None
        try:
            for batch in payloads:
                if writing is not None:
                    made.append(await writing)
                writing = asyncio.create_task(instances.enqueue_many(connection, scope.tenant_id, job, at, batch))
                await asyncio.sleep(0)  # start it before the next batch is prepared
        finally:
            if writing is not None:
                made.append(await writing)
        if None in made:
            raise job_not_found(job)
    written = [one for one in made if one is not None]
    for lane in {one.lane for one in written}:
        scope.wakeups.publish(LaneWake(None, lane, min(one.due for one in written if one.lane == lane)))
    return [instance_id for one in written for instance_id in one.ids]


async def enqueue_once(scope: Scope, job: str, item: Unkeyed, once: Once) -> tuple[int, bool]:
    """Insert one instance per idempotency key. Return its id, and whether this call created it."""
    woken: list[Claimable] = []
    async with transaction(scope.pool) as connection:
        request = request_keys.request_key(scope, f"enqueue:{job}", once)
        if await request_keys.take(connection, scope, request):
            woken = await enqueue_within(connection, scope.tenant_id, job, [item])
            await request_keys.bind(connection, request, await instances.job_of(connection, woken[0].id), woken[0].id)
    if woken:
        scope.wakeups.announce(woken)
        return woken[0].id, True
    first = await request_keys.duplicate_of(scope, request)
    if not isinstance(first, Duplicate) or (made := first.extra.get("instanceId")) is None:
        raise first
    return int(made), False
