"""Statements on dead letters: one function per statement of sql/dead_letters.sql."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from enum import StrEnum
from typing import Any

import asyncpg

from horai.core.bounded_count import COUNTED, BoundedCount
from horai.core.limits import SHARDS
from horai.db.catalog import sql
from horai.db.claims import Claimable
from horai.db.instance_lists import PageStart
from horai.db.pool import TenantRead, TenantWrite


class ReplayStatus(StrEnum):
    """The status of a letter; all but NEW are final."""

    NEW = "NEW"
    REPLAYED = "REPLAYED"
    SUPERSEDED = "SUPERSEDED"
    """Its key has been run in another way since."""
    DISCARDED = "DISCARDED"


@dataclass(frozen=True, slots=True)
class LetterRow:
    """A dead letter, with the key of its instance if that is still kept."""

    id: int
    instance_id: int
    job_id: int
    job: str
    is_job_deleted: bool
    key: str | None
    error_code: str
    error_msg: str | None
    tags: tuple[str, ...]
    fingerprint: str | None
    replay_status: ReplayStatus
    replayed_as: int | None
    reason: str | None
    created_at: datetime
    changed_at: datetime | None
    is_encrypted: bool = False
    """True if the error text is sealed."""
    timezone: str | None = None
    """The zone of the cron schedule of the job."""

    @property
    def payload_ref(self) -> str:
        """Return where the payload is kept: with the instance."""
        return f"instance:{self.instance_id}"


@dataclass(frozen=True, slots=True)
class LetterFilter:
    """A filter for letters; None means no condition. `until` is excluded."""

    job_id: int | None = None
    tag: str | None = None
    error_code: str | None = None
    fingerprint: str | None = None
    status: ReplayStatus | None = None
    instance_id: int | None = None
    since: datetime | None = None
    until: datetime | None = None
    ids: Sequence[int] | None = None
    """The letters that a bulk change is for. Lists and counts of the console do not take them."""

    @property
    def values(self) -> tuple[Any, ...]:
        """Return the values as the statements take them, after the tenant; `ids` comes last in those that take it."""
        words = (self.tag, self.error_code, self.fingerprint, self.status)
        return (self.job_id, *words, self.instance_id, self.since, self.until)


@dataclass(frozen=True, slots=True)
class LockedLetter:
    """A letter that this transaction has locked."""

    id: int
    instance_id: int
    job_id: int
    created_at: datetime
    replay_status: ReplayStatus = ReplayStatus.NEW


@dataclass(frozen=True, slots=True)
class FaultRow:
    """The letters of one fault: their number, the first and the last of them.

    `hours` counts the letters of the last day by how many hours ago they were created.
    """

    fingerprint: str | None
    job_id: int
    job: str
    error_code: str
    error_msg: str | None
    letters: int
    first_at: datetime
    last_at: datetime
    last_id: int
    looked_at: int
    hours: Mapping[int, int]
    is_encrypted: bool = False


@dataclass(frozen=True, slots=True)
class ReplayPast:
    """The history of the key of a replay: whether it has succeeded since the death, its highest version and fence."""

    succeeded: bool
    version: int | None
    fence: int


def _letter(row: asyncpg.Record) -> LetterRow:
    return LetterRow(
        id=row["id"],
        instance_id=row["instance_id"],
        job_id=row["job_id"],
        job=row["job"],
        is_job_deleted=row["is_job_deleted"],
        key=row["key"],
        error_code=row["error_code"],
        error_msg=row["error_msg"],
        tags=tuple(row["tags"]),
        fingerprint=row["fingerprint"],
        replay_status=ReplayStatus(row["replay_status"]),
        replayed_as=row["replayed_as"],
        reason=row["reason"],
        created_at=row["created_at"],
        changed_at=row["changed_at"],
        is_encrypted=row["encrypted"],
        timezone=row["timezone"],
    )


async def letter_by_id(connection: TenantRead, tenant_id: int, letter_id: int) -> LetterRow | None:
    """Return a letter of a tenant."""
    row = await connection.fetchrow(sql("letter_by_id"), tenant_id, letter_id)
    return None if row is None else _letter(row)


async def list_letters(
    connection: TenantRead, tenant_id: int, start: PageStart, limit: int, only: LetterFilter
) -> list[LetterRow]:
    """Return a page by the time of the death that starts after `start`."""
    statement = sql("list_letters_upwards" if start.upwards else "list_letters")
    return [_letter(row) for row in await connection.fetch(statement, tenant_id, *only.values, *start.at, limit)]


async def count_letters(connection: TenantRead, tenant_id: int, only: LetterFilter) -> BoundedCount:
    """Count matching letters among the newest `COUNTED`."""
    row = await connection.fetchrow(sql("count_letters"), tenant_id, *only.values, COUNTED + 1)
    assert row is not None  # noqa: S101 — an aggregate always has a row
    return BoundedCount.of(row["matched"], row["looked_at"], COUNTED)


async def group_letters(
    connection: TenantRead, tenant_id: int, only: LetterFilter, look_at: int, limit: int
) -> list[FaultRow]:
    """Return the most frequent faults among the newest `look_at` letters that match."""
    rows = await connection.fetch(sql("group_letters"), tenant_id, *only.values, look_at, limit)
    return [_fault(row) for row in rows]


def _fault(row: asyncpg.Record) -> FaultRow:
    told: dict[str, Any] = dict(row)
    counted: dict[str, int] = {} if told["hours"] is None else json.loads(told["hours"])
    told["hours"] = {int(ago): letters for ago, letters in counted.items()}
    return FaultRow(**told)


async def count_replayable(connection: TenantRead, tenant_id: int, only: LetterFilter, up_to: int) -> int:
    """Count the letters that a replay of these would take, up to a limit. `until` must be given."""
    return await connection.fetchval(sql("count_replayable"), tenant_id, *only.values, up_to, only.ids)


async def lock_replayable(
    connection: TenantWrite, tenant_id: int, only: LetterFilter, after: tuple[datetime, int], limit: int
) -> list[LockedLetter]:
    """Lock the oldest letters after `after` that may be replayed and that are not locked. `until` must be given."""
    rows = await connection.fetch(sql("lock_replayable"), tenant_id, *only.values, *after, limit, only.ids)
    return [LockedLetter(*row.values()) for row in rows]


async def count_open_of(connection: TenantRead, instance_ids: Sequence[int]) -> int:
    """Count the dead instances among these that a replay would take."""
    return await connection.fetchval(sql("count_open_of"), list(instance_ids))


async def lock_open_of(connection: TenantWrite, instance_ids: Sequence[int]) -> list[LockedLetter]:
    """Lock the letters of these dead instances that may be replayed; wait as long as lock_timeout allows."""
    return [LockedLetter(*row.values()) for row in await connection.fetch(sql("lock_open_of"), list(instance_ids))]


async def lock_letter(connection: TenantWrite, tenant_id: int, letter_id: int) -> LockedLetter | None:
    """Lock a letter; wait as long as lock_timeout allows."""
    row = await connection.fetchrow(sql("lock_letter"), tenant_id, letter_id)
    if row is None:
        return None
    *found, status = row.values()
    return LockedLetter(*found, replay_status=ReplayStatus(status))


async def share_lanes(connection: TenantWrite, job_ids: Collection[int]) -> dict[int, int]:
    """Return the lane of new instances of each job, locked against a pause; a deleted job is absent."""
    return {row["id"]: row["lane"] for row in await connection.fetch(sql("share_lanes"), list(job_ids))}


async def insert_replays(
    connection: TenantWrite, dead: Sequence[tuple[int, datetime]], lanes: Mapping[int, int]
) -> dict[int, Claimable]:
    """Insert a new instance of each dead one, at its time. Return them by dead id; one whose key is live is absent."""
    rows = await connection.fetch(
        sql("insert_replays"),
        [instance_id for instance_id, _ in dead],
        [at for _, at in dead],
        list(lanes),
        list(lanes.values()),
        SHARDS,
    )
    return {row["replay_of"]: Claimable(row["id"], row["lane"], row["due"]) for row in rows}


async def pasts_of_replays(connection: TenantRead, instance_ids: Sequence[int]) -> dict[int, ReplayPast]:
    """Return the history of the keys of this transaction's replays; those without a key are absent."""
    rows = await connection.fetch(sql("pasts_of_replays"), list(instance_ids))
    return {row["id"]: ReplayPast(row["succeeded"], row["version"], row["fence"]) for row in rows}


async def mark_replayed(connection: TenantWrite, made: Mapping[int, int]) -> None:
    """Mark letters NEW → REPLAYED, each with the instance that was created, and write the events."""
    await connection.execute(sql("mark_replayed"), list(made), list(made.values()))


async def mark_superseded(connection: TenantWrite, letter_ids: Sequence[int]) -> None:
    """Mark letters NEW → SUPERSEDED: their keys have been run in another way."""
    await connection.execute(sql("mark_superseded"), list(letter_ids))


async def discard_letter(connection: TenantWrite, letter_id: int, reason: str | None) -> bool:
    """Mark a letter NEW → DISCARDED and write the event; False if it is not NEW."""
    return await connection.fetchval(sql("discard_letter"), letter_id, reason) is not None


async def count_open(connection: TenantRead, tenant_id: int, only: LetterFilter, up_to: int) -> int:
    """Count the letters that a discard of these would take, up to a limit. `until` must be given."""
    return await connection.fetchval(sql("count_open"), tenant_id, *only.values, up_to, only.ids)


async def discard_open(connection: TenantWrite, tenant_id: int, only: LetterFilter, limit: int, reason: str) -> int:
    """Mark letters NEW → DISCARDED, oldest first, write the events, and return the number. `until` must be given."""
    return await connection.fetchval(sql("discard_open"), tenant_id, *only.values, limit, reason, only.ids)


@dataclass(frozen=True, slots=True)
class ImportedLetter:
    """A dead letter of another cluster. `origin` names it there; `payload` is a JSON text, `tags` a JSON list."""

    origin: str
    job_id: int
    key: str | None
    fire_time: datetime
    execute_time: datetime
    died_at: datetime
    version: int | None
    fence: int
    payload: str | None
    error_code: str
    error_msg: str | None
    fingerprint: str | None
    tags: str


async def known_origins(connection: TenantRead, tenant_id: int, origins: Sequence[str]) -> set[str]:
    """Return those of the origins that were imported before."""
    return {row["origin"] for row in await connection.fetch(sql("known_origins"), tenant_id, list(origins))}


async def import_letters(connection: TenantWrite, tenant_id: int, letters: Sequence[ImportedLetter]) -> int:
    """Insert letters with their dead instances, and return how many are new. One with a known origin is left out."""
    columns = [[getattr(letter, field.name) for letter in letters] for field in fields(ImportedLetter)]
    return await connection.fetchval(sql("import_letters"), tenant_id, *columns)
