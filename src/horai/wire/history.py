"""The history of a key on the wire."""

from datetime import datetime

from horai.wire.fields import Id, JsonObject, Model


class HistoryEntry(Model):
    """One event of a key. `seq` counts the state changes of an instance; it is null if the event changed no state."""

    at: datetime
    instance_id: Id
    seq: int | None
    kind: str
    data: JsonObject | None


class HistoryList(Model):
    """A page of a key's history, oldest first."""

    items: list[HistoryEntry]
    next_cursor: str | None
