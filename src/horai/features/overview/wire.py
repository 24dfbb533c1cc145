"""The overview on the wire: how the last hours went, and what needs somebody."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from horai.wire.fields import Id, Model
from horai.wire.health import LostNodeOut


class MinuteOut(Model):
    """What all processes did in a minute, and how much waited in it.

    `failed` are attempts, those included that were the last of their instance (`dead`). `retrying` (instances that wait for a
    retry), `deadLetters` (that nobody has seen to) and `parkedEvents` (that no source could read) are as they were once in
    that minute, each counted up to 100,000; null when nobody looked, as happens for up to five minutes while nothing begins.
    """

    at: datetime
    started: int
    succeeded: int
    failed: int
    dead: int
    delay_p50_ms: float
    delay_p95_ms: float
    delay_p99_ms: float
    retrying: int | None
    dead_letters: int | None
    parked_events: int | None


class LiveCounts(Model):
    """Live instances by state."""

    init: Annotated[int, Field(alias="INIT")]
    blocked: Annotated[int, Field(alias="BLOCKED")]
    running: Annotated[int, Field(alias="RUNNING")]
    fail: Annotated[int, Field(alias="FAIL")]


class StatsOut(Model):
    """A minute each from `from` on; the last has only begun.

    `overdue` is the part of `live.INIT` whose time has come: it waits for a free slot or is held by a pause. `liveExact` is
    false when `live` and `overdue` are estimated from a sample.
    """

    from_: Annotated[datetime, Field(alias="from")]
    minutes: list[MinuteOut]
    live: LiveCounts
    overdue: int
    live_exact: bool
    computed_at: datetime


class AilingOut(Model):
    """A job with instances that died, or that failed and are tried again."""

    job: str
    job_id: Id
    instances: int
    last_at: datetime
    error_code: str | None


class LateOut(Model):
    """An instance that is due, and that nobody has claimed."""

    id: Id
    job: str
    job_id: Id
    key: str | None
    due: datetime


class LateInstances(Model):
    """How many instances have been due for more than a minute, and the oldest of them. `more`: not all were looked at."""

    count: int
    more: bool
    examples: list[LateOut]


class PausedJobOut(Model):
    """A job that is paused."""

    id: Id
    name: str
    note: str | None
    paused_at: datetime | None


class PausedJobs(Model):
    """How many jobs are paused, and the last ones. `more`: not all were counted."""

    count: int
    more: bool
    examples: list[PausedJobOut]


class PausedQueueOut(Model):
    """A queue that is paused."""

    name: str
    updated_at: datetime


class OpenBackfillOut(Model):
    """A backfill that is not over."""

    id: Id
    job: str
    job_id: Id
    status: Literal["RUNNING", "PAUSED", "DONE", "CANCELLED"]
    total: int
    made: int
    ended: int


class DriftOut(Model):
    """A reconciler whose last report has something to tell."""

    id: Id
    name: str
    report_id: Id
    started_at: datetime
    missing: int
    created: int
    surplus: int | None
    faulty: int
    error: str | None


class StaleRefreshOut(Model):
    """A refresh job whose oldest entity waits for more than a tenth longer than its window."""

    job: str
    job_id: Id
    window: str
    oldest: datetime


class AttentionOut(Model):
    """What may need somebody. `dying`: dead letters of the last hour that nobody has seen to."""

    dying: list[AilingOut]
    failing: list[AilingOut]
    late: LateInstances
    lost_nodes: list[LostNodeOut]
    paused_jobs: PausedJobs
    paused_queues: list[PausedQueueOut]
    backfills: list[OpenBackfillOut]
    drifts: list[DriftOut]
    stale_refreshes: list[StaleRefreshOut]
    computed_at: datetime
