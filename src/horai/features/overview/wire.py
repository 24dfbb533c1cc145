"""Wire models of the overview: statistics of the last hours, and conditions that need attention."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from horai.wire.fields import Id, Model
from horai.wire.health import LostNodeOut
from horai.wire.stuck import BlockedRunOut, CloggedQueueOut, FullQueueOut, StuckCauseOut


class MinuteOut(Model):
    """The work of the tenant on all processes in a minute, and the amount of waiting work.

    `failed` counts attempts, including the last attempt of an instance (`dead`). `retrying` (instances that wait for a
    retry), `deadLetters` (open ones) and `parkedEvents` (events that no source could read) are sampled once in that
    minute, each counted up to 100,000; null without a sample, as happens for up to five minutes while nothing starts.
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
    running: Annotated[int, Field(alias="RUNNING")]
    fail: Annotated[int, Field(alias="FAIL")]
    blocked: Annotated[int, Field(alias="BLOCKED")]


class StatsOut(Model):
    """Statistics for each minute from `from` on; the last minute has only begun.

    `overdue` is the part of `live.INIT` that is due: it waits for a free slot or is held by a pause. `liveExact` is
    false when `live` and `overdue` are estimated from a sample.
    """

    from_: Annotated[datetime, Field(alias="from")]
    minutes: list[MinuteOut]
    live: LiveCounts
    overdue: int
    live_exact: bool
    computed_at: datetime


class AilingOut(Model):
    """A job with instances that died, or that failed and are retried."""

    job: str
    job_id: Id
    instances: int
    last_at: datetime
    error_code: str | None


class LateOut(Model):
    """An instance that is due and not claimed."""

    id: Id
    job: str
    job_id: Id
    key: str | None
    due: datetime


class LateInstances(Model):
    """The number of instances due for more than a minute, and the oldest of them. `more`: not all were counted."""

    count: int
    more: bool
    examples: list[LateOut]


class HeldInstances(Model):
    """The number of due instances that a pause holds. `more`: not all were counted."""

    count: int
    more: bool


class PausedJobOut(Model):
    """A paused job, and the due instances that wait for it: up to 1,000 are counted."""

    id: Id
    name: str
    note: str | None
    paused_at: datetime | None
    waiting: HeldInstances


class PausedJobs(Model):
    """The number of paused jobs, and those paused last. `more`: not all were counted."""

    count: int
    more: bool
    examples: list[PausedJobOut]


class PausedQueueOut(Model):
    """A paused queue, and the due instances that wait in it: up to 2,000 are counted."""

    name: str
    updated_at: datetime
    note: str | None
    waiting: HeldInstances


class OpenBackfillOut(Model):
    """A backfill that is not finished."""

    id: Id
    job: str
    job_id: Id
    status: Literal["RUNNING", "PAUSED", "DONE", "CANCELLED"]
    total: int
    made: int
    ended: int
    created_at: datetime


class DriftOut(Model):
    """A reconciler whose last report has findings or an error."""

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
    """A refresh job whose oldest entity has waited more than a tenth longer than its window."""

    job: str
    job_id: Id
    window: str
    oldest: datetime


class ModeInForceOut(Model):
    """A mode of the governor that is in force: it limits dispatch of all tenants."""

    mode: Literal["SHED_LOW", "RETRY_LIMITED", "RETRY_SHORT_FIRST", "CORE_ONLY"]
    since: datetime | None


class HoldInForceOut(Model):
    """A pause or a freeze by hand. `scope`: of the whole platform, or of the caller's tenant.

    `note` and `actor` of a hold of the platform are null for callers of a tenant.
    """

    what: Literal["dispatch", "low-priority", "backfill"]
    scope: Literal["platform", "tenant"]
    since: datetime
    expires_at: datetime | None
    note: str | None
    actor: str | None


class FailingChannelOut(Model):
    """An alert channel that takes no messages.

    `status`: `PENDING` while a message is tried again for more than five minutes, `FAILED` if the last one was given up.
    `since`: when that message was made.
    """

    name: str
    kind: Literal["webhook", "slack", "feishu", "dingtalk", "wecom", "email"]
    status: Literal["PENDING", "FAILED"]
    attempt: int
    http_status: int | None
    error: str | None
    since: datetime


class ParkedSinkOut(Model):
    """A sink that has failed for more than five minutes: it is tried once a minute."""

    name: str
    kind: Literal["webhook", "nats", "kafka", "log"]
    failures: int
    failing_since: datetime | None
    last_error: str | None


class FailingBackupOut(Model):
    """The last backup of the embedded database failed, or the schedule has made none for twice its interval."""

    failed_at: datetime | None
    error: str | None
    success_at: datetime | None
    is_overdue: bool


class AttentionOut(Model):
    """Conditions that may need attention. `dying`: jobs with open dead letters of the last hour.

    `modes` and `holds` limit or hold dispatch. `stuck`: runs that take much longer than their job usually does, longest first.
    `clogged`: queues whose slots such runs hold. `full`: other queues without a free slot in which an instance has been due for more than
    a minute. `late` counts no instance of a queue that is listed. `blocked`: workflow runs that a dead node blocks.
    `failingChannels`: alert channels that take no messages. `parkedSinks`: sinks that get no events.
    `failingBackups` is shown to the platform only.
    """

    dying: list[AilingOut]
    failing: list[AilingOut]
    late: LateInstances
    lost_nodes: list[LostNodeOut]
    paused_jobs: PausedJobs
    paused_queues: list[PausedQueueOut]
    backfills: list[OpenBackfillOut]
    drifts: list[DriftOut]
    stale_refreshes: list[StaleRefreshOut]
    modes: list[ModeInForceOut]
    holds: list[HoldInForceOut]
    stuck: list[StuckCauseOut]
    clogged: list[CloggedQueueOut]
    full: list[FullQueueOut]
    blocked: list[BlockedRunOut]
    failing_channels: list[FailingChannelOut]
    parked_sinks: list[ParkedSinkOut]
    failing_backups: list[FailingBackupOut]
    computed_at: datetime
