"""Operations on incidents by hand: open, read, note, close."""

from dataclasses import dataclass

from horai.core.audit import AuditEntry, AuditVerb
from horai.core.digits import number_in
from horai.core.errors import AlreadyFinal, NotFound
from horai.db import incidents
from horai.db.incidents import IncidentEntry, IncidentRow
from horai.db.pool import Platform
from horai.operations import audit
from horai.operations import incidents as operations
from horai.operations.scope import PlatformScope
from horai.text import Hint, Refused


@dataclass(frozen=True, slots=True)
class IncidentHistory:
    """An incident with its timeline."""

    row: IncidentRow
    timeline: list[IncidentEntry]


async def list_incidents(
    scope: PlatformScope, before: int | None, limit: int, is_open: bool | None
) -> list[IncidentRow]:
    """Return a page of incidents, newest first."""
    async with scope.read() as connection:
        return await incidents.list_incidents(connection, before, limit, is_open)


async def read_incident(scope: PlatformScope, reference: str) -> IncidentHistory:
    """Return an incident with its timeline. Raise `NotFound` if there is none of this id."""
    async with scope.read() as connection:
        return await _history(connection, reference)


async def _history(connection: Platform, reference: str) -> IncidentHistory:
    row = await incidents.find_incident(connection, _number(reference))
    if row is None:
        raise _not_found(reference)
    return IncidentHistory(row, await incidents.incident_entries(connection, row.id))


async def open_by_hand(scope: PlatformScope, severity: str, title: str, note: str | None) -> IncidentHistory:
    """Open an incident by hand. Several may be open at once."""
    async with scope.write() as connection:
        made = await operations.open_incident(connection, scope.actor, severity, operations.BY_HAND, title, note)
        assert made is not None  # noqa: S101 — only other causes are open once
        return await _history(connection, str(made.id))


async def add_note(scope: PlatformScope, reference: str, note: str) -> IncidentHistory:
    """Add a note to the timeline, also after the incident was closed."""
    async with scope.write() as connection:
        row = await _lock(connection, reference)
        await incidents.insert_incident_entry(connection, row.id, "NOTE", scope.actor.name, note)
        entry = AuditEntry(AuditVerb.INCIDENT_NOTE, "incident", str(row.id), row.title, after={"note": note})
        await audit.record(connection, None, scope.actor, entry)
        return await _history(connection, reference)


async def close_by_hand(scope: PlatformScope, reference: str, note: str | None) -> IncidentHistory:
    """Close an incident. That of a mode opens again when the mode begins again; the mode itself goes on."""
    async with scope.write() as connection:
        row = await _lock(connection, reference)
        if await operations.close_incident(connection, scope.actor, row.id, note) is None:
            raise AlreadyFinal(
                Refused.INCIDENT_CLOSED(incident=row.id), Hint.OPEN_ANOTHER_INCIDENT(), extra={"state": "CLOSED"}
            )
        return await _history(connection, reference)


async def _lock(connection: Platform, reference: str) -> IncidentRow:
    row = await incidents.lock_incident(connection, _number(reference))
    if row is None:
        raise _not_found(reference)
    return row


def _number(reference: str) -> int:
    if (number := number_in(reference)) is None:
        raise _not_found(reference)
    return number


def _not_found(reference: str) -> NotFound:
    return NotFound(Refused.NO_INCIDENT(incident=reference[:40]), Hint.LISTED_AT(path="/api/v1/incidents"))
