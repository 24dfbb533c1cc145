"""Versions of definitions: one function per statement of sql/definition_versions.sql."""

from dataclasses import dataclass
from datetime import datetime

import asyncpg

from horai.core.actor import Actor
from horai.db.catalog import sql
from horai.db.pool import TenantRead, TenantWrite

MOST_KEPT = 50
"""Versions of one object that are kept."""


@dataclass(frozen=True, slots=True)
class VersionsOf:
    """An object with versions: its tenant, its kind and its id."""

    tenant_id: int
    kind: str
    id: int


@dataclass(frozen=True, slots=True)
class VersionRow:
    """A version. `definition` is JSON text. The actor is empty if the change was made before versions were kept."""

    version: int
    at: datetime
    actor_kind: str
    actor_id: str
    actor_name: str
    via: str
    definition: str


def _version(row: asyncpg.Record) -> VersionRow:
    return VersionRow(**dict(row))


async def keep_version(
    connection: TenantWrite, of: VersionsOf, version: int, at: datetime | None, actor: Actor, definition: str
) -> None:
    """Add a version in the caller's transaction, and delete those beyond the newest `MOST_KEPT`."""
    by = (actor.kind, actor.id, actor.name, actor.via)
    await connection.execute(sql("keep_version"), of.tenant_id, of.kind, of.id, version, at, *by, definition, MOST_KEPT)


async def keep_first_version(
    connection: TenantWrite, of: VersionsOf, version: int, at: datetime, definition: str
) -> None:
    """Add a version without an actor, unless the object has versions."""
    await connection.execute(sql("keep_first_version"), of.tenant_id, of.kind, of.id, version, at, definition)


async def list_versions(connection: TenantRead, of: VersionsOf) -> list[VersionRow]:
    """Return all versions of an object, newest first."""
    return [_version(row) for row in await connection.fetch(sql("list_versions"), of.tenant_id, of.kind, of.id)]


async def find_version(connection: TenantRead, of: VersionsOf, version: int) -> VersionRow | None:
    """Return one version of an object."""
    row = await connection.fetchrow(sql("find_version"), of.tenant_id, of.kind, of.id, version)
    return None if row is None else _version(row)


async def forget_versions(connection: TenantWrite, of: VersionsOf) -> None:
    """Delete the versions of an object, which is being deleted."""
    await connection.execute(sql("forget_versions"), of.tenant_id, of.kind, of.id)
