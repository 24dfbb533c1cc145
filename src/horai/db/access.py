"""Keys and sessions: functions over the statements of sql/access.sql."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import asyncpg

from horai.core.roles import AccessRole
from horai.db.catalog import sql
from horai.db.pool import Platform


@dataclass(frozen=True, slots=True)
class KeyInForce:
    """A key that is neither revoked nor expired, for the check of a request. Its hash is not in its repr."""

    id: str
    name: str
    role: AccessRole
    hash: bytes
    networks: tuple[str, ...]
    tenant_id: int | None
    tenant: str | None
    seconds_left: float | None

    def __repr__(self) -> str:
        return f"KeyInForce(id={self.id!r})"


@dataclass(frozen=True, slots=True)
class KeyRow:
    """A key as lists show it: without its hash. `number` is its position in lists."""

    number: int
    id: str
    name: str
    role: AccessRole
    tenant: str | None
    networks: tuple[str, ...]
    created_at: datetime
    created_by: str
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used_at: datetime | None


@dataclass(frozen=True, slots=True)
class KeyWrite:
    """The fields of a new key."""

    id: str
    hash: bytes
    tenant_id: int | None
    role: AccessRole
    name: str
    networks: Sequence[str]
    created_by: str
    expires_at: datetime | None


@dataclass(frozen=True, slots=True)
class KeysOf:
    """Whose keys a caller may list and revoke: those of one tenant, or every key."""

    tenant_id: int | None
    is_everyone: bool = False


async def is_keyed(connection: Platform) -> bool:
    """Return whether a key was ever created."""
    return await connection.fetchval(sql("is_keyed"))


async def mark_keyed(connection: Platform) -> bool:
    """Close the server to requests without a key, for good. Return whether it was open until now."""
    return await connection.fetchval(sql("mark_keyed")) is not None


async def key_in_force(connection: Platform, key_id: str) -> KeyInForce | None:
    """Return the key if it is neither revoked nor expired."""
    return _in_force(await connection.fetchrow(sql("key_in_force"), key_id))


async def key_of_session(connection: Platform, session_hash: bytes) -> KeyInForce | None:
    """Return the key of a session that has not ended."""
    return _in_force(await connection.fetchrow(sql("key_of_session"), session_hash))


def _in_force(row: asyncpg.Record | None) -> KeyInForce | None:
    if row is None:
        return None
    fields: dict[str, Any] = {**row, "role": AccessRole(row["role"]), "networks": tuple(row["networks"])}
    return KeyInForce(**fields)


async def note_key_use(connection: Platform, key_id: str) -> None:
    """Write the time at which the key was used, at most once a minute."""
    await connection.execute(sql("note_key_use"), key_id)


async def insert_key(connection: Platform, key: KeyWrite) -> KeyRow:
    """Insert a key, and make every node read its keys again after the commit."""
    row = await connection.fetchrow(
        sql("insert_key"),
        key.id,
        key.tenant_id,
        key.role,
        key.name,
        key.hash,
        list(key.networks),
        key.created_by,
        key.expires_at,
    )
    assert row is not None  # noqa: S101 — an INSERT without a condition returns its row
    return _key(row)


async def list_keys(connection: Platform, whose: KeysOf, before: int, limit: int) -> list[KeyRow]:
    """Return a page of keys, newest first."""
    rows = await connection.fetch(sql("list_keys"), whose.tenant_id, whose.is_everyone, before, limit)
    return [_key(row) for row in rows]


async def revoke_key(connection: Platform, whose: KeysOf, key_id: str) -> KeyRow | None:
    """Revoke a key, and make every node forget it after the commit."""
    row = await connection.fetchrow(sql("revoke_key"), key_id, whose.tenant_id, whose.is_everyone)
    return None if row is None else _key(row)


def _key(row: asyncpg.Record) -> KeyRow:
    fields: dict[str, Any] = {name: row[name] for name in KeyRow.__slots__}
    fields |= {"role": AccessRole(row["role"]), "networks": tuple(row["networks"])}
    return KeyRow(**fields)


async def insert_session(connection: Platform, session_hash: bytes, key_id: str, length: timedelta) -> datetime:
    """Open a session, delete those that have ended, and return its end."""
    await delete_ended_sessions(connection)
    return await connection.fetchval(sql("insert_session"), session_hash, key_id, length)


async def delete_ended_sessions(connection: Platform) -> None:
    """Delete the sessions whose time is over."""
    await connection.execute(sql("delete_ended_sessions"))


async def delete_session(connection: Platform, session_hash: bytes) -> None:
    """End a session on every node."""
    await connection.execute(sql("delete_session"), session_hash)
