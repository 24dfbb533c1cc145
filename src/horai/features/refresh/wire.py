"""Request and response models of the entities of refresh jobs."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field

from horai.wire.encode import From
from horai.wire.fields import Id, Json, Key, Model, Text

EntityStatus = Literal["NOT_RUN", "RUNNING", "SUCCESS", "FAILED"]


class EntityIn(Model):
    """`PUT /api/v1/jobs/{job}/entities/{key}`. Without a payload its runs use the payload of the job."""

    payload: Any = None


class EntityItem(Model):
    """One entity of a batch."""

    key: Key
    payload: Any = None


class EntitiesIn(Model):
    """`POST /api/v1/jobs/{job}/entities/batch`."""

    items: Annotated[list[EntityItem], Field(min_length=1, max_length=10_000)]


class EntitiesAnswer(Model):
    """The numbers of new and of known entities of a batch."""

    added: int
    known: int


class EntityRemovalIn(Model):
    """`POST /api/v1/jobs/{job}/entities/remove`: the entities that match all given fields; at least one is required."""

    keys: Annotated[list[Key], Field(min_length=1, max_length=500)] | None = None
    prefix: Text | None = None
    status: EntityStatus | None = None
    older_than: Text | None = None
    batch: Id | None = None
    limit: Annotated[int, Field(ge=1, le=10_000)] = 10_000
    dry_run: bool = False


class EntityRemovalAnswer(Model):
    """The result of a bulk removal. `held`: another transaction had locked these entities; `more`: others may match."""

    matched: int
    removed: int
    held: int
    more: bool
    dry_run: bool


class EntityOut(Model):
    """An entity and its last run. `refreshedAt` is the end of the last completed run, even while it runs again.

    `batchNo` is the tick that loaded it.
    """

    id: Id
    key: str
    status: EntityStatus
    start_time: datetime | None
    finish_time: datetime | None
    refreshed_at: Annotated[datetime | None, From("fresh_at")]
    remark: str | None
    batch_no: Id | None
    instance_id: Id | None
    payload: Json
    """Null in lists if it is larger than 4,096 bytes; read the single entity to get it."""
    payload_size: int | None
    """The size of the payload in bytes; null without one."""
    create_time: datetime
    update_time: datetime


class EntityList(Model):
    """A page of entities in order of key."""

    items: list[EntityOut]
    next_cursor: str | None


class TickOut(Model):
    """A tick: the number of entities that were due when it began, the number it has loaded, and their states."""

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
    """The freshness of the entities of a job.

    `coverage`: the share whose last run ended within the window. `maxAge`: the age of the oldest entity, since its last
    run ended or since it was added. `due`: entities that a tick would load now. `overdue`: entities older than window +
    tick. `failed`: entities within the coverage whose last run failed.
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
