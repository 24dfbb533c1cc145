"""Nodes, their leases, and the maintenance of partitions: one function per statement of sql/nodes.sql."""

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from horai.core.change_marks import ChangeMark
from horai.core.controls import Controls, controls_from
from horai.core.shards import EVERY_ROLE, Duty, Peer, Role, ShardLease, roles_of
from horai.db.catalog import sql
from horai.db.pool import AnyRead, Platform


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
    health: str | None = None
    """The health that the node reported with its last renewal, as JSON."""


@dataclass(frozen=True, slots=True)
class LostNode:
    """A node that missed its lease. `fenced_at` and `rescued_at` are None until another node fences and rescues it."""

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
    """The result of a renewal: database time, other nodes, all shards, renewed shards, and the change mark."""

    now: datetime
    others: tuple[Peer, ...]
    leases: tuple[ShardLease, ...]
    kept: frozenset[tuple[Duty, int]]
    mark: ChangeMark
    schema_number: int
    """The number of the newest migration of the database."""
    controls: Controls = field(default_factory=Controls)
    """The limits that the governor puts on dispatch now."""
    last_event: int = 0
    """The highest id that an event has, committed or not."""


@dataclass(frozen=True, slots=True)
class NodeHealth:
    """The health that another node reported, as JSON."""

    incarnation: int
    name: str
    health: str


async def register_node(
    connection: Platform,
    name: str,
    host: str,
    pid: int,
    version: str,
    lease: timedelta,
    roles: Collection[Role] = EVERY_ROLE,
) -> tuple[int, datetime | None]:
    """Register a new incarnation; return it, and the latest time that any earlier node has written."""
    in_order = [role for role in Role if role in roles]
    row = await connection.fetchrow(sql("register_node"), name, host, pid, version, lease, in_order)
    assert row is not None  # noqa: S101 — an insert with RETURNING always returns a row
    return row["incarnation"], row["latest"]


async def renew_node(
    connection: Platform, incarnation: int, lease: timedelta, health: str | None = None, *, is_draining: bool = False
) -> Renewal | None:
    """Renew the lease of the node and of all its shards; return None if this incarnation is fenced or stopped."""
    row = await connection.fetchrow(sql("renew_node"), incarnation, lease, health, is_draining)
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
        controls_from(row["controls"]),
        row["last_event"],
    )


def _peer(row: dict[str, Any]) -> Peer:
    return Peer(row["incarnation"], roles_of(row["roles"]), row["left"], row["is_draining"], row["is_closed"])


def _lease(row: dict[str, Any]) -> ShardLease:
    return ShardLease(Duty(row["duty"]), row["shard"], row["node"], row["epoch"], row["left"] or 0.0)


async def stop_node(connection: Platform, incarnation: int) -> None:
    """Give back the lease and all shards: the other nodes may rescue the remaining claims at once."""
    await connection.execute(sql("stop_node"), incarnation)


class LostNodes(NamedTuple):
    """Incarnations that may still hold claims: those that this look has fenced, and all that are fenced or stopped."""

    fenced: list[int]
    to_rescue: list[int]


async def find_lost_nodes(connection: Platform, own: int, unread_for: timedelta = timedelta(seconds=8)) -> LostNodes:
    """Fence every other node whose lease has expired; it can then neither claim nor renew. Return all lost nodes.

    Skips a node with a claim in progress. If the client has not read the answer of such a claim for `unread_for`, this
    call ends its session, and a later call fences the node.
    """
    rows = await connection.fetch(sql("find_lost_nodes"), own, unread_for)
    return LostNodes([row["incarnation"] for row in rows if row["is_fenced_now"]], [row["incarnation"] for row in rows])


async def mark_rescued(connection: Platform, incarnation: int) -> None:
    """Record that all claims of this incarnation have been released."""
    await connection.execute(sql("mark_rescued"), incarnation)


async def live_nodes(connection: AnyRead) -> list[NodeInfo]:
    """Return every node with a valid lease."""
    return [NodeInfo(*row.values()) for row in await connection.fetch(sql("live_nodes"))]


async def lost_nodes(connection: AnyRead, since: datetime, limit: int) -> list[LostNode]:
    """Return up to `limit` nodes that missed their lease since `since`, newest first."""
    return [LostNode(*row.values()) for row in await connection.fetch(sql("lost_nodes"), since, limit)]


async def health_of_nodes(connection: Platform, own: int) -> list[NodeHealth]:
    """Return the health of the other live nodes, as of their last renewal."""
    return [NodeHealth(*row.values()) for row in await connection.fetch(sql("health_of_nodes"), own)]


async def database_time(connection: AnyRead) -> datetime:
    """Return the database time, which decides what is due."""
    return await connection.fetchval(sql("clock"))


async def make_partitions(connection: Platform, days: int) -> int:
    """Create the missing partitions of `days` days from today; return how many were missing.

    A concurrent call waits, and then finds them.
    """
    async with connection.transaction():
        # A separate statement: the next one sees partitions that were created meanwhile.
        await connection.execute(sql("lock_partitions"))
        return await connection.fetchval(sql("make_partitions"), days)


async def strays(connection: Platform) -> int:
    """Return the number of rows in the default partitions, at most 1,000 of each. Any row is an alarm."""
    return await connection.fetchval(sql("strays"))
