"""What happened to a key: one function per statement of sql/chains.sql."""

from dataclasses import dataclass
from datetime import UTC, datetime

from horai.db.catalog import sql
from horai.db.pool import Connection

NO_SEQ = 2**31 - 1
"""How an entry that changed no state is ordered: behind what happened at the same moment."""


@dataclass(frozen=True, slots=True)
class Link:
    """Where an entry stands in the chain of its key."""

    at: datetime
    instance_id: int
    seq: int


FIRST = Link(datetime(1970, 1, 1, tzinfo=UTC), 0, 0)


@dataclass(frozen=True, slots=True)
class ChainEntry:
    """One thing that happened to a key, to which of its instances."""

    link: Link
    kind: str
    data: str | None


async def chain_of_key(connection: Connection, job_id: int, key: str, after: Link, limit: int) -> list[ChainEntry]:
    """A page of what happened to a key, in the order of time."""
    place = (after.at, after.instance_id, after.seq)
    rows = await connection.fetch(sql("chain_of_key"), job_id, key, *place, limit)
    return [ChainEntry(Link(at, instance_id, seq), kind, data) for at, instance_id, seq, kind, data in rows]
