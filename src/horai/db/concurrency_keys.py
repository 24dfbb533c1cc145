"""Concurrency keys: one function per statement of sql/concurrency_keys.sql."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import asyncpg

from horai.core.limits import SHARDS
from horai.db import quotas
from horai.db.catalog import sql
from horai.db.claims import Claim, Claimable, ClaimedBy, ClaimedRow, Position, columns
from horai.db.instances import MadeInstance, SealedPaths, parted_payloads
from horai.db.pool import AnyRead, AnyWrite, Platform, TenantRead

KeyOfJob = tuple[int, str]
"""A job and a concurrency key of its instances."""
FIRST_KEY: KeyOfJob = (0, "")


@dataclass(frozen=True, slots=True)
class ReleasedRow(Claimable):
    """A row that has left the parking lane, and its key."""

    key: KeyOfJob


class KeyedRows(list[ClaimedRow]):
    """The rows that a claim got. `parked`: how many rows of each scan, as (shard, lane), it parked because their key had no place."""

    def __init__(self, rows: Iterable[ClaimedRow] = (), parked: Mapping[tuple[int, int], int] | None = None) -> None:
        super().__init__(rows)
        self.parked = parked or {}


def keyed_rows(found: Sequence[asyncpg.Record], by: ClaimedBy, *, has_slot: bool = False) -> KeyedRows:
    """Convert the rows of a claiming statement that checks keys. A row without a fence was parked."""
    node, at = by.node, by.at
    new: Any = getattr(tuple, "__new__")  # noqa: B009 — as in `claimed_rows`: half the time of the constructor
    rows = [
        new(
            ClaimedRow,
            (
                new(Claim, (id_, job_id, attempt, fence, node, retry_count, at, has_slot, lost, concurrency_key)),
                lane,
                due,
                slot,
                key,
                fire_time,
                execute_time or fire_time,
                born_for or fire_time,
                payload,
                is_large,
            ),
        )
        for (
            id_, job_id, lane, due, attempt, fence, retry_count, slot, key, fire_time, execute_time, born_for, payload, is_large, lost,
            concurrency_key
        ) in found if fence is not None
    ]  # fmt: skip
    if len(rows) == len(found):
        return KeyedRows(rows)
    return KeyedRows(rows, Counter((row["id"] % SHARDS, row["lane"]) for row in found if row["fence"] is None))


async def claim_keyed(
    connection: Platform, by: ClaimedBy, positions: Sequence[Position], rows: Sequence[int]
) -> KeyedRows:
    """Claim up to `rows` due rows of each scan whose keys have a place, and park the others; none if this node is fenced."""
    found = await connection.fetch(sql("claim_keyed"), by.node, by.claim, *columns(positions), rows)
    return keyed_rows(found, by)


async def may_keys_wait(connection: Platform) -> bool:
    """Return whether an instance may wait for a place of its key; False only if none does, and none is being parked."""
    return await connection.fetchval(sql("may_keys_wait"))


async def release_keys(connection: Platform, keys: Collection[KeyOfJob]) -> list[ReleasedRow]:
    """Let waiting instances of these keys be claimed, as many as there are free places; return them."""
    rows = await connection.fetch(sql("release_keys"), [job_id for job_id, _ in keys], [key for _, key in keys])
    return [ReleasedRow(id_, lane, due, (job_id, key)) for id_, lane, due, job_id, key in rows]


async def parked_keys(connection: Platform, after: KeyOfJob, limit: int) -> list[KeyOfJob]:
    """Return the next keys, in order, for which instances wait in the parking lane."""
    return [(job_id, key) for job_id, key in await connection.fetch(sql("parked_keys"), *after, limit)]


async def any_parked_keys(connection: Platform) -> bool:
    """Return whether an instance with a key is in the parking lane."""
    return await connection.fetchval(sql("any_parked_keys"))


async def has_parked_keys(connection: AnyRead, job_ids: Sequence[int]) -> bool:
    """Return whether instances of these jobs that have a key are in the parking lane."""
    return await connection.fetchval(sql("has_parked_keys"), list(job_ids))


async def assign_keys(connection: AnyWrite, keys: Mapping[int, str], *, are_new: bool) -> list[Claimable]:
    """Give instances that have not started their keys, by id. Return those that changed, where they wait now.

    `are_new`: the caller's transaction has inserted them. Otherwise the first key of a lane waits for the claims under way.
    """
    if not keys:
        return []
    rows = await connection.fetch(sql("assign_keys"), list(keys), list(keys.values()), are_new)
    return [Claimable(*row) for row in rows]


async def enqueue_with_keys(
    connection: AnyWrite,
    tenant_id: int,
    job: str,
    at: datetime | None,
    payloads: Sequence[str | None],
    keys: Sequence[str],
    *,
    sealed: SealedPaths = None,
) -> MadeInstance | None:
    """Insert an instance of the named job for each payload, with its key, all with one time (None: now).

    Returns None if the job does not exist. With `sealed`, only an encrypted job with these search paths is found,
    otherwise only one that is not encrypted.
    """
    stored, kind = parted_payloads(payloads, sealed), (sealed is not None, list(sealed or ()))
    with quotas.translated():
        row = await connection.fetchrow(sql("enqueue_with_keys"), job, tenant_id, SHARDS, at, stored.texts, *kind, keys)
    if row is None:
        return None
    made = MadeInstance(*row)
    await stored.index(connection, made.ids)
    return made


async def holders_of_key(connection: TenantRead, job_id: int, key: str, limit: int) -> list[int]:
    """Return the first instances of a job that run with this key."""
    return [row["id"] for row in await connection.fetch(sql("holders_of_key"), job_id, key, limit)]
