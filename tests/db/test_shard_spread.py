"""Ids of short sessions spread over the shards."""

from collections import Counter

import asyncpg
import make

from horai.core.limits import SHARDS
from horai.db.pool import Dedicated, Platform

SESSIONS = 1000


async def test_a_thousand_sessions_with_one_row_each_spread_over_all_shards(url: str, connection: Platform):
    """`discard sequences` forgets the ids that a session has in stock, as its end does."""
    async with make.scope(url) as scope:
        await make.job(scope)
    for _ in range(SESSIONS):
        await connection.execute("select horai.enqueue('publish'); discard sequences")

    rows = await connection.fetch("select id, shard from horai.instance_live")

    assert all(row["shard"] == row["id"] % SHARDS for row in rows)
    counts = Counter(row["shard"] for row in rows)
    even = SESSIONS / SHARDS
    assert set(counts) == set(range(SHARDS))
    assert all(0.8 * even <= count <= 1.2 * even for count in counts.values()), counts


async def test_connections_with_one_row_each_spread_over_all_shards(url: str):
    async with make.scope(url) as scope:
        await make.job(scope)
        for _ in range(SHARDS):
            session: Dedicated = await asyncpg.connect(url)
            await session.execute("select horai.enqueue('publish')")
            await session.close()

        async with make.platform(scope).acquire() as connection:
            assert await connection.fetchval("select count(distinct shard) from horai.instance_live") == SHARDS
