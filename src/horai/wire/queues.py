"""Queues on the wire."""

from datetime import datetime
from typing import Annotated

from pydantic import Field

from horai.wire.encode import From
from horai.wire.fields import Model, Note, Text, Written
from horai.wire.jobs import PriorityName
from horai.wire.stuck import ClogOut


class QueueIn(Model):
    """`PUT /api/v1/queues/{name}`: all settings of the queue. Absent and null fields get their defaults.

    `note` is the reason of a pause. `title`, `description` and `owner` are labels for people, in any script.
    """

    priority: PriorityName | None = None
    max_concurrency: Annotated[int, Field(json_schema_extra={"minimum": 1, "maximum": 10_000})] | None = None
    rate: Annotated[Text | int, Field(json_schema_extra={"examples": ["100/s", "30/m", "1000/h", 5]})] | None = None
    paused: bool | None = None
    note: Note | None = None
    title: Text | None = None
    description: Text | None = None
    owner: Text | None = None


class QueueDefinition(Model):
    """A queue in a file of definitions. Its pause is no part of it."""

    name: Text
    priority: PriorityName | None = None
    max_concurrency: Annotated[int, Field(json_schema_extra={"minimum": 1, "maximum": 10_000})] | None = None
    rate: Annotated[Text | int, Field(json_schema_extra={"examples": ["100/s", "30/m", "1000/h", 5]})] | None = None
    title: Text | None = None
    description: Text | None = None
    owner: Text | None = None


class QueueOut(Model):
    """A queue.

    `waiting` is the number of due instances that have not started, counted up to 2,000. `running` is null if there were
    too many to count. Instances that a paused job holds back are in no queue. `clogged` is null unless stuck runs hold all slots.
    """

    name: str
    priority: Annotated[PriorityName, From("settings.priority_in_force")]
    max_concurrency: Annotated[int | None, From("settings.max_concurrency")]
    rate: Annotated[Written | None, From("settings.rate")]
    paused: Annotated[bool, From("settings.paused")]
    note: Annotated[str | None, From("settings.note")]
    title: Annotated[str | None, From("settings.title")]
    description: Annotated[str | None, From("settings.description")]
    owner: Annotated[str | None, From("settings.owner")]
    declared_by: str | None = None
    """The application whose code declares this queue. Its next start undoes other changes, but not a pause."""
    waiting: int
    running: int | None
    version: int
    updated_at: datetime
    clogged: ClogOut | None


class QueueList(Model):
    """A page of queues."""

    items: list[QueueOut]
    next_cursor: str | None
