"""Shards on a real database: they are shared, change hands, and never have two keepers."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from itertools import permutations

import pytest
import rows
from leases import LEASE, epochs, holders, kept

from horai.core.limits import SHARDS
from horai.core.shards import Duty, Peer, Role, wanted
from horai.db import nodes, shards
from horai.db.pool import Platform
from horai.engine.lease import NodeLease

LONG = timedelta(seconds=60)
ALL = frozenset(range(SHARDS))


async def silenced(connection: Platform, lease: timedelta) -> int:
    """An incarnation that holds every shard and has been killed just now."""
    incarnation, _ = await nodes.register_node(connection, "dead", "test", 1, "test", lease)
    await shards.take_shards(connection, incarnation, [(duty, shard) for duty in Duty for shard in range(SHARDS)])
    return incarnation


async def shared(*keepers: NodeLease) -> bool:
    """Return true if each node trusts exactly the shards that it should own."""
    peers = [Peer(lease.incarnation) for lease in keepers]
    return all(k.shards(duty) == wanted(duty, k.incarnation, peers) for k in keepers for duty in Duty)


async def test_a_joining_node_gets_its_share_within_two_leases_without_a_nudge(url: str):
    async with kept(url) as one, kept(url) as other, kept(url) as third:
        await rows.until(lambda: shared(one, other, third), within=2 * LEASE.total_seconds())


async def test_a_nudge_is_a_beat_so_that_a_join_takes_no_time(url: str, connection: Platform):
    async with kept(url, LONG) as one, kept(url, LONG) as other:
        assert one.shards(Duty.dispatch) == ALL
        assert other.shards(Duty.dispatch) == frozenset()

        one.nudge()
        await rows.until(lambda: _has_given_half(connection))
        assert one.shards(Duty.dispatch) == wanted(Duty.dispatch, one.incarnation, [Peer(1), Peer(2)])
        other.nudge()
        await rows.until(lambda: shared(one, other))


async def _has_given_half(connection: Platform) -> bool:
    return list((await holders(connection)).values()).count(None) == SHARDS / 2


async def test_every_take_over_has_a_new_epoch_and_a_renewal_has_none(url: str, connection: Platform):
    for boot in (1, 2, 3):
        async with kept(url, LONG) as lease:
            lease.nudge()
            assert set(await epochs(connection)) == {boot}


async def test_the_shards_of_a_silent_node_are_taken_when_its_lease_ends_not_a_beat_later(
    url: str, connection: Platform, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("horai.engine.lease.LONGEST_PAUSE", LONG.total_seconds())
    async with kept(url, LONG) as lease:
        lost = asyncio.Event()
        lease.on_lost_node.append(lost.set)
        silent, _ = await nodes.register_node(connection, "silent", "test", 1, "test", LONG)
        lease.nudge()
        await rows.until(lambda: _has_given_half(connection))
        meant = [(Duty.dispatch, shard) for shard, node in (await holders(connection)).items() if node is None]
        assert len(await shards.take_shards(connection, silent, meant)) == SHARDS / 2
        renewal = await nodes.renew_node(connection, silent, timedelta(seconds=0.7))
        lease.nudge()
        assert renewal is not None
        assert not lost.is_set()

        async def has_all() -> bool:
            return lease.shards(Duty.dispatch) == ALL

        await rows.until(has_all)
        late = await nodes.database_time(connection) - renewal.now - timedelta(seconds=0.7)
        assert timedelta(0) < late < timedelta(seconds=5), "a beat of this lease is 20 s"
        await asyncio.wait_for(lost.wait(), 5)


async def test_no_shard_is_taken_before_the_lease_of_its_holder_has_ended(url: str, connection: Platform):
    dead = await silenced(connection, LONG)

    async with kept(url) as lease:
        assert lease.shards(Duty.dispatch) == lease.shards(Duty.trigger) == frozenset()
        await connection.execute("update horai.node set lease_until = now() where incarnation = $1", dead)
        assert await shards.take_shards(connection, lease.incarnation, [(Duty.dispatch, 0)]) == {}
        await connection.execute("update horai.shard_lease set lease_until = now() where node = $1", dead)
        lease.nudge()

        async def has_all() -> bool:
            return lease.shards(Duty.dispatch) == ALL

        await rows.until(has_all)


async def test_a_node_whose_own_lease_has_ended_takes_nothing(connection: Platform):
    late, _ = await nodes.register_node(connection, "late", "test", 1, "test", timedelta(0))
    fenced, _ = await nodes.register_node(connection, "fenced", "test", 1, "test", LONG)
    await connection.execute("update horai.node set fenced_at = now() where incarnation = $1", fenced)

    for node in (late, fenced):
        assert await shards.take_shards(connection, node, [(Duty.dispatch, 0)]) == {}


async def test_a_lease_that_has_run_out_is_shown_as_nobodys(connection: Platform):
    node, _ = await nodes.register_node(connection, "n", "test", 1, "test", LONG)
    await shards.take_shards(connection, node, [(Duty.dispatch, 0), (Duty.dispatch, 1)])
    await connection.execute("update horai.shard_lease set lease_until = now() where shard = 1 and node = $1", node)

    held, run_out, *_ = await shards.shard_leases(connection)

    assert (held.node, held.node_name, held.epoch) == (node, "n", 1)
    assert (run_out.node, run_out.node_name, run_out.epoch, run_out.lease_until) == (None, None, 1, None)


async def test_a_shard_is_given_back_only_under_the_epoch_it_was_held_under(connection: Platform):
    node, _ = await nodes.register_node(connection, "n", "test", 1, "test", LONG)
    await shards.take_shards(connection, node, [(Duty.dispatch, 0)])
    renewal = await nodes.renew_node(connection, node, LONG)
    assert renewal is not None
    (old,) = [lease for lease in renewal.leases if lease.node == node]
    await shards.give_back_shards(connection, node, [old])
    assert await shards.take_shards(connection, node, [(Duty.dispatch, 0)]) == {(Duty.dispatch, 0): 2}

    await shards.give_back_shards(connection, node, [old])

    assert (await holders(connection))[0] == node


async def test_a_renewal_does_not_regain_a_shard_that_another_node_took(connection: Platform):
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


async def test_handing_over_gives_all_shards_back_and_keeps_the_node_alive(url: str, connection: Platform):
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
        assert set((await holders(connection)).values()) == {None}, (
            "no node takes shards when none is left to serve them"
        )


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
        async with kept(url, LONG, role) as lease:
            assert (lease.shards(Duty.dispatch), lease.shards(Duty.trigger)) == owned


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
                staying = [lease for lease in keepers if lease is not silent]
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
