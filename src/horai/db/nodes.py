"""Nodes, their leases, and the chores of the store: one function per statement of sql/nodes.sql."""

from dataclasses import dataclass
from datetime import datetime, timedelta

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


async def register_node(
    connection: Connection, name: str, host: str, pid: int, version: str, lease: timedelta
) -> tuple[int, datetime]:
    """A new incarnation, and the database's time."""
    row = await connection.fetchrow(sql("register_node"), name, host, pid, version, lease)
    assert row is not None  # noqa: S101 — an insert that returns always has a row
    return row["incarnation"], row["now"]


async def renew_node(connection: Connection, incarnation: int, lease: timedelta) -> datetime | None:
    """The database's time, or None when this incarnation has been fenced."""
    return await connection.fetchval(sql("renew_node"), incarnation, lease)


async def stop_node(connection: Connection, incarnation: int) -> None:
    """Gives the lease back: whatever it still held may be rescued at once."""
    await connection.execute(sql("stop_node"), incarnation)


async def fence_expired_nodes(connection: Connection, own: int) -> list[int]:
    """Fences every other node whose lease ran out; from then on it claims nothing and cannot renew."""
    return [row["incarnation"] for row in await connection.fetch(sql("fence_expired_nodes"), own)]


async def nodes_to_rescue(connection: Connection) -> list[int]:
    """Dead incarnations that may still hold something."""
    return [row["incarnation"] for row in await connection.fetch(sql("nodes_to_rescue"))]


async def mark_rescued(connection: Connection, incarnation: int) -> None:
    """All this incarnation held has been given back."""
    await connection.execute(sql("mark_rescued"), incarnation)


async def live_nodes(connection: Connection) -> list[NodeInfo]:
    """Every node whose lease holds."""
    return [NodeInfo(*row.values()) for row in await connection.fetch(sql("live_nodes"))]


async def database_time(connection: Connection) -> datetime:
    """The clock that decides what is due."""
    return await connection.fetchval(sql("clock"))


async def make_partitions(connection: Connection, days: int) -> int:
    """Makes the partitions of today and the coming days; how many were missing."""
    return await connection.fetchval(sql("make_partitions"), days)


async def strays(connection: Connection) -> int:
    """Rows in the default partitions (at most a few thousand are counted): more than none is an alarm."""
    return await connection.fetchval(sql("strays"))
