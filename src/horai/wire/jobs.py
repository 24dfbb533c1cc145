"""Jobs on the wire."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field

from horai.wire.fields import Id, Instant, Model, Note, Text

Tags = Annotated[list[Text], Field(max_length=50)]
PriorityName = Literal["core", "high", "normal", "low"]
StatusName = Literal["ACTIVE", "PAUSED"]


class Target(Model):
    """Where an attempt goes: an HTTP address, or a function that a worker has registered."""

    type: Literal["http", "worker"]
    url: Text | None = None
    method: Text | None = None
    headers: dict[Text, Text] | None = None
    handler: Text | None = None


class Retry(Model):
    """How a failing instance is tried again."""

    max_retry: int | None = None
    base: Text | None = None
    cap: Text | None = None
    jitter: Text | None = None


class Dst(Model):
    """What a fixed-time expression does where the clock jumps."""

    gap: Literal["shift", "skip"] | None = None
    overlap: Literal["first", "last", "both"] | None = None


class JobFields(Model):
    """What a definition may carry. At most one of cron, every, at, delay."""

    cron: Annotated[Text, Field(max_length=1_000)] | None = None
    every: Text | None = None
    at: Instant | None = None
    delay: Text | None = None
    timezone: Text | None = None
    dst: Dst | None = None
    target: Target | None = None
    payload: Any = None
    queue: Text | None = None
    priority: PriorityName | None = None
    retry: Retry | None = None
    timeout: Text | None = None
    misfire: Literal["once"] | None = None
    overlap: Literal["allow"] | None = None
    tags: Tags | None = None
    status: StatusName | None = None


class JobIn(JobFields):
    """`POST /api/v1/jobs`."""

    name: Text


class JobPatch(JobFields):
    """`PATCH /api/v1/jobs/{job}`: what is given is changed, null takes a field away."""

    name: Text | None = None


class Noted(Model):
    """`POST …/pause` and `…/resume`."""

    note: Note | None = None


class JobOut(Model):
    """A job as it is."""

    id: Id
    name: str
    status: StatusName
    cron: str | None = None
    every: str | None = None
    at: datetime | None = None
    delay: str | None = None
    timezone: str | None = None
    dst: Dst | None = None
    target: Target
    payload: Any = None
    payload_schema: dict[str, Any] | None = None
    """What a payload must look like, by the annotation of the function that runs it."""
    declared_by: str | None = None
    """The application whose code says what this job is: its next start undoes other changes, but no pause."""
    queue: str
    priority: PriorityName
    retry: Retry
    timeout: str | None
    misfire: str
    overlap: str
    tags: list[str]
    note: str | None
    version: int
    created_at: datetime
    updated_at: datetime


class JobList(Model):
    """A page of jobs."""

    items: list[JobOut]
    next_cursor: str | None
