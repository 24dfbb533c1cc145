"""Shard ownership: every node that sees the same nodes computes the same owners.

Rendezvous hashing with bounded load. Every pair of shard and node has a weight; the heaviest pairs are assigned first,
and a node that has its fair share is skipped. So each node owns as much as any other, give or take one shard, and a
join or leave moves little more than it must (docs/decisions/0007-rendezvous-with-bounded-load.md).
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from hashlib import blake2b

from horai.core.limits import SHARDS

Holding = tuple["Duty", int]
"""A shard of a duty."""


class Role(StrEnum):
    """The role of a node."""

    api = "api"
    scheduler = "scheduler"
    executor = "executor"
    worker = "worker"


EVERY_ROLE = frozenset({Role.api, Role.scheduler, Role.executor})
"""All roles that a node can have without application code. A worker brings functions, and leases no shards."""


def roles_of(names: Collection[str]) -> frozenset[Role]:
    """Return the roles with these names; names that only a later version knows are ignored."""
    return frozenset(role for role in Role if role in names)


class Duty(StrEnum):
    """The duty for which shards are leased."""

    dispatch = "dispatch"
    trigger = "trigger"

    @property
    def role(self) -> Role:
        """Return the role of the nodes that have this duty."""
        return Role.executor if self is Duty.dispatch else Role.scheduler


def lease_name(duty: Duty, shard: int) -> str:
    """Return the name of the lease that people see: `dispatch:7`."""
    return f"{duty}:{shard}"


@dataclass(frozen=True, slots=True)
class Peer:
    """A node as described by its row; `left` is the time its lease has left, in seconds by the database's clock."""

    incarnation: int
    roles: frozenset[Role] = EVERY_ROLE
    left: float = 1.0
    is_draining: bool = False
    is_closed: bool = False

    @property
    def is_lost(self) -> bool:
        """Return whether other nodes may rescue its work: it is fenced, stopped, or silent for a lease."""
        return self.is_closed or self.left <= 0

    def may_own(self, duty: Duty) -> bool:
        """Return whether the node may own shards of this duty."""
        return duty.role in self.roles and not self.is_draining and not self.is_lost


@dataclass(frozen=True, slots=True)
class ShardLease:
    """A row of the shard table; free without a node. `left` as in `Peer`."""

    duty: Duty
    shard: int
    node: int | None
    epoch: int
    left: float

    @property
    def is_free(self) -> bool:
        """Return whether the node that should own the shard may take it."""
        return self.node is None or self.left <= 0


@dataclass(frozen=True, slots=True)
class Rebalance:
    """The shards that a node has to take and to give back, so that every shard is with its owner."""

    take: tuple[Holding, ...]
    give: tuple[ShardLease, ...]


def owner_of(duty: Duty, shard: int, nodes: Iterable[Peer]) -> int | None:
    """Return the incarnation that should own this shard; None if no node has the duty."""
    return _owners(duty, _candidates(duty, nodes)).get(shard)


def wanted(duty: Duty, me: int, nodes: Iterable[Peer]) -> frozenset[int]:
    """Return the shards that the incarnation `me` should own."""
    owners = _owners(duty, _candidates(duty, nodes))
    return frozenset(shard for shard, owner in owners.items() if owner == me)


def rebalance(me: int, nodes: Sequence[Peer], leases: Iterable[ShardLease]) -> Rebalance:
    """Return the shards that the incarnation `me` takes and gives back.

    It takes free shards that it should own. It gives back only shards that another live node should own, or all when
    draining.
    """
    owners = {duty: _owners(duty, _candidates(duty, nodes)) for duty in Duty}
    take: list[Holding] = []
    give: list[ShardLease] = []
    for lease in leases:
        is_ours = owners[lease.duty].get(lease.shard) == me
        if lease.node == me and not is_ours:
            give.append(lease)
        elif lease.node != me and is_ours and lease.is_free:
            take.append((lease.duty, lease.shard))
    return Rebalance(tuple(take), tuple(give))


def next_expiry(me: int, nodes: Iterable[Peer], leases: Iterable[ShardLease]) -> float | None:
    """Return the seconds until the first lease of another node ends unless renewed; None if there is none."""
    left = [peer.left for peer in nodes if peer.incarnation != me and not peer.is_lost]
    left += [lease.left for lease in leases if lease.node not in {None, me} and lease.left > 0]
    return min(left, default=None)


def _candidates(duty: Duty, nodes: Iterable[Peer]) -> tuple[int, ...]:
    return tuple(sorted(peer.incarnation for peer in nodes if peer.may_own(duty)))


@lru_cache(maxsize=64)
def _owners(duty: Duty, candidates: tuple[int, ...]) -> dict[int, int]:
    """Return the owner of every shard.

    No node has more than the fair share, which is one more for as many nodes as the remainder says.
    """
    if not candidates:
        return {}
    share, remainder = divmod(SHARDS, len(candidates))
    load = dict.fromkeys(candidates, 0)
    owners: dict[int, int] = {}
    for _, shard, node in sorted(_weights(duty, candidates), reverse=True):
        has_room = load[node] < share + (1 if remainder else 0)
        if shard in owners or not has_room:
            continue
        if load[node] == share:
            remainder -= 1
        load[node] += 1
        owners[shard] = node
    return owners


def _weights(duty: Duty, candidates: Iterable[int]) -> Iterable[tuple[bytes, int, int]]:
    for node in candidates:
        for shard in range(SHARDS):
            yield blake2b(f"{duty}:{shard}:{node}".encode(), digest_size=8).digest(), shard, node
