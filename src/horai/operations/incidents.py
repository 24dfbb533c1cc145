"""Operations on incidents that other parts of Horai share: open one by its cause, add to its timeline, close it.

All of them run in the caller's transaction and are recorded in the audit log with it.
"""

from collections.abc import Mapping
from typing import Any

from horai.core.actor import Actor
from horai.core.audit import AuditEntry, AuditVerb
from horai.db import incidents
from horai.db.incidents import IncidentRow
from horai.db.pool import Platform
from horai.operations import audit

BY_HAND = "BY_HAND"


async def open_incident(
    connection: Platform,
    actor: Actor,
    severity: str,
    cause: str,
    title: str,
    note: str | None = None,
    data: Mapping[str, Any] | None = None,
) -> IncidentRow | None:
    """Open an incident with the first entry of its timeline; None if one of this cause is open already."""
    made = await incidents.open_incident(connection, severity, cause, title, actor.name)
    if made is not None:
        await incidents.insert_incident_entry(connection, made.id, "OPENED", actor.name, note, data)
        entry = AuditEntry(
            AuditVerb.INCIDENT_OPEN, "incident", str(made.id), title, after={"severity": severity, "cause": cause}
        )
        await audit.record(connection, None, actor, entry)
    return made


async def close_incident(
    connection: Platform,
    actor: Actor,
    incident_id: int,
    note: str | None = None,
    data: Mapping[str, Any] | None = None,
) -> IncidentRow | None:
    """Close an incident with the last entry of its timeline; None if it is closed."""
    closed = await incidents.close_incident(connection, incident_id, actor.name)
    if closed is not None:
        await incidents.insert_incident_entry(connection, incident_id, "CLOSED", actor.name, note, data)
        entry = AuditEntry(AuditVerb.INCIDENT_CLOSE, "incident", str(incident_id), closed.title, after={"note": note})
        await audit.record(connection, None, actor, entry)
    return closed


async def follow_level(
    connection: Platform, actor: Actor, cause: str, title: str, level: int, data: Mapping[str, Any]
) -> None:
    """Open, continue or close the incident of a mode: its level is above 0 while the mode is in force."""
    known = await incidents.open_incident_of(connection, cause)
    if level and known is None:
        await open_incident(connection, actor, "P2", cause, title, data=data)
    elif level and known is not None:
        await incidents.insert_incident_entry(connection, known, "CHANGED", actor.name, data=data)
    elif known is not None:
        await close_incident(connection, actor, known, data=data)
