"""Seed 002 §18, example 4: a node of some shards goes down, and the stand-by takes over when its lease has run out."""

from collections import Counter
from datetime import datetime
from pathlib import Path

import aiohttp
import pytest
from harness import Client

from faults.cluster import Cluster, cluster, incarnation_of, is_balanced, taken_over
from faults.outside import job_document, receiving, until
from faults.reckoning import reckon
from horai.core.limits import SHARDS
from horai.db.pool import Platform

LEASE = 2.0
BEFORE, AFTER = 60, 200
"""Instances that run as the node goes down, and such as come when it is gone: several in each of its shards."""
RETRY = {"maxRetry": 10, "base": "20ms", "cap": "1s"}


@pytest.mark.timeout(120)
async def test_C59d_C38_the_shards_of_a_dead_node_are_taken_by_the_stand_by_when_its_lease_has_run_out(
    short_place: Path, url: str, connection: Platform
) -> None:
    with receiving(short_place / "standby.hits") as receiver:
        async with cluster(short_place, url, "main", "standby", lease=LEASE) as nodes:
            await until(lambda: is_balanced(connection, 2), 4 * LEASE, "both have shards")
            hook = job_document("clear", receiver.url("/clear?delay=0.5"), retry=RETRY)
            running = await added(nodes, BEFORE, hook)
            main, standby = [await incarnation_of(connection, name) for name in ("main", "standby")]
            await until(lambda: has_work(connection, main), 10, "the node runs something")

            await nodes.kill("main")
            leases = await leases_of(connection, main)
            waiting = await added(nodes, AFTER)
            early = await taken_early(connection, main, leases)
            over = await taken_over(connection, main, min(leases.values()), 4 * LEASE)
            ended = await reckon(connection, receiver, running | waiting)
            ran_by = await connection.fetch("select node from horai.instance_history where id = any($1)", list(waiting))

    print(f"shards {over.shards:.2f} s and work {over.rescue:.2f} s after the lease; {ended}", flush=True)
    assert len(leases) == SHARDS, "half of the shards of both duties"
    assert early == []
    assert ended.problems + ended.stale == []
    assert ended.recovered > 0, "else nothing was under way"
    assert Counter(row["node"] for row in ran_by) == {standby: AFTER}


async def added(nodes: Cluster, count: int, job: object = None) -> set[int]:
    """Instances that are due now, through the door of the stand-by."""
    async with aiohttp.ClientSession() as session:
        api = Client(nodes.doors["standby"], session)
        if job is not None:
            assert (await api("POST", "/api/v1/jobs", job)).status == 201
        batch = await api("POST", "/api/v1/jobs/clear/instances/batch", {"items": [{}] * count})
        assert batch.status == 200, batch.json
        return {int(item["instanceId"]) for item in batch.json["items"]}


async def has_work(connection: Platform, node: int) -> bool:
    return await connection.fetchval(
        "select exists (select from horai.instance_live where state = 1 and node = $1)", node
    )


async def leases_of(connection: Platform, node: int) -> dict[tuple[str, int], datetime]:
    """By duty and shard: until when they are the node's. It is dead: it renews none."""
    rows = await connection.fetch("select duty, shard, lease_until from horai.shard_lease where node = $1", node)
    return {(row["duty"], row["shard"]): row["lease_until"] for row in rows}


async def taken_early(connection: Platform, node: int, leases: dict[tuple[str, int], datetime]) -> list[str]:
    """Shards seen with another node before their lease had run out; looks until all of them have been taken."""
    early: list[str] = []

    async def all_are_taken() -> bool:
        rows = await connection.fetch("select duty, shard, node, clock_timestamp() as now from horai.shard_lease")
        taken = [row for row in rows if (row["duty"], row["shard"]) in leases and row["node"] != node]
        early.extend(str(row) for row in taken if row["now"] < leases[row["duty"], row["shard"]])
        return len(taken) == len(leases)

    await until(all_are_taken, 4 * LEASE, "the stand-by has all shards")
    return early
