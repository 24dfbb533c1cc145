"""The keeper on a real database: a lease that is renewed, lost, and never trusted too long."""

import asyncio
import json
import time
from datetime import timedelta
from pathlib import Path

import make
import pytest
import rows
from leases import LEASE, epochs, holders, kept

from horai.core.health import EngineHealth
from horai.core.limits import SHARDS
from horai.core.shards import Duty
from horai.db import nodes
from horai.db.clock import DatabaseClock
from horai.db.pool import AnyRead, Platform
from horai.engine.lease import SHORTEST_PAUSE, TRUST, NodeLease

LONG = timedelta(seconds=60)
ALL = frozenset(range(SHARDS))


async def lease_left(connection: Platform, lease: NodeLease) -> timedelta:
    return await connection.fetchval(
        "select lease_until - clock_timestamp() from horai.node where incarnation = $1", lease.incarnation
    )


async def test_a_lease_is_renewed_long_before_it_ends(url: str, connection: Platform):
    async with kept(url) as lease:
        first = lease.incarnation
        end = time.monotonic() + 1.5 * LEASE.total_seconds()
        while time.monotonic() < end:
            assert lease.holds()
            assert lease.shards(Duty.dispatch) == lease.shards(Duty.trigger) == ALL
            assert await lease_left(connection, lease) > timedelta(0)
            await asyncio.sleep(0.05)

        assert lease.incarnation == first
        assert [node.name for node in await nodes.live_nodes(connection)] == ["n"]
        assert set(await epochs(connection)) == {1}


async def test_a_blocked_event_loop_misses_no_heartbeat(url: str, connection: Platform):
    async with kept(url) as lease:
        first = lease.incarnation

        time.sleep(1.5 * LEASE.total_seconds())

        assert lease.holds()
        assert await lease_left(connection, lease) > timedelta(0)
        assert lease.incarnation == first


async def test_a_node_that_was_fenced_takes_a_new_incarnation_and_loses_its_shards(url: str, connection: Platform):
    async with kept(url) as lease:
        old, changes = lease.incarnation, list[tuple[int, frozenset[int]]]()
        lease.on_change.append(lambda: changes.append((lease.incarnation, lease.shards(Duty.dispatch))))
        await connection.execute("update horai.node set fenced_at = now() where incarnation = $1", old)

        async def has_changed() -> bool:
            return lease.incarnation != old and lease.holds()

        await rows.until(has_changed)
        new = lease.incarnation

        assert await rows.nodes_to_rescue(connection) == [old]
        assert [node.incarnation for node in await nodes.live_nodes(connection)] == [new]

        async def has_taken_over() -> bool:
            return lease.shards(Duty.dispatch) == lease.shards(Duty.trigger) == ALL

        await rows.until(has_taken_over)
        assert changes[0] == (new, frozenset()), "what the old one held is not trusted by the new one"
        assert changes[-1] == (new, ALL)
        assert set(await epochs(connection)) == {2}


async def test_a_stage_that_saw_the_lease_lapse_is_notified_of_its_renewal_even_if_no_heartbeat_saw_the_lapse(url: str):
    """It lapses after a beat's look at it and before that beat renews it: a stage that asks then believes it owns nothing."""
    health, told = EngineHealth(), asyncio.Event()
    lease = NodeLease(url, "n", LONG, DatabaseClock(), health)
    await lease.start()
    try:
        lease.on_change.append(told.set)
        trusted_until, health.trusted_until = health.trusted_until, 0.0
        assert lease.shards(Duty.dispatch) == frozenset()
        health.trusted_until = trusted_until

        lease.nudge()
        async with asyncio.timeout(30):
            await told.wait()
        assert lease.shards(Duty.dispatch) == ALL
    finally:
        await lease.stop()


async def test_a_lease_that_cannot_be_renewed_is_distrusted_before_the_database_ends_it(url: str, connection: Platform):
    async with kept(url) as lease, rows.connections(url, 1) as (holder,):
        async with holder.transaction():
            await holder.execute("select from horai.node where incarnation = $1 for update", lease.incarnation)

            async def is_distrusted() -> bool:
                return not lease.holds() and not lease.shards(Duty.dispatch)

            await rows.until(is_distrusted, within=LEASE.total_seconds())
            assert await lease_left(connection, lease) > timedelta(0)

        async def is_trusted() -> bool:
            return lease.holds() and lease.shards(Duty.dispatch) == ALL

        await rows.until(is_trusted)


async def test_stopping_gives_the_lease_and_every_shard_back_at_once(url: str, connection: Platform):
    async with kept(url, LONG) as lease:
        incarnation = lease.incarnation

    assert not lease.holds()
    assert lease.shards(Duty.dispatch) == frozenset()
    assert await nodes.live_nodes(connection) == []
    assert await rows.nodes_to_rescue(connection) == [incarnation]
    assert set((await holders(connection)).values()) == {None}


async def test_every_boot_is_a_new_incarnation(url: str):
    async with kept(url) as one, kept(url) as other:
        assert one.incarnation != other.incarnation


def test_the_node_trusts_its_lease_for_less_time_than_the_database():
    assert 1 / 3 < TRUST < 1


# What a beat says


async def test_a_beat_probes_the_listeners_and_a_join_and_a_leave_wake_them(url: str, connection: Platform):
    heard: list[str] = []
    await connection.add_listener("horai_wake", lambda *said: heard.append(str(said[3])))
    async with kept(url, LONG) as lease:
        beat = f"beat:{lease.incarnation}"
        await rows.until(lambda: _has(heard, ["n", beat]))
        heard.clear()
        lease.nudge()
        await rows.until(lambda: _has(heard, [beat]))
        heard.clear()

    await rows.until(lambda: _has(heard, ["n"]))


async def _has(heard: list[str], words: list[str]) -> bool:
    return heard == words


async def test_nudges_without_end_do_not_make_beats_without_end(url: str, connection: Platform):
    heard: list[str] = []
    await connection.add_listener("horai_wake", lambda *said: heard.append(str(said[3])))
    async with kept(url, LONG) as lease:
        end = time.monotonic() + 0.5
        while time.monotonic() < end:
            lease.nudge()
            await asyncio.sleep(0)

        assert len([said for said in heard if said.startswith("beat:")]) <= 0.5 / SHORTEST_PAUSE + 2


async def test_a_beat_tells_how_the_process_is_doing(url: str, connection: Platform):
    health = EngineHealth()
    health.in_flight = 7
    lease = NodeLease(url, "n", LONG, DatabaseClock(), health)
    await lease.start()

    (told,) = await nodes.health_of_nodes(connection, 0)
    assert (told.incarnation, told.name, json.loads(told.health)["in_flight"]) == (lease.incarnation, "n", 7)
    assert await nodes.health_of_nodes(connection, lease.incarnation) == []
    await lease.stop()


async def test_a_keeper_that_cannot_start_does_not_hold_the_process(short_place: Path):
    lease = NodeLease(
        f"postgresql://nobody@/none?host={short_place}/nowhere", "n", LEASE, DatabaseClock(), EngineHealth()
    )
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(lease.start(), 0.2)

    await lease.stop()
    assert not lease.holds()


async def test_F1b_a_beat_tells_of_rows_that_were_added_and_again_after_their_late_commit(url: str):
    news = asyncio.Event()
    async with (
        kept(url, timedelta(seconds=0.6)) as lease,
        rows.connections(url, 1) as (late,),
        make.scope(url) as scope,
    ):
        await make.job(scope)
        lease.on_news.append(news.set)

        async def heard(within: float) -> bool:
            news.clear()
            try:
                async with asyncio.timeout(within):
                    await news.wait()
            except TimeoutError:
                return False
            return True

        while await heard(0.5):
            """Until the start is old news."""
        async with late.transaction():
            await late.execute("select horai.enqueue('publish')")
            assert await heard(5)
            assert await heard(5), "as long as the transaction may still commit"
            assert await heard(5)
        assert await heard(5), "the first beat after the commit"
        while await heard(0.5):
            """It ends."""


class CountedClock(DatabaseClock):
    """A clock whose questions are counted, and whose answers leave it uncertain by `width` seconds."""

    def __init__(self, width: float) -> None:
        super().__init__()
        self.known_to = width
        self.asked = 0

    @property
    def width(self) -> float:
        return self.known_to

    async def ask(self, connection: AnyRead) -> None:
        self.asked += 1
        await super().ask(connection)


@pytest.mark.parametrize(("width", "asked"), [(0.01, 3), (0.0001, 0)])
async def test_the_time_is_asked_for_alone_only_while_renewals_tell_it_badly_and_three_times_a_minute(
    url: str, width: float, asked: int
):
    clock, health = CountedClock(width), EngineHealth()
    lease = NodeLease(url, "n", LONG, clock, health)
    await lease.start()
    try:
        first = health.renewed_at
        lease.nudge()

        async def is_renewed() -> bool:
            return health.renewed_at != first

        await rows.until(is_renewed)
        assert clock.asked == asked
    finally:
        await lease.stop()
