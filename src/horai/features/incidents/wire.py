"""Incidents on the wire."""

from datetime import datetime
from typing import Any, Literal

from pydantic import Field

from horai.wire.fields import Id, Model, Note, Text

Severity = Literal["P1", "P2"]


class IncidentIn(Model):
    """`POST /api/v1/incidents`: open an incident by hand."""

    severity: Severity
    title: Text = Field(min_length=1, max_length=200)
    note: Note | None = None


class IncidentNoteIn(Model):
    """`POST /api/v1/incidents/{incident}/notes`."""

    note: Note = Field(min_length=1)


class IncidentOut(Model):
    """An incident. `cause`: a mode of the governor, `NO_NODE` for a time without a live node, or `BY_HAND`."""

    id: Id
    severity: Severity
    cause: str
    title: str
    opened_at: datetime
    opened_by: str
    closed_at: datetime | None
    closed_by: str | None


class IncidentEntryOut(Model):
    """An entry of the timeline. `data`: the level and the figure of a mode."""

    at: datetime
    kind: Literal["OPENED", "CHANGED", "NOTE", "RECOVERED", "CLOSED"]
    actor: str
    note: str | None
    data: dict[str, Any] | None


class IncidentDetail(IncidentOut):
    """An incident with its timeline, oldest first; at most 1,000 entries."""

    timeline: list[IncidentEntryOut]


class IncidentList(Model):
    """A page of incidents, newest first."""

    items: list[IncidentOut]
    next_cursor: str | None
