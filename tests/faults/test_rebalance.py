"""Nodes come and go under load: after each change every node has its share again within two leases."""

from datetime import datetime
from pathlib import Path

import pytest
from sizes import IS_LONG

from faults.cluster import cluster, database_now, is_balanced
from faults.load import load
from faults.outside import receiving, until
from faults.reckoning import reckon
from horai.db.pool import Platform

MOST = 8 if IS_LONG else 3
LEAST = 2
RATE = 50
LEASE = 8.0 if IS_LONG else 4.0
CALM = 1.0 if IS_LONG else 0.2


async def rebalanced(connection: Platform, nodes: int, since: datetime) -> float:
    """Seconds until so many nodes share all shards fairly, by the database's clock."""
    await until(lambda: is_balanced(connection, nodes), 4 * LEASE, f"{nodes} nodes share all shards")
    return (await database_now(connection) - since).total_seconds()


async def joined_at(connection: Platform, name: str) -> datetime:
    return await connection.fetchval("select started_at from horai.node where name = $1", name)


@pytest.mark.timeout(900 if IS_LONG else 180)
async def test_C38_shards_are_rebalanced_within_two_leases_of_a_join_or_a_leave_under_load(
    short_place: Path, url: str, connection: Platform
) -> None:
    names = [f"node-{number}" for number in range(1, MOST + 1)]
    changes: dict[str, float] = {}
    with receiving(short_place / "rebalance.hits") as receiver:
        async with cluster(short_place, url, names[0], lease=LEASE) as nodes:
            async with load(nodes.doors, RATE, receiver.url("/hook?delay=0.05")) as running:
                for number, name in enumerate(names[1:], 2):
                    await nodes.start(name)
                    changes[f"join {number}"] = await rebalanced(connection, number, await joined_at(connection, name))
                    await running.until_more(CALM)
                for number, name in zip(range(MOST - 1, LEAST - 1, -1), names, strict=False):
                    since = await database_now(connection)
                    await nodes.stop(name)
                    changes[f"leave {number}"] = await rebalanced(connection, number, since)
                    await running.until_more(CALM)
            ended = await reckon(connection, receiver, running.acknowledged)
    print(
        f"leases of {LEASE:g} s: {', '.join(f'{what}: {s:.2f} s' for what, s in changes.items())}; {ended}", flush=True
    )
    assert ended.problems + ended.stale == []
    assert {what: seconds for what, seconds in changes.items() if seconds > 2 * LEASE} == {}
    assert ended.recovered == 0  # no node was lost: a node that leaves finishes what it has begun
