"""The keeper on a real database: a lease that is renewed, lost, and never trusted too long; shards that change hands."""

import asyncio
import json
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from itertools import permutations
from pathlib import Path

import make
import pytest
import rows

from horai.core.health import EngineHealth
from horai.core.settings import SHARDS
from horai.core.shards import EVERY_ROLE, Duty, Peer, Role, wanted
from horai.db import nodes, shards
from horai.db.clock import DatabaseClock
from horai.db.pool import Dedicated
from horai.engine.lease import SHORTEST_PAUSE, TRUST, NodeLease

LEASE = timedelta(seconds=1.8)
LONG = timedelta(seconds=60)
ALL = frozenset(range(SHARDS))


@asynccontextmanager
async def kept(url: str, lease: timedelta = LEASE, roles: frozenset[Role] = EVERY_ROLE) -> AsyncGenerator[NodeLease]:
    keeper = NodeLease(url, "n", lease, DatabaseClock(), EngineHealth(), roles)
    await keeper.start()
    try:
        yield keeper
    finally:
        await keeper.stop()


async def silenced(connection: Dedicated, lease: timedelta) -> int:
    """An incarnation that holds every shard and has been killed just now."""
    incarnation, _ = await nodes.register_node(connection, "dead", "test", 1, "test", lease)
    await shards.take_shards(connection, incarnation, [(duty, shard) for duty in Duty for shard in range(SHARDS)])
    return incarnation


async def lease_left(connection: Dedicated, keeper: NodeLease) -> timedelta:
    return await connection.fetchval(
        "select lease_until - clock_timestamp() from horai.node where incarnation = $1", keeper.incarnation
    )


async def holders(connection: Dedicated, duty: Duty = Duty.dispatch) -> dict[int, int | None]:
    return {lease.shard: lease.node for lease in await shards.shard_leases(connection) if lease.duty is duty}


async def epochs(connection: Dedicated) -> list[int]:
    return [lease.epoch for lease in await shards.shard_leases(connection)]


async def shared(*keepers: NodeLease) -> bool:
    """Whether each trusts exactly what it should own."""
    peers = [Peer(keeper.incarnation) for keeper in keepers]
    return all(k.shards(duty) == wanted(duty, k.incarnation, peers) for k in keepers for duty in Duty)


async def test_a_lease_is_renewed_long_before_it_ends(url: str, connection: Dedicated):
    async with kept(url) as keeper:
        first = keeper.incarnation
        end = time.monotonic() + 1.5 * LEASE.total_seconds()
        while time.monotonic() < end:
            assert keeper.holds()
            assert keeper.shards(Duty.dispatch) == keeper.shards(Duty.trigger) == ALL
            assert await lease_left(connection, keeper) > timedelta(0)
            await asyncio.sleep(0.05)

        assert keeper.incarnation == first
        assert [node.name for node in await nodes.live_nodes(connection)] == ["n"]
        assert set(await epochs(connection)) == {1}


async def test_a_blocked_event_loop_misses_no_heartbeat(url: str, connection: Dedicated):
    async with kept(url) as keeper:
        first = keeper.incarnation

        time.sleep(1.5 * LEASE.total_seconds())

        assert keeper.holds()
        assert await lease_left(connection, keeper) > timedelta(0)
        assert keeper.incarnation == first


async def test_a_node_that_was_fenced_takes_a_new_incarnation_and_loses_its_shards(url: str, connection: Dedicated):
    async with kept(url) as keeper:
        old, changes = keeper.incarnation, list[tuple[int, frozenset[int]]]()
        keeper.on_change.append(lambda: changes.append((keeper.incarnation, keeper.shards(Duty.dispatch))))
        await connection.execute("update horai.node set fenced_at = now() where incarnation = $1", old)

        async def has_changed() -> bool:
            return keeper.incarnation != old and keeper.holds()

        await rows.until(has_changed)
        new = keeper.incarnation

        assert await nodes.nodes_to_rescue(connection) == [old]
        assert [node.incarnation for node in await nodes.live_nodes(connection)] == [new]

        async def has_taken_over() -> bool:
            return keeper.shards(Duty.dispatch) == keeper.shards(Duty.trigger) == ALL

        await rows.until(has_taken_over)
        assert changes[0] == (new, frozenset()), "what the old one held is not trusted by the new one"
        assert changes[-1] == (new, ALL)
        assert set(await epochs(connection)) == {2}


async def test_whoever_saw_the_lease_lapse_hears_that_it_holds_again_though_no_beat_saw_it(url: str):
    """It lapses after a beat's look at it and before that beat renews it: a stage that asks then believes it owns nothing."""
    vitals, told = EngineHealth(), asyncio.Event()
    keeper = NodeLease(url, "n", LONG, DatabaseClock(), vitals)
    await keeper.start()
    try:
        keeper.on_change.append(told.set)
        trusted_until, vitals.trusted_until = vitals.trusted_until, 0.0
        assert keeper.shards(Duty.dispatch) == frozenset()
        vitals.trusted_until = trusted_until

        keeper.nudge()
        async with asyncio.timeout(30):
            await told.wait()
        assert keeper.shards(Duty.dispatch) == ALL
    finally:
        await keeper.stop()


async def test_a_lease_that_cannot_be_renewed_is_distrusted_before_the_database_ends_it(
    url: str, connection: Dedicated
):
    async with kept(url) as keeper, rows.connections(url, 1) as (holder,):
        async with holder.transaction():
            await holder.execute("select from horai.node where incarnation = $1 for update", keeper.incarnation)

            async def is_distrusted() -> bool:
                return not keeper.holds() and not keeper.shards(Duty.dispatch)

            await rows.until(is_distrusted, within=LEASE.total_seconds())
            assert await lease_left(connection, keeper) > timedelta(0)

        async def is_trusted() -> bool:
            return keeper.holds() and keeper.shards(Duty.dispatch) == ALL

        await rows.until(is_trusted)


async def test_stopping_gives_the_lease_and_every_shard_back_at_once(url: str, connection: Dedicated):
    async with kept(url, LONG) as keeper:
        incarnation = keeper.incarnation

    assert not keeper.holds()
    assert keeper.shards(Duty.dispatch) == frozenset()
    assert await nodes.live_nodes(connection) == []
    assert await nodes.nodes_to_rescue(connection) == [incarnation]
    assert set((await holders(connection)).values()) == {None}


async def test_every_boot_is_a_new_incarnation(url: str):
    async with kept(url) as one, kept(url) as other:
        assert one.incarnation != other.incarnation


def test_the_node_trusts_its_lease_for_less_time_than_the_database():
    assert 1 / 3 < TRUST < 1


# Shards


async def test_a_join_is_given_its_share_within_two_leases_though_nobody_says_a_word(url: str):
    async with kept(url) as one, kept(url) as other, kept(url) as third:
        await rows.until(lambda: shared(one, other, third), within=2 * LEASE.total_seconds())


async def test_a_nudge_is_a_beat_so_that_a_join_takes_no_time(url: str, connection: Dedicated):
    async with kept(url, LONG) as one, kept(url, LONG) as other:
        assert one.shards(Duty.dispatch) == ALL
        assert other.shards(Duty.dispatch) == frozenset()

        one.nudge()
        await rows.until(lambda: _has_given_half(connection))
        assert one.shards(Duty.dispatch) == wanted(Duty.dispatch, one.incarnation, [Peer(1), Peer(2)])
        other.nudge()
        await rows.until(lambda: shared(one, other))


async def _has_given_half(connection: Dedicated) -> bool:
    return list((await holders(connection)).values()).count(None) == SHARDS / 2


async def test_every_take_over_has_a_new_epoch_and_a_renewal_has_none(url: str, connection: Dedicated):
    for boot in (1, 2, 3):
        async with kept(url, LONG) as keeper:
            keeper.nudge()
            assert set(await epochs(connection)) == {boot}


async def test_the_shards_of_a_silent_node_are_taken_when_its_lease_ends_not_a_beat_later(
    url: str, connection: Dedicated, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("horai.engine.lease.LONGEST_PAUSE", LONG.total_seconds())
    async with kept(url, LONG) as keeper:
        lost = asyncio.Event()
        keeper.on_lost_node.append(lost.set)
        silent, _ = await nodes.register_node(connection, "silent", "test", 1, "test", LONG)
        keeper.nudge()
        await rows.until(lambda: _has_given_half(connection))
        meant = [(Duty.dispatch, shard) for shard, node in (await holders(connection)).items() if node is None]
        assert len(await shards.take_shards(connection, silent, meant)) == SHARDS / 2
        renewal = await nodes.renew_node(connection, silent, timedelta(seconds=0.7))
        keeper.nudge()
        assert renewal is not None
        assert not lost.is_set()

        async def has_all() -> bool:
            return keeper.shards(Duty.dispatch) == ALL

        await rows.until(has_all)
        late = await nodes.database_time(connection) - renewal.now - timedelta(seconds=0.7)
        assert timedelta(0) < late < timedelta(seconds=5), "a beat of this lease is 20 s"
        await asyncio.wait_for(lost.wait(), 5)


async def test_no_shard_is_taken_before_the_lease_of_its_holder_has_ended(url: str, connection: Dedicated):
    dead = await silenced(connection, LONG)

    async with kept(url) as keeper:
        assert keeper.shards(Duty.dispatch) == keeper.shards(Duty.trigger) == frozenset()
        await connection.execute("update horai.node set lease_until = now() where incarnation = $1", dead)
        assert await shards.take_shards(connection, keeper.incarnation, [(Duty.dispatch, 0)]) == {}
        await connection.execute("update horai.shard_lease set lease_until = now() where node = $1", dead)
        keeper.nudge()

        async def has_all() -> bool:
            return keeper.shards(Duty.dispatch) == ALL

        await rows.until(has_all)


async def test_a_node_whose_own_lease_has_ended_takes_nothing(connection: Dedicated):
    late, _ = await nodes.register_node(connection, "late", "test", 1, "test", timedelta(0))
    fenced, _ = await nodes.register_node(connection, "fenced", "test", 1, "test", LONG)
    await connection.execute("update horai.node set fenced_at = now() where incarnation = $1", fenced)

    for node in (late, fenced):
        assert await shards.take_shards(connection, node, [(Duty.dispatch, 0)]) == {}


async def test_a_lease_that_has_run_out_is_shown_as_nobodys(connection: Dedicated):
    node, _ = await nodes.register_node(connection, "n", "test", 1, "test", LONG)
    await shards.take_shards(connection, node, [(Duty.dispatch, 0), (Duty.dispatch, 1)])
    await connection.execute("update horai.shard_lease set lease_until = now() where shard = 1 and node = $1", node)

    held, run_out, *_ = await shards.shard_leases(connection)

    assert (held.node, held.node_name, held.epoch) == (node, "n", 1)
    assert (run_out.node, run_out.node_name, run_out.epoch, run_out.lease_until) == (None, None, 1, None)


async def test_a_shard_is_given_back_only_under_the_epoch_it_was_held_under(connection: Dedicated):
    node, _ = await nodes.register_node(connection, "n", "test", 1, "test", LONG)
    await shards.take_shards(connection, node, [(Duty.dispatch, 0)])
    renewal = await nodes.renew_node(connection, node, LONG)
    assert renewal is not None
    (old,) = [lease for lease in renewal.leases if lease.node == node]
    await shards.give_back_shards(connection, node, [old])
    assert await shards.take_shards(connection, node, [(Duty.dispatch, 0)]) == {(Duty.dispatch, 0): 2}

    await shards.give_back_shards(connection, node, [old])

    assert (await holders(connection))[0] == node


async def test_a_renewal_does_not_bring_back_a_shard_that_somebody_took(connection: Dedicated):
    late, _ = await nodes.register_node(connection, "late", "test", 1, "test", LONG)
    quick, _ = await nodes.register_node(connection, "quick", "test", 1, "test", LONG)
    await shards.take_shards(connection, late, [(Duty.dispatch, 0), (Duty.dispatch, 1)])
    await connection.execute("update horai.node set lease_until = now() where incarnation = $1", late)
    await connection.execute("update horai.shard_lease set lease_until = now() where node = $1", late)
    await shards.take_shards(connection, quick, [(Duty.dispatch, 0)])

    renewal = await nodes.renew_node(connection, late, LONG)

    assert renewal is not None
    assert renewal.kept == {(Duty.dispatch, 1)}
    assert (await holders(connection))[0] == quick


async def test_handing_over_gives_all_shards_back_and_keeps_the_node_alive(url: str, connection: Dedicated):
    async with kept(url, LONG) as leaving, kept(url, LONG) as staying:
        await leaving.hand_over()

        assert leaving.holds()
        assert leaving.shards(Duty.dispatch) == leaving.shards(Duty.trigger) == frozenset()
        assert [(n.is_draining, n.incarnation) for n in await nodes.live_nodes(connection)] == [
            (True, leaving.incarnation),
            (False, staying.incarnation),
        ]
        staying.nudge()

        async def has_all() -> bool:
            return staying.shards(Duty.dispatch) == staying.shards(Duty.trigger) == ALL

        await rows.until(has_all)
        leaving.nudge()
        await staying.hand_over()
        assert set((await holders(connection)).values()) == {None}, "nobody takes what there is nobody to look after"


async def test_handing_over_does_not_wait_for_a_database_that_does_not_answer(url: str):
    async with kept(url) as leaving, rows.connections(url, 1) as (holder,):
        async with holder.transaction():
            await holder.execute("select from horai.node where incarnation = $1 for update", leaving.incarnation)

            await asyncio.wait_for(leaving.hand_over(), LEASE.total_seconds())

            assert leaving.shards(Duty.dispatch) == frozenset()


async def test_only_the_duties_of_its_roles_are_a_nodes(url: str):
    roles = (frozenset({Role.api}), frozenset({Role.scheduler}), frozenset({Role.executor}))
    expected = [(frozenset[int](), frozenset[int]()), (frozenset[int](), ALL), (ALL, frozenset[int]())]
    for role, owned in zip(roles, expected, strict=True):
        async with kept(url, LONG, role) as keeper:
            assert (keeper.shards(Duty.dispatch), keeper.shards(Duty.trigger)) == owned


async def test_no_two_nodes_ever_trust_one_shard(url: str):
    """Each in turn cannot renew until the others have taken over, and comes back without having been fenced."""
    lease = timedelta(seconds=0.9)
    async with (
        kept(url, lease) as one,
        kept(url, lease) as other,
        kept(url, lease) as third,
        rows.connections(url, 1) as (holder,),
    ):
        keepers = (one, other, third)
        doubled = set[int]()
        watching = asyncio.create_task(_watch(keepers, doubled))
        for silent in keepers:
            await rows.until(lambda: shared(*keepers))
            async with holder.transaction():
                await holder.execute("select from horai.node where incarnation = $1 for update", silent.incarnation)
                staying = [keeper for keeper in keepers if keeper is not silent]
                await rows.until(lambda staying=staying: shared(*staying))
                assert not silent.holds()
        await rows.until(lambda: shared(*keepers))
        watching.cancel()

        assert doubled == set()


async def _watch(keepers: Sequence[NodeLease], doubled: set[int]) -> None:
    """Notes what two trust at once: the first still does after the second was asked, as asking takes its time."""
    while True:
        for one, other in permutations(keepers, 2):
            first = one.shards(Duty.dispatch)
            second = other.shards(Duty.dispatch)
            doubled |= first & second & one.shards(Duty.dispatch)
        await asyncio.sleep(0.001)


# What a beat says


async def test_a_beat_probes_the_listeners_and_a_join_and_a_leave_wake_them(url: str, connection: Dedicated):
    heard: list[str] = []
    await connection.add_listener("horai_wake", lambda *said: heard.append(str(said[3])))
    async with kept(url, LONG) as keeper:
        beat = f"beat:{keeper.incarnation}"
        await rows.until(lambda: _has(heard, ["n", beat]))
        heard.clear()
        keeper.nudge()
        await rows.until(lambda: _has(heard, [beat]))
        heard.clear()

    await rows.until(lambda: _has(heard, ["n"]))


async def _has(heard: list[str], words: list[str]) -> bool:
    return heard == words


async def test_nudges_without_end_do_not_make_beats_without_end(url: str, connection: Dedicated):
    heard: list[str] = []
    await connection.add_listener("horai_wake", lambda *said: heard.append(str(said[3])))
    async with kept(url, LONG) as keeper:
        end = time.monotonic() + 0.5
        while time.monotonic() < end:
            keeper.nudge()
            await asyncio.sleep(0)

        assert len([said for said in heard if said.startswith("beat:")]) <= 0.5 / SHORTEST_PAUSE + 2


async def test_a_beat_tells_how_the_process_is_doing(url: str, connection: Dedicated):
    vitals = EngineHealth()
    vitals.in_flight = 7
    keeper = NodeLease(url, "n", LONG, DatabaseClock(), vitals)
    await keeper.start()

    (told,) = await nodes.vitals_of_nodes(connection, 0)
    assert (told.incarnation, told.name, json.loads(told.vitals)["in_flight"]) == (keeper.incarnation, "n", 7)
    assert await nodes.vitals_of_nodes(connection, keeper.incarnation) == []
    await keeper.stop()


async def test_a_keeper_that_cannot_start_does_not_hold_the_process(short_place: Path):
    keeper = NodeLease(
        f"postgresql://nobody@/none?host={short_place}/nowhere", "n", LEASE, DatabaseClock(), EngineHealth()
    )
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(keeper.start(), 0.2)

    await keeper.stop()
    assert not keeper.holds()


async def test_F1b_a_beat_tells_of_rows_that_were_added_and_again_after_their_late_commit(url: str):
    news = asyncio.Event()
    async with (
        kept(url, timedelta(seconds=0.6)) as keeper,
        rows.connections(url, 1) as (late,),
        make.scope(url) as scope,
    ):
        await make.job(scope)
        keeper.on_news.append(news.set)

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
