"""Single writes over REST: one function per statement of sql/single_writes.sql."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

import asyncpg

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
    """A row that `insert_fresh` has inserted."""

    job_id: int
    woken: Claimable
    instance: InstanceRow | None
    """None if the job has moved to a new queue meanwhile: then the row has to be read again."""


async def insert_fresh(
    connection: TenantWrite, tenant_id: int, job: JobReference, puts: Sequence[FreshPut], patience: timedelta
) -> dict[str, FreshRow]:
    """Insert instances of keys that have neither a live instance nor a past; other keys are absent. `puts` has each key once.

    Returns nothing if there is no such job, if it is encrypted or metered, or if an instance of a key ended meanwhile. `patience`
    limits the wait for each lock. The connection must have no transaction.
    """
    keys, times, payloads, versions = zip(*puts, strict=True)
    lock_timeout = f"{milliseconds(patience)}ms"
    try:
        rows = await connection.fetch(
            sql("insert_fresh"), tenant_id, *job, SHARDS, keys, times, payloads, versions, lock_timeout
        )
    except asyncpg.DivisionByZeroError:
        return {}
    return {
        row["key"]: FreshRow(
            row["job_id"],
            Claimable(row["id"], row["lane"], row["due"]),
            None if row["queue"] is None else instance_of(row),
        )
        for row in rows
    }
