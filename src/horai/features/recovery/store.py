"""The steps of a recovery: one function per statement of store.sql."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

import asyncpg

from horai.db.catalog import sql
from horai.db.pool import Platform


@dataclass(frozen=True, slots=True)
class RecoveryRow:
    """The recovery of an incident. `resumed` and `replayed` are None until their step is done."""

    incident_id: int
    actor: str
    started_at: datetime
    resumed: int | None
    replayed: int | None
    dlq_moved: int
    completed_at: datetime | None


def _recovery(row: asyncpg.Record | None) -> RecoveryRow | None:
    return None if row is None else RecoveryRow(**row)


async def begin_recovery(
    connection: Platform, incident_id: int, actor: str, take_over_after: timedelta
) -> RecoveryRow | None:
    """Begin or take over the recovery of an incident; None if another request works on it, or it is completed."""
    return _recovery(await connection.fetchrow(sql("begin_recovery"), incident_id, actor, take_over_after))


async def find_recovery(connection: Platform, incident_id: int) -> RecoveryRow | None:
    """Return the recovery of an incident."""
    return _recovery(await connection.fetchrow(sql("find_recovery"), incident_id))


async def resume_shards(connection: Platform) -> int:
    """Free the shards of dead nodes and wake all nodes. Return how many shards had no live owner."""
    return await connection.fetchval(sql("resume_shards"))


async def rewind_sinks(connection: Platform, since: datetime) -> dict[int, int]:
    """Move all sinks back to a time. Return the events that the sinks of each tenant get again."""
    return {row["tenant_id"]: row["events"] for row in await connection.fetch(sql("rewind_sinks"), since)}


async def tenants_with_letters(connection: Platform, tag: str) -> list[tuple[int, str]]:
    """Return the tenants, by id and name, that have open dead letters of a tag."""
    return [(row["id"], row["name"]) for row in await connection.fetch(sql("tenants_with_letters"), tag)]


async def note_resumed(connection: Platform, incident_id: int, shards: int) -> None:
    """Store the count of the first step, once."""
    await connection.execute(sql("note_resumed"), incident_id, shards)


async def note_replayed(connection: Platform, incident_id: int, events: Mapping[int, int]) -> None:
    """Store the events by tenant of the second step, once."""
    await connection.execute(sql("note_replayed"), incident_id, json.dumps(events))


async def note_moved(connection: Platform, incident_id: int, tenant_id: int, letters: int) -> None:
    """Add the dead letters of a tenant to the third step."""
    await connection.execute(sql("note_moved"), incident_id, tenant_id, letters)


async def complete_recovery(connection: Platform, incident_id: int) -> RecoveryRow | None:
    """Complete a recovery; None if it was completed meanwhile."""
    return _recovery(await connection.fetchrow(sql("complete_recovery"), incident_id))
