"""The history of a key: one function per statement of sql/key_history.sql."""

from dataclasses import dataclass
from datetime import UTC, datetime

from horai.db.catalog import sql
from horai.db.pool import TenantRead

NO_SEQ = 2**31 - 1
"""The sequence number of an entry that changed no state: it is last among the entries of the same moment."""


@dataclass(frozen=True, slots=True)
class Link:
    """The position of an entry in the chain of its key."""

    at: datetime
    instance_id: int
    seq: int


FIRST = Link(datetime(1970, 1, 1, tzinfo=UTC), 0, 0)


@dataclass(frozen=True, slots=True)
class ChainEntry:
    """One event of a key, with the instance in its position."""

    link: Link
    kind: str
    data: str | None


async def chain_of_key(connection: TenantRead, job_id: int, key: str, after: Link, limit: int) -> list[ChainEntry]:
    """Return a page of the history of a key after `after`, in time order."""
    place = (after.at, after.instance_id, after.seq)
    rows = await connection.fetch(sql("chain_of_key"), job_id, key, *place, limit)
    return [ChainEntry(Link(at, instance_id, seq), kind, data) for at, instance_id, seq, kind, data in rows]
