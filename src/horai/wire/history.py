"""The history of a key on the wire."""

from datetime import datetime
from typing import Any

from horai.wire.fields import Id, Model


class HistoryEntry(Model):
    """One thing that happened to a key. `seq` counts an instance's changes of state; null for what changed none."""

    at: datetime
    instance_id: Id
    seq: int | None
    kind: str
    data: dict[str, Any] | None


class HistoryList(Model):
    """A page of a key's history, oldest first."""

    items: list[HistoryEntry]
    next_cursor: str | None
