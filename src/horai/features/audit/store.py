"""Statements on the audit log and its seals: one function per statement of store.sql."""

from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

import asyncpg

from horai.db.catalog import sql
from horai.db.pool import Platform
from horai.features.audit.rules import Seal, SealedRow, digest_of, micros, month_of


@dataclass(frozen=True, slots=True)
class AuditRow:
    """A row of the log. `before`, `after` and `counts` are JSON text; `seal` is None until the row is sealed."""

    id: int
    tenant_id: int | None
    at: datetime
    xid: int
    actor_kind: str
    actor_id: str
    actor_name: str
    actor_role: str
    address: str
    request_id: str
    verb: str
    object_kind: str
    object_id: str
    object_name: str
    before: str | None
    after: str | None
    counts: str | None
    seal: int | None

    def as_sealed(self) -> SealedRow:
        """Return the row as the chain sees it."""
        columns = [
            None if self.tenant_id is None else str(self.tenant_id),
            micros(self.at),
            self.actor_kind,
            self.actor_id,
            self.actor_name,
            self.actor_role,
            self.address,
            self.request_id,
            self.verb,
            self.object_kind,
            self.object_id,
            self.object_name,
            self.before,
            self.after,
            self.counts,
        ]
        return SealedRow(self.id, self.xid, month_of(self.at), digest_of(columns))


@dataclass(frozen=True, slots=True)
class AuditFilter:
    """A filter for rows; None means no condition. `until` is excluded. Actor and object are ids or names."""

    actor: str | None = None
    verb: str | None = None
    object: str | None = None
    object_kind: str | None = None
    since: datetime | None = None
    until: datetime | None = None

    @property
    def values(self) -> tuple[Any, ...]:
        """Return the values as the statements take them, after the tenant."""
        return (self.actor, self.verb, self.object, self.object_kind, self.since, self.until)


@dataclass(frozen=True, slots=True)
class StoredSeal:
    """A seal as stored: `rows` is its column, and the signature is None if its node had no key."""

    seal: Seal
    rows: int
    key_id: str | None
    signature: bytes | None


@dataclass(frozen=True, slots=True)
class SealingHorizon:
    """The oldest open transaction, the database's time, and whether there are rows that no seal covers."""

    horizon: int
    now: datetime
    has_rows: bool


@dataclass(frozen=True, slots=True)
class Anchor:
    """The newest month that retention has dropped, and the last seal with a row of it."""

    month: date
    seal: int
    hash: bytes
    rows: int


def _row(row: asyncpg.Record) -> AuditRow:
    return AuditRow(**dict(row))


def _stored(row: asyncpg.Record) -> StoredSeal:
    told: dict[str, Any] = dict(row)
    beside = {name: told.pop(name) for name in ("rows", "key_id", "signature")}
    return StoredSeal(Seal(**told), **beside)


@dataclass(frozen=True, slots=True)
class RowsOf:
    """The rows that a caller may read: those of its tenant, and those of the platform."""

    tenant_id: int | None
    is_platform: bool = False


async def list_audit(
    connection: Platform, whose: RowsOf, before: tuple[datetime, int], limit: int, only: AuditFilter
) -> list[AuditRow]:
    """Return a page, newest first, that starts after `before`."""
    given = (whose.tenant_id, *only.values, *before, limit, whose.is_platform)
    return [_row(row) for row in await connection.fetch(sql("list_audit"), *given)]


async def export_audit(
    connection: Platform, whose: RowsOf, after: tuple[datetime, int], limit: int, only: AuditFilter
) -> list[AuditRow]:
    """Return a page, oldest first, that starts after `after`."""
    given = (whose.tenant_id, *only.values, *after, limit, whose.is_platform)
    return [_row(row) for row in await connection.fetch(sql("export_audit"), *given)]


async def lock_sealing(connection: Platform) -> bool:
    """Take the lock of the sealer until the end of the transaction; False if another process has it."""
    return await connection.fetchval(sql("lock_sealing"))


async def last_seal(connection: Platform) -> StoredSeal | None:
    """Return the newest seal."""
    row = await connection.fetchrow(sql("last_seal"))
    return None if row is None else _stored(row)


async def sealing_horizon(connection: Platform, after_xid: int) -> SealingHorizon:
    """Return the oldest open transaction, and whether there are rows after `after_xid`."""
    row = await connection.fetchrow(sql("sealing_horizon"), str(after_xid))
    assert row is not None  # noqa: S101 - the statement has no FROM
    return SealingHorizon(**dict(row))


async def rows_to_seal(connection: Platform, after_xid: int, horizon: int, limit: int) -> list[AuditRow]:
    """Return the first rows between two transactions, both excluded; those of one transaction are never divided."""
    return [_row(row) for row in await connection.fetch(sql("rows_to_seal"), str(after_xid), str(horizon), limit)]


async def insert_seal(connection: Platform, made: StoredSeal) -> None:
    """Add a seal. A second seal with the same number is refused by the primary key."""
    seal = made.seal
    await connection.execute(
        sql("insert_seal"),
        seal.n,
        str(seal.from_xid),
        str(seal.to_xid),
        made.rows,
        seal.entries,
        seal.previous,
        seal.hash,
        seal.sealed_at,
        made.key_id,
        made.signature,
    )


async def next_seals(connection: Platform, after: int, limit: int) -> list[StoredSeal]:
    """Return the seals after a number, in order."""
    return [_stored(row) for row in await connection.fetch(sql("next_seals"), after, limit)]


async def rows_between(
    connection: Platform, from_xid: int, to_xid: int, after: tuple[int, int], limit: int
) -> list[AuditRow]:
    """Return the rows of an interval of transactions, both ends included, after a position (xid, id)."""
    xid, id_ = after
    rows = await connection.fetch(sql("rows_between"), str(from_xid), str(to_xid), str(xid), id_, limit)
    return [_row(row) for row in rows]


async def newest_anchor(connection: Platform) -> Anchor | None:
    """Return the anchor of the newest dropped month."""
    row = await connection.fetchrow(sql("newest_anchor"))
    return None if row is None else Anchor(**dict(row))


async def count_unsealed(connection: Platform, after_xid: int) -> int:
    """Return the number of rows after a transaction."""
    return await connection.fetchval(sql("count_unsealed"), str(after_xid))
