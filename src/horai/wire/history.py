"""The history of a key on the wire."""

from datetime import datetime
from typing import Any

from horai.wire.fields import Id, Model


class HistoryEntry(Model):
    """One event of a key. `seq` counts the state changes of an instance; it is null if the event changed no state."""

    at: datetime
    instance_id: Id
    seq: int | None
    kind: str
    data: dict[str, Any] | None


class HistoryList(Model):
    """A page of a key's history, oldest first."""

    items: list[HistoryEntry]
    next_cursor: str | None
