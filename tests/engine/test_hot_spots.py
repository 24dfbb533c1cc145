"""Everything due at once: it spreads, no process queues at one row, and starts are on time. The long form has the seed's size."""

import asyncio
from collections import Counter
from datetime import timedelta

import make
import pytest
from rows import until
from sizes import IS_LONG
from stages import workbench
from working import working

from horai import Horai
from horai.core.limits import SHARDS
from horai.core.settings import EngineSettings
from horai.db.pool import Platform

ROWS = 100_000 if IS_LONG else 3_200
BATCH = 800
RATED = 8_000 if IS_LONG else 1_000
"""Instances that one node starts in a second: seed 002 §5."""
WITHIN = 600 if IS_LONG else 60
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


@pytest.mark.timeout(WITHIN + 60)
@pytest.mark.parametrize("jobs", [1, 4], ids=["one job", "one tenant"])
async def test_C65a_a_crowd_due_in_the_same_moment_spreads_over_shards_and_writes_no_shared_row(url: str, jobs: int):
    async with workbench(url) as bench:
        moment = bench.clock.now() - timedelta(seconds=1)
        ids: list[int] = []
        for number in range(jobs):
            name = f"job-{number}"
            await make.job(bench.scope, name)
            for _ in range(ROWS // jobs // BATCH):
                ids += await make.many(bench.scope, BATCH, job=name, at=moment)
        crowd = Counter(instance_id % SHARDS for instance_id in ids)
        before = await versions(bench.connection)
        bench.executor.gate.set()

        dispatcher = bench.dispatcher()
        async with asyncio.timeout(WITHIN):
            while (await bench.states()).get("SUCCESS", 0) < ROWS:
                await dispatcher.step(bench.clock.now())
                await bench.settle()

        assert len(ids) == ROWS
        assert max(crowd.values()) - min(crowd.values()) <= ROWS / SHARDS * 0.1, "all shards alike"
        assert await versions(bench.connection) == before, "no row that they have in common was written"
        assert len(bench.executor.calls) == len({call.instance_id for call in bench.executor.calls}) == ROWS


STARTS = """
select percentile_cont(0.95) within group (order by extract(epoch from claimed_at - execute_time))::float as p95,
    min(extract(epoch from claimed_at - execute_time))::float as least, count(*) as starts, count(distinct execute_time) as moments
from horai.instance_history
"""


async def test_C65b_a_second_at_the_rated_load_of_a_node_that_is_due_in_one_moment_starts_with_a_p95_below_two_seconds(
    url: str, connection: Platform
) -> None:
    app = Horai("crowd", database_url=url)

    async def nothing() -> None:
        pass

    app.job(nothing, name="crowd")
    async with working(app, EngineSettings()):
        await connection.execute(
            "select count(*) from horai.enqueue_many('crowd', array_fill(null::json, array[$1::int]),"
            " array_fill(clock_timestamp() + interval '3 s', array[$1::int]))",
            RATED,
        )

        async def all_are_settled() -> bool:
            return await connection.fetchval("select count(*) from horai.instance_history") == RATED

        await until(all_are_settled)
    row = await connection.fetchrow(STARTS)
    assert row is not None
    print(f"{RATED} in one moment: p95 {row['p95'] * 1000:.0f} ms", flush=True)
    assert (row["starts"], row["moments"]) == (RATED, 1)
    assert 0 <= row["least"] <= row["p95"] < 2.0
