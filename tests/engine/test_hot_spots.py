"""Everything due at once: it spreads, and no process queues at one row."""

import asyncio
from collections import Counter
from datetime import timedelta

import make
from stages import workbench

from horai.core.settings import SHARDS
from horai.db.pool import Platform

ROWS = 3_200
SHARED = ("tenant", "job", "lane", "queue", "schedule", "node", "shard_lease")
"""Tables whose rows many instances have in common."""


async def versions(connection: Platform) -> dict[str, list[str]]:
    """The version of every shared row: it changes with every write, and with every lock that is written down."""
    return {
        table: [
            row["version"] for row in await connection.fetch(f"select ctid::text || xmin as version from horai.{table}")
        ]
        for table in SHARED
    }


async def test_C65_a_crowd_due_in_the_same_moment_spreads_over_shards_and_writes_no_shared_row(url: str):
    async with workbench(url) as bench:
        await make.job(bench.scope)
        moment = bench.clock.now() - timedelta(seconds=1)
        ids = await make.many(bench.scope, ROWS, at=moment)
        crowd = Counter(instance_id % SHARDS for instance_id in ids)
        before = await versions(bench.connection)
        bench.executor.gate.set()

        dispatcher = bench.dispatcher()
        async with asyncio.timeout(30):
            while (await bench.states()).get("SUCCESS", 0) < ROWS:
                await dispatcher.step(bench.clock.now())
                await bench.settle()

        assert max(crowd.values()) - min(crowd.values()) <= ROWS / SHARDS * 0.1, "one job, all shards alike"
        assert await versions(bench.connection) == before, "no row that they have in common was written"
        assert len(bench.executor.calls) == len({call.instance_id for call in bench.executor.calls}) == ROWS
