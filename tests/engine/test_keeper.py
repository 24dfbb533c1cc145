"""The keeper on a real database: a lease that is renewed, lost, and never trusted too long."""

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import timedelta

import rows
from horai.core.vitals import Vitals
from horai.db import nodes
from horai.db.clock import DatabaseClock
from horai.db.pool import Dedicated
from horai.engine.keeper import TRUST, Keeper

LEASE = timedelta(seconds=1.8)


@asynccontextmanager
async def kept(url: str, lease: timedelta = LEASE) -> AsyncGenerator[Keeper]:
    keeper = Keeper(url, "n", lease, DatabaseClock(), Vitals())
    await keeper.start()
    try:
        yield keeper
    finally:
        await keeper.stop()


async def lease_left(connection: Dedicated, keeper: Keeper) -> timedelta:
    return await connection.fetchval(
        "select lease_until - clock_timestamp() from horai.node where incarnation = $1", keeper.incarnation
    )


async def test_a_lease_is_renewed_long_before_it_ends(url: str, connection: Dedicated):
    async with kept(url) as keeper:
        first = keeper.incarnation
        end = time.monotonic() + 1.5 * LEASE.total_seconds()
        while time.monotonic() < end:
            assert keeper.holds()
            assert await lease_left(connection, keeper) > timedelta(0)
            await asyncio.sleep(0.05)

        assert keeper.incarnation == first
        assert [node.name for node in await nodes.live_nodes(connection)] == ["n"]


async def test_a_blocked_event_loop_misses_no_heartbeat(url: str, connection: Dedicated):
    async with kept(url) as keeper:
        first = keeper.incarnation

        time.sleep(1.5 * LEASE.total_seconds())

        assert keeper.holds()
        assert await lease_left(connection, keeper) > timedelta(0)
        assert keeper.incarnation == first


async def test_a_node_that_was_fenced_takes_a_new_incarnation(url: str, connection: Dedicated):
    async with kept(url) as keeper:
        old = keeper.incarnation
        await connection.execute("update horai.node set fenced_at = now() where incarnation = $1", old)

        async def has_changed() -> bool:
            return keeper.incarnation != old and keeper.holds()

        await rows.until(has_changed)

        assert await nodes.nodes_to_rescue(connection) == [old]
        assert [node.incarnation for node in await nodes.live_nodes(connection)] == [keeper.incarnation]


async def test_a_lease_that_cannot_be_renewed_is_distrusted_before_the_database_ends_it(
    url: str, connection: Dedicated
):
    async with kept(url) as keeper, rows.connections(url, 1) as (holder,):
        async with holder.transaction():
            await holder.execute("select from horai.node where incarnation = $1 for update", keeper.incarnation)

            async def is_distrusted() -> bool:
                return not keeper.holds()

            await rows.until(is_distrusted, within=LEASE.total_seconds())
            assert await lease_left(connection, keeper) > timedelta(0)

        async def is_trusted() -> bool:
            return keeper.holds()

        await rows.until(is_trusted)


async def test_stopping_gives_the_lease_back_at_once(url: str, connection: Dedicated):
    async with kept(url, timedelta(seconds=60)) as keeper:
        incarnation = keeper.incarnation

    assert not keeper.holds()
    assert await nodes.live_nodes(connection) == []
    assert await nodes.nodes_to_rescue(connection) == [incarnation]


async def test_every_boot_is_a_new_incarnation(url: str):
    async with kept(url) as one, kept(url) as other:
        assert one.incarnation != other.incarnation


def test_the_node_trusts_its_lease_for_less_time_than_the_database():
    assert 1 / 3 < TRUST < 1
