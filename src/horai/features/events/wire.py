"""Request and response models of parked events."""

from datetime import datetime
from typing import Literal

from horai.wire.fields import Id, Model, Text

FateName = Literal["INSERTED", "UPDATED", "SUPERSEDED", "IGNORED", "CANCELLED", "REPEATED", "PARKED", "DELAYED"]


class RetryIn(Model):
    """`POST /api/v1/events/parked/{event}/retry`: the job of the event, if the event does not name one."""

    job: Text | None = None


class ParkedOut(Model):
    """A message of an event source that could not take effect, and the reason.

    `place` is its position in the source, `size` the length of its body in bytes. `preview` is the beginning of the
    body as text. `isWhole`: the whole body is stored, so the message can be retried.
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
    """A parked event with its headers and the stored part of its body."""

    headers: dict[str, str]
    body: str


class ParkedList(Model):
    """A page of parked events, oldest first."""

    items: list[ParkedOut]
    next_cursor: str | None


class RetryAnswer(Model):
    """The result of a retry.

    With PARKED and DELAYED the event stays parked, for `reason`; with every other decision it has left the list.
    """

    id: Id
    decision: FateName
    reason: str | None
    instance_id: Id | None
