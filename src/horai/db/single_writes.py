"""Single writes over REST: one function per statement of sql/single_writes.sql."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from horai.core.settings import SHARDS
from horai.db.catalog import sql
from horai.db.claims import Claimable
from horai.db.instance_queries import InstanceRow, instance_of
from horai.db.jobs import JobReference
from horai.db.pool import TenantWrite, milliseconds


class FreshPut(NamedTuple):
    """The put of a key that may have no instance yet. No time means now, by the clock of the database."""

    key: str
    at: datetime | None
    payload: str | None
    version: int | None


@dataclass(frozen=True, slots=True)
class FreshRow:
    """A row that `insert_fresh` has inserted. If its key has a past, the caller decides whether it stays."""

    woken: Claimable
    has_past: bool
    instance: InstanceRow | None
    """None if the job has moved to a new queue meanwhile: then its row has to be read again."""


async def insert_fresh(
    connection: TenantWrite,
    tenant_id: int,
    job: JobReference,
    puts: Sequence[FreshPut],
    patience: timedelta | None = None,
) -> dict[str, FreshRow]:
    """Insert instances of keys without a live one; a key that has one is absent. `puts` has each key once.

    Returns nothing if there is no such job, or if it is encrypted or metered. `patience` limits the wait for each lock, for the
    rest of the transaction.
    """
    keys, times, payloads, versions = zip(*puts, strict=True)
    lock_timeout = None if patience is None else f"{milliseconds(patience)}ms"
    rows = await connection.fetch(
        sql("insert_fresh"), tenant_id, *job, SHARDS, keys, times, payloads, versions, lock_timeout
    )
    return {
        row["key"]: FreshRow(
            Claimable(row["id"], row["lane"], row["due"]),
            row["has_past"],
            None if row["queue"] is None else instance_of(row),
        )
        for row in rows
    }
