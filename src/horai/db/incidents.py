"""Incidents and their timelines: one function per statement of sql/incidents.sql."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from horai.db.catalog import sql
from horai.db.pool import Platform

MOST_ENTRIES = 1_000


@dataclass(frozen=True, slots=True)
class IncidentRow:
    """An incident; `closed_at` is None while it is open."""

    id: int
    severity: str
    cause: str
    title: str
    opened_at: datetime
    opened_by: str
    closed_at: datetime | None
    closed_by: str | None


@dataclass(frozen=True, slots=True)
class IncidentEntry:
    """An entry of the timeline of an incident."""

    at: datetime
    kind: str
    actor: str
    note: str | None
    data: Mapping[str, Any] | None


async def open_incident(connection: Platform, severity: str, cause: str, title: str, actor: str) -> IncidentRow | None:
    """Open an incident; None if one of this cause is open already."""
    row = await connection.fetchrow(sql("open_incident"), severity, cause, title, actor)
    return None if row is None else IncidentRow(*row.values())


async def open_incident_of(connection: Platform, cause: str) -> int | None:
    """Lock the open incident of a cause and return its id."""
    return await connection.fetchval(sql("open_incident_of"), cause)


async def lock_incident(connection: Platform, incident_id: int) -> IncidentRow | None:
    """Lock an incident."""
    row = await connection.fetchrow(sql("lock_incident"), incident_id)
    return None if row is None else IncidentRow(*row.values())


async def find_incident(connection: Platform, incident_id: int) -> IncidentRow | None:
    """Return an incident."""
    row = await connection.fetchrow(sql("find_incident"), incident_id)
    return None if row is None else IncidentRow(*row.values())


async def list_incidents(
    connection: Platform, before: int | None, limit: int, is_open: bool | None
) -> list[IncidentRow]:
    """Return incidents, newest first."""
    rows = await connection.fetch(sql("list_incidents"), before, limit, is_open)
    return [IncidentRow(*row.values()) for row in rows]


async def close_incident(connection: Platform, incident_id: int, actor: str) -> IncidentRow | None:
    """Close an open incident; None if it is closed."""
    row = await connection.fetchrow(sql("close_incident"), incident_id, actor)
    return None if row is None else IncidentRow(*row.values())


async def insert_incident_entry(
    connection: Platform,
    incident_id: int,
    kind: str,
    actor: str,
    note: str | None = None,
    data: Mapping[str, Any] | None = None,
) -> None:
    """Add an entry to the timeline."""
    text = None if data is None else json.dumps(data)
    await connection.execute(sql("insert_incident_entry"), incident_id, kind, actor, note, text)


async def incident_entries(connection: Platform, incident_id: int) -> list[IncidentEntry]:
    """Return the timeline of an incident, oldest first; the first 1,000 entries."""
    rows = await connection.fetch(sql("incident_entries"), incident_id, MOST_ENTRIES)
    return [
        IncidentEntry(
            row["at"], row["kind"], row["actor"], row["note"], None if row["data"] is None else json.loads(row["data"])
        )
        for row in rows
    ]


async def record_outage(
    connection: Platform, longest_gap: timedelta, title: str
) -> tuple[int, datetime, datetime] | None:
    """Record the time before the present nodes in which none was live, once; None if there was none."""
    row = await connection.fetchrow(sql("record_outage"), longest_gap, title)
    return None if row is None else (row["id"], row["opened_at"], row["closed_at"])
