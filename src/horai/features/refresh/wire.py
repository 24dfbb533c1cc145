"""The entities of refresh jobs on the wire."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field

from horai.wire.fields import Id, Key, Model

EntityStatus = Literal["NOT_RUN", "RUNNING", "SUCCESS", "FAILED"]


class EntityIn(Model):
    """`PUT /api/v1/jobs/{job}/entities/{key}`. Without a payload its runs get the job's."""

    payload: Any = None


class EntityItem(Model):
    """One of a batch."""

    key: Key
    payload: Any = None


class EntitiesIn(Model):
    """`POST /api/v1/jobs/{job}/entities/batch`."""

    items: Annotated[list[EntityItem], Field(min_length=1, max_length=10_000)]


class EntitiesAnswer(Model):
    """How many entities of a batch are new, and how many were there already."""

    added: int
    known: int


class EntityOut(Model):
    """An entity, and how its last run was. `refreshedAt` is the end of the last one, also while it runs again.

    `batchNo` is the tick that loaded it.
    """

    id: Id
    key: str
    status: EntityStatus
    start_time: datetime | None
    finish_time: datetime | None
    refreshed_at: datetime | None
    remark: str | None
    batch_no: Id | None
    instance_id: Id | None
    payload: Any
    """Null in lists when it is larger than 4,096 bytes: read the single entity for it."""
    payload_size: int | None
    """Bytes of the payload; null without one."""
    create_time: datetime
    update_time: datetime


class EntityList(Model):
    """A page of entities, by key."""

    items: list[EntityOut]
    next_cursor: str | None


class TickOut(Model):
    """A tick: how many entities were due when it began, how many of them it has loaded, and how these are."""

    batch_no: Id
    fire_time: datetime
    due: int
    loaded: int
    running: int
    succeeded: int
    failed: int
    started_at: datetime
    ended_at: datetime | None


class RefreshOut(Model):
    """How fresh a job's entities are.

    `coverage`: the share whose last run ended within the window. `maxAge`: since the end of the last run of the one that
    waits longest, or since it was added. `due`: those the next tick would load if it were now. `overdue`: those older than
    a window and a tick. `failed`: those of the coverage whose last run failed.
    """

    job: str
    job_id: Id
    window: str
    entities: int
    never_run: int
    running: int
    due: int
    overdue: int
    coverage: float | None
    failed: int
    max_age: str | None
    oldest: list[EntityOut]
    last_tick: TickOut | None
    next_tick: datetime | None
