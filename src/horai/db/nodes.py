"""Nodes, their leases, and the chores of the store: one function per statement of sql/nodes.sql."""

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from horai.core.change_marks import ChangeMark
from horai.core.shards import EVERY_ROLE, Duty, Peer, Role, ShardLease, roles_of
from horai.db.catalog import sql
from horai.db.pool import Connection


@dataclass(frozen=True, slots=True)
class NodeInfo:
    """A live node, as the cluster view shows it."""

    incarnation: int
    name: str
    host: str
    pid: int
    version: str
    started_at: datetime
    lease_until: datetime
    roles: Sequence[str]
    is_draining: bool
    vitals: str | None = None
    """What it said of itself with its last renewal."""


@dataclass(frozen=True, slots=True)
class LostNode:
    """A node that missed its lease; `fenced_at` and `rescued_at` are None until somebody has seen to it."""

    incarnation: int
    name: str
    host: str
    pid: int
    roles: Sequence[str]
    started_at: datetime
    lease_until: datetime
    fenced_at: datetime | None
    rescued_at: datetime | None


@dataclass(frozen=True, slots=True)
class Renewal:
    """What a beat brought back: the database's time, the other nodes, all shards, those that were renewed, and the mark."""

    now: datetime
    others: tuple[Peer, ...]
    leases: tuple[ShardLease, ...]
    kept: frozenset[tuple[Duty, int]]
    mark: ChangeMark
    schema_number: int
    """The number of the newest migration of the database."""


@dataclass(frozen=True, slots=True)
class NodeVitals:
    """What another node said of itself."""

    incarnation: int
    name: str
    vitals: str


async def register_node(
    connection: Connection,
    name: str,
    host: str,
    pid: int,
    version: str,
    lease: timedelta,
    roles: Collection[Role] = EVERY_ROLE,
) -> tuple[int, datetime | None]:
    """A new incarnation, and the latest time that the nodes before it have noted."""
    in_order = [role for role in Role if role in roles]
    row = await connection.fetchrow(sql("register_node"), name, host, pid, version, lease, in_order)
    assert row is not None  # noqa: S101 — an insert that returns always has a row
    return row["incarnation"], row["latest"]


async def renew_node(
    connection: Connection, incarnation: int, lease: timedelta, vitals: str | None = None, *, is_draining: bool = False
) -> Renewal | None:
    """Renews the node and all its shards; None when this incarnation has been fenced or stopped."""
    row = await connection.fetchrow(sql("renew_node"), incarnation, lease, vitals, is_draining)
    if row is None:
        return None
    shards: list[dict[str, Any]] = json.loads(row["shards"] or "[]")
    return Renewal(
        row["now"],
        tuple(_peer(each) for each in json.loads(row["nodes"] or "[]")),
        tuple(_lease(each) for each in shards),
        frozenset((Duty(each["duty"]), each["shard"]) for each in shards if each["is_kept"]),
        ChangeMark(row["mark"], row["oldest_open"], row["next_id"]),
        row["schema_number"],
    )


def _peer(row: dict[str, Any]) -> Peer:
    return Peer(row["incarnation"], roles_of(row["roles"]), row["left"], row["is_draining"], row["is_closed"])


def _lease(row: dict[str, Any]) -> ShardLease:
    return ShardLease(Duty(row["duty"]), row["shard"], row["node"], row["epoch"], row["left"] or 0.0)


async def stop_node(connection: Connection, incarnation: int) -> None:
    """Gives the lease and all shards back: whatever it still held may be rescued at once."""
    await connection.execute(sql("stop_node"), incarnation)


async def fence_expired_nodes(
    connection: Connection, own: int, unread_for: timedelta = timedelta(seconds=8)
) -> list[int]:
    """Fences every other node whose lease ran out; from then on it claims nothing and cannot renew.

    One whose claim is still under way, its answer not read for `unread_for`, is fenced by a later call.
    """
    return [row["incarnation"] for row in await connection.fetch(sql("fence_expired_nodes"), own, unread_for)]


async def nodes_to_rescue(connection: Connection) -> list[int]:
    """Dead incarnations that may still hold something."""
    return [row["incarnation"] for row in await connection.fetch(sql("nodes_to_rescue"))]


async def mark_rescued(connection: Connection, incarnation: int) -> None:
    """All this incarnation held has been given back."""
    await connection.execute(sql("mark_rescued"), incarnation)


async def live_nodes(connection: Connection) -> list[NodeInfo]:
    """Every node whose lease holds."""
    return [NodeInfo(*row.values()) for row in await connection.fetch(sql("live_nodes"))]


async def lost_nodes(connection: Connection, since: datetime, limit: int) -> list[LostNode]:
    """Nodes that missed their lease since then, the newest first."""
    return [LostNode(*row.values()) for row in await connection.fetch(sql("lost_nodes"), since, limit)]


async def vitals_of_nodes(connection: Connection, own: int) -> list[NodeVitals]:
    """How the other live nodes are doing, by their last renewal."""
    return [NodeVitals(*row.values()) for row in await connection.fetch(sql("vitals_of_nodes"), own)]


async def database_time(connection: Connection) -> datetime:
    """The clock that decides what is due."""
    return await connection.fetchval(sql("clock"))


async def make_partitions(connection: Connection, days: int) -> int:
    """Makes the partitions of today and the coming days; how many were missing. Whoever comes second waits, and finds them."""
    async with connection.transaction():
        # A statement of its own: the next one sees what was made meanwhile.
        await connection.execute(sql("lock_partitions"))
        return await connection.fetchval(sql("make_partitions"), days)


async def strays(connection: Connection) -> int:
    """Rows in the default partitions (at most a few thousand are counted): more than none is an alarm."""
    return await connection.fetchval(sql("strays"))
