"""Partitions of the coming days, made by the first node that needs them."""

import asyncio

from rows import connections

from horai.db.nodes import make_partitions
from horai.db.pool import Platform

DAYS = 40


async def test_nodes_that_start_together_make_every_partition_once(url: str, connection: Platform) -> None:
    async with connections(url, 6) as nodes:
        made = await asyncio.gather(*(make_partitions(node, DAYS) for node in nodes))

    days: int = await connection.fetchval(
        "select count(*) from pg_inherits where inhparent = 'horai.instance_history'::regclass"
    )
    assert days == DAYS + 1  # and the default one
    assert sum(made) == max(made) > 0, "the first makes them all, the others find them made"
