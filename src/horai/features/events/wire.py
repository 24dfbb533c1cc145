"""Parked events on the wire."""

from datetime import datetime
from typing import Literal

from horai.wire.fields import Id, Model, Text

FateName = Literal["INSERTED", "UPDATED", "SUPERSEDED", "IGNORED", "CANCELLED", "REPEATED", "PARKED", "DELAYED"]


class RetryIn(Model):
    """`POST /api/v1/events/parked/{event}/retry`: whose event it is, where it does not name a job itself."""

    job: Text | None = None


class ParkedOut(Model):
    """A message of an event source that could not take effect, and why.

    `place` is where it stands in its source, `size` its length in bytes. `preview` is how its body begins, as text;
    `isWhole`: all of the body is kept, so that it can be retried.
    """

    id: Id
    source: str
    place: str
    subject: str
    reason: str
    at: datetime
    size: int
    is_whole: bool
    preview: str


class ParkedDetail(ParkedOut):
    """The same with its headers, and as much of its body as is kept."""

    headers: dict[str, str]
    body: str


class ParkedList(Model):
    """A page of parked events, the oldest first."""

    items: list[ParkedOut]
    next_cursor: str | None


class RetryAnswer(Model):
    """What became of a parked event: PARKED and DELAYED leave it where it is, for `reason`; with the others it is gone."""

    id: Id
    decision: FateName
    reason: str | None
    instance_id: Id | None
