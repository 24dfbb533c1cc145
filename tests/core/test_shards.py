"""Ownership of shards: the same on every node, fair, and with little movement."""

from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horai.core.limits import SHARDS
from horai.core.settings import EngineSettings
from horai.core.shards import (
    EVERY_ROLE,
    Duty,
    Peer,
    Role,
    ShardLease,
    lease_name,
    next_expiry,
    owner_of,
    rebalance,
    roles_of,
    wanted,
)

incarnations = st.sets(st.integers(1, 10**6), min_size=1, max_size=40)


def peers(*nodes: int) -> list[Peer]:
    return [Peer(node) for node in nodes]


def owners(nodes: list[Peer], duty: Duty = Duty.dispatch) -> dict[int, int | None]:
    return {shard: owner_of(duty, shard, nodes) for shard in range(SHARDS)}


def leases(held: dict[int, int | None], left: float = 5.0) -> list[ShardLease]:
    return [ShardLease(Duty.dispatch, shard, node, 1, left if node else 0.0) for shard, node in held.items()]


def test_C47_a_lease_is_named_after_its_shard_and_lasts_8000_ms():
    assert lease_name(Duty.dispatch, 7) == "dispatch:7"
    assert EngineSettings().lease.total_seconds() * 1000 == 8000


@given(nodes=incarnations)
def test_the_shard_counts_of_two_nodes_differ_by_at_most_one(nodes: set[int]):
    load = Counter(owners(peers(*nodes)).values())

    assert sum(load.values()) == SHARDS
    assert max(load[node] for node in nodes) - min(load[node] for node in nodes) <= 1


@given(nodes=incarnations, dice=st.randoms())
def test_every_node_computes_the_same_owners_for_any_order_of_its_peers(nodes: set[int], dice: Random):
    shuffled = peers(*nodes)
    dice.shuffle(shuffled)

    assert owners(shuffled) == owners(peers(*sorted(nodes)))
    shares = [wanted(Duty.dispatch, node, shuffled) for node in nodes]
    assert sorted(shard for share in shares for shard in share) == list(range(SHARDS))


def test_the_answer_is_the_same_in_every_process_and_version():
    assert [owner_of(Duty.dispatch, shard, peers(1, 2, 3)) for shard in range(8)] == [3, 2, 3, 1, 3, 2, 3, 1]
    assert [owner_of(Duty.trigger, shard, peers(1, 2, 3)) for shard in range(8)] == [3, 3, 2, 2, 3, 2, 1, 1]


@pytest.mark.parametrize("count", [2, 3, 4, 8])
def test_a_join_moves_little_more_than_the_share_of_the_newcomer(count: int):
    needless = 0
    for first in range(100):
        nodes = [first * 100 + n for n in range(1, count + 1)]
        before, after = owners(peers(*nodes)), owners(peers(*nodes, 99_999))
        needless += sum(before[shard] != after[shard] != 99_999 for shard in before)

    assert needless / 100 <= SHARDS / 10


@pytest.mark.parametrize("count", [2, 3, 4, 8])
def test_a_leave_moves_little_more_than_what_was_left_behind(count: int):
    needless = 0
    for first in range(100):
        gone, *staying = [first * 100 + n for n in range(1, count + 1)]
        before, after = owners(peers(gone, *staying)), owners(peers(*staying))
        needless += sum(after[shard] != before[shard] != gone for shard in before)

    assert needless / 100 <= SHARDS / 8


def test_only_nodes_of_the_role_that_live_and_stay_are_owners():
    nodes = [
        Peer(1, frozenset({Role.api, Role.executor})),
        Peer(2, frozenset({Role.scheduler})),
        Peer(3, left=0.0),
        Peer(4, is_draining=True),
        Peer(5, is_closed=True),
    ]

    assert set(owners(nodes, Duty.dispatch).values()) == {1}
    assert set(owners(nodes, Duty.trigger).values()) == {2}
    assert owner_of(Duty.trigger, 0, nodes[:1]) is None
    assert wanted(Duty.trigger, 1, nodes) == frozenset()


def test_only_the_owner_takes_a_shard_that_is_free_or_whose_lease_has_expired():
    mine = wanted(Duty.dispatch, 1, peers(1, 2))
    free = leases(dict.fromkeys(range(SHARDS)))
    run_out = leases(dict.fromkeys(range(SHARDS), 9), left=-0.001)
    held = leases(dict.fromkeys(range(SHARDS), 9), left=0.001)

    for shards in (free, run_out):
        assert {shard for _, shard in rebalance(1, peers(1, 2), shards).take} == mine
    assert rebalance(1, peers(1, 2), held).take == ()


def test_only_what_another_live_node_should_own_is_given_back():
    all_mine = leases(dict.fromkeys(range(SHARDS), 1))
    theirs = wanted(Duty.dispatch, 2, peers(1, 2))

    assert rebalance(1, peers(1), all_mine).give == ()
    assert {lease.shard for lease in rebalance(1, peers(1, 2), all_mine).give} == theirs
    assert rebalance(1, [Peer(1), Peer(2, left=-1.0)], all_mine).give == ()


def test_a_draining_node_gives_everything_back_and_takes_nothing():
    half = leases({shard: 1 if shard % 2 else None for shard in range(SHARDS)})

    moves = rebalance(1, [Peer(1, is_draining=True), Peer(2)], half)

    assert moves.take == ()
    assert {lease.shard for lease in moves.give} == {shard for shard in range(SHARDS) if shard % 2}


@given(nodes=st.lists(st.sets(st.integers(1, 9), min_size=1, max_size=5), min_size=1, max_size=5))
def test_however_nodes_come_and_go_each_shard_ends_with_its_owner(nodes: list[set[int]]):
    held: dict[int, int | None] = dict.fromkeys(range(SHARDS))
    for present in nodes:
        for _ in range(2):
            for me in sorted(present):
                known = [ShardLease(Duty.dispatch, s, n, 1, 5.0 if n in present else -1.0) for s, n in held.items()]
                moves = rebalance(me, peers(*sorted(present)), known)
                held |= {lease.shard: None for lease in moves.give} | {shard: me for _, shard in moves.take}

        assert held == owners(peers(*sorted(present)))


def test_the_next_check_is_at_the_first_expiry_of_the_lease_of_another_node():
    others = [Peer(2, left=3.0), Peer(3, left=2.0), Peer(4, left=-1.0), Peer(5, left=0.5, is_closed=True)]
    held = [ShardLease(Duty.dispatch, 0, 1, 1, 0.1), ShardLease(Duty.dispatch, 1, 7, 1, 1.5)]

    assert next_expiry(1, [Peer(1, left=0.1), *others], held) == 1.5
    assert next_expiry(1, others, held[:1]) == 2.0
    assert next_expiry(1, [Peer(1)], []) is None


def test_a_role_that_only_a_later_version_knows_is_passed_over():
    assert roles_of(["executor", "archiver"]) == {Role.executor}
    assert roles_of(["api", "scheduler", "executor"]) == EVERY_ROLE
