"""Jobs on the wire."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field

from horai.wire.fields import Id, Instant, Model, Note, Text
from horai.wire.instances import StateName

Tags = Annotated[list[Text], Field(max_length=50)]
PriorityName = Literal["core", "high", "normal", "low"]
StatusName = Literal["ACTIVE", "PAUSED"]
MisfireName = Literal["skip", "once", "all"]
OverlapName = Literal["allow", "skip", "queue", "replace"]


class Target(Model):
    """Where an attempt goes: an HTTP address, or a function that a worker has registered."""

    type: Literal["http", "worker"]
    url: Text | None = None
    method: Text | None = None
    headers: dict[Text, Text] | None = None
    handler: Text | None = None


class Retry(Model):
    """How a failing instance is tried again. `maxLost` limits the attempts that are lost with their nodes (20)."""

    max_retry: int | None = None
    base: Text | None = None
    cap: Text | None = None
    jitter: Text | None = None
    max_lost: int | None = None


class Dst(Model):
    """What a fixed-time expression does where the clock jumps."""

    gap: Literal["shift", "skip"] | None = None
    overlap: Literal["first", "last", "both"] | None = None


class Misfire(Model):
    """What becomes of late slots: of `all` of them only the newest `maxCatchup`, and none from before `window`."""

    policy: MisfireName
    max_catchup: int | None = None
    window: Text | None = None


class Refresh(Model):
    """A job with entities, each of which runs again when its last run ended a `window` before the job's tick."""

    window: Text | None = None
    limit: int | None = None
    run_on_add: bool | None = None


class ScheduleFields(Model):
    """What says when: a cron or an interval, in a zone, but not on excluded dates."""

    cron: Annotated[Text, Field(max_length=1_000)] | None = None
    dialect: Literal["vixie", "quartz"] | None = None
    every: Text | None = None
    every_from: Literal["anchor", "finish"] | None = None
    anchor: Instant | None = None
    timezone: Text | None = None
    dst: Dst | None = None
    calendar: Annotated[list[Text], Field(max_length=1_000)] | None = None
    start_at: Instant | None = None
    end_at: Instant | None = None


class JobFields(ScheduleFields):
    """What a definition may carry. At most one of cron, every, at, delay."""

    at: Instant | None = None
    delay: Text | None = None
    target: Target | None = None
    payload: Any = None
    queue: Text | None = None
    priority: PriorityName | None = None
    retry: Retry | None = None
    timeout: Text | None = None
    misfire: MisfireName | Misfire | None = None
    misfire_after: Text | None = None
    overlap: OverlapName | None = None
    jitter: Text | None = None
    refresh: Refresh | None = None
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


class JobSweepIn(Noted):
    """`POST /api/v1/jobs/pause` and `/resume`: the jobs that match all of the given fields; at least one is required."""

    names: Annotated[list[Text], Field(min_length=1, max_length=1_000)] | None = None
    tag: Text | None = None
    queue: Text | None = None
    name_contains: Annotated[Text, Field(min_length=1, max_length=200)] | None = None
    limit: Annotated[int, Field(ge=1, le=10_000)] = 10_000
    dry_run: bool = False


class JobSweepAnswer(Model):
    """How many jobs matched and were changed.

    `held`: another request was changing these jobs, which stay as they are. `more`: further jobs may match.
    """

    matched: int
    changed: int
    held: int
    more: bool
    dry_run: bool


class JobOut(Model):
    """A job as it is."""

    id: Id
    name: str
    status: StatusName
    cron: str | None = None
    dialect: str | None = None
    every: str | None = None
    every_from: str | None = None
    anchor: datetime | None = None
    at: datetime | None = None
    delay: str | None = None
    timezone: str | None = None
    dst: Dst | None = None
    calendar: list[str] | None = None
    start_at: datetime | None = None
    end_at: datetime | None = None
    jitter: str | None = None
    refresh: Refresh | None = None
    target: Target
    payload: Any = None
    """Null in lists when it is larger than 4,096 bytes: read the single job for it."""
    payload_size: int | None = None
    """Bytes of the payload; null without one."""
    payload_schema: dict[str, Any] | None = None
    """What a payload must look like, by the annotation of the function that runs it."""
    declared_by: str | None = None
    """The application whose code says what this job is: its next start undoes other changes, but no pause."""
    queue: str
    priority: PriorityName
    retry: Retry
    timeout: str | None
    misfire: MisfireName | Misfire
    misfire_after: str | None = None
    overlap: OverlapName
    tags: list[str]
    note: str | None
    version: int
    created_at: datetime
    updated_at: datetime


class GlimpseOut(Model):
    """An instance as a mark in a row of many."""

    id: Id
    state: StateName
    fire_time: datetime
    started_at: datetime | None
    finished_at: datetime | None


class ListedJob(JobOut):
    """A job in a list; with `recent`, its last instances whose time has come, newest first, and its next fire."""

    recent: list[GlimpseOut] | None = None
    next_fire: datetime | None = None


class JobList(Model):
    """A page of jobs."""

    items: list[ListedJob]
    next_cursor: str | None
