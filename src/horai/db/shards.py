"""Leases of shards: one function per statement of sql/shards.sql."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from horai.core.shards import Duty, Holding, ShardLease
from horai.db.catalog import sql
from horai.db.pool import AnyRead, Platform


@dataclass(frozen=True, slots=True)
class ShardInfo:
    """The lease of a shard, as the cluster view shows it; without a node it is free."""

    duty: Duty
    shard: int
    node: int | None
    node_name: str | None
    epoch: int
    lease_until: datetime | None


async def take_shards(connection: Platform, incarnation: int, shards: Sequence[Holding]) -> dict[Holding, int]:
    """Take the free ones of these shards and return their new epochs; none if the node's own lease has ended."""
    rows = await connection.fetch(
        sql("take_shards"), incarnation, [duty for duty, _ in shards], [shard for _, shard in shards]
    )
    return {(Duty(row["duty"]), row["shard"]): row["epoch"] for row in rows}


async def give_back_shards(connection: Platform, incarnation: int, leases: Sequence[ShardLease]) -> None:
    """Free those of the leases that this incarnation still holds under the given epoch."""
    await connection.execute(
        sql("give_back_shards"),
        incarnation,
        [lease.duty for lease in leases],
        [lease.shard for lease in leases],
        [lease.epoch for lease in leases],
    )


async def shard_leases(connection: AnyRead) -> list[ShardInfo]:
    """Return the lease of every shard of every duty."""
    return [
        ShardInfo(Duty(row["duty"]), row["shard"], row["incarnation"], row["name"], row["epoch"], row["lease_until"])
        for row in await connection.fetch(sql("shard_leases"))
    ]
