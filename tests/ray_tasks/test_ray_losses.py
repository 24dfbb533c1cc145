"""Lost Ray nodes and a lost head under load: every instance is settled once. The long form runs 10,000 tasks."""

import asyncio
import time
from collections import Counter
from typing import Any

import pytest
import ray_app
from ray_app import app
from ray_cluster import needs_ray, ray_cluster
from sizes import IS_LONG
from working import working

from horai.db.pool import Platform
from isolation.isolated_calls import until

pytestmark = [needs_ray, pytest.mark.timeout(3000 if IS_LONG else 600), pytest.mark.usefixtures("on_ray")]
TASKS, LASTING = (10_000, 0.01) if IS_LONG else (60, 0.5)
SUCCESS = 2


async def settled(connection: Platform, count: int) -> None:
    """Wait until so many instances have ended."""
    async with asyncio.timeout(2400 if IS_LONG else 240):
        while await connection.fetchval("select count(*) from horai.instance_history") < count:
            await asyncio.sleep(0.1)


async def lost_attempts(connection: Platform) -> int:
    return await connection.fetchval("select count(*) from horai.attempt where outcome = 'LOST'")


async def require_once(connection: Platform, ids: list[Any]) -> None:
    """Each instance has succeeded once, without a failure, and is in the history once."""
    rows = await connection.fetch("select id, state, retry_count from horai.instance_history")

    assert await connection.fetchval("select count(*) from horai.instance_live") == 0
    assert sorted(row["id"] for row in rows) == sorted(map(int, ids))
    assert Counter((row["state"], row["retry_count"]) for row in rows) == {(SUCCESS, 0): len(ids)}


async def test_every_instance_is_settled_once_when_a_ray_node_is_killed_in_the_middle(connection: Platform):
    with ray_cluster(nodes=2) as cluster:
        async with working(app, reference="ray_app:app", ray_address=cluster.address, concurrency=20):
            begun = time.monotonic()
            handles = await ray_app.takes_a_while.enqueue_many([LASTING] * TASKS)
            await settled(connection, TASKS // 3)
            await until(lambda: cluster.nodes[0].runs("takes_a_while"), 120)
            killed = time.monotonic()
            cluster.nodes[0].kill()
            await settled(connection, TASKS)
            ended = time.monotonic()

    await require_once(connection, [handle.id for handle in handles])
    lost = await lost_attempts(connection)
    print(f"{TASKS} tasks in {ended - begun:.1f} s, a node killed after {killed - begun:.1f} s, {lost} attempts lost")
    assert lost > 0


async def test_instances_wait_for_a_head_that_was_killed_and_run_after_its_restart(connection: Platform):
    with ray_cluster(cpus=2) as cluster:
        async with working(app, reference="ray_app:app", ray_address=cluster.address, concurrency=8):
            handles = await ray_app.takes_a_while.enqueue_many([0.2] * 40)
            await settled(connection, 8)
            assert cluster.head is not None
            cluster.head.kill()
            async with asyncio.timeout(60):
                while await connection.fetchval("select count(*) from horai.instance_live where state = 1"):
                    await asyncio.sleep(0.1)
            assert await connection.fetchval("select count(*) from horai.instance_live") > 0
            cluster.start_head(cpus=2)
            await settled(connection, 40)

    await require_once(connection, [handle.id for handle in handles])
    assert await lost_attempts(connection) > 0
