"""Jobs on the wire."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field

from horai.wire.fields import Id, Instant, Model, Note, RateText, Text
from horai.wire.instances import StateName
from horai.wire.sentences import Sentence

Tags = Annotated[list[Text], Field(max_length=50)]
PriorityName = Literal["core", "high", "normal", "low"]
StatusName = Literal["ACTIVE", "PAUSED"]
MisfireName = Literal["skip", "once", "all"]
OverlapName = Literal["allow", "skip", "queue", "replace"]


class SecretReference(Model):
    """The value of a header that is a named secret of the tenant."""

    secret: Text


class TargetBatch(Model):
    """The most instances of a job that one call carries, 2 to 1,000."""

    size: int


class Target(Model):
    """The target of an attempt: an HTTP address, a function that a worker has registered, or a JetStream subject.

    `http`: `url`, `method`, `headers`, `batch`. `worker`: `handler`. `nats`: `broker`, a name that the operator allows (`--broker
    NAME=URL`), `subject` and `settleOn`: the attempt succeeds when the stream has stored the message (`stored`), or when
    its consumer reports so with `POST /api/v1/instances/{id}/outcome` (`reported`).
    """

    type: Literal["http", "worker", "nats"]
    url: Text | None = None
    method: Text | None = None
    headers: dict[Text, Text | SecretReference] | None = None
    batch: TargetBatch | None = None
    handler: Text | None = None
    broker: Text | None = None
    subject: Text | None = None
    settle_on: Text | None = None


class Retry(Model):
    """The retry policy of a failing instance. `maxLost` limits the attempts that are lost with their nodes (20)."""

    max_retry: int | None = None
    base: Text | None = None
    cap: Text | None = None
    jitter: Text | None = None
    max_lost: int | None = None


class Dst(Model):
    """The rule for fixed-time expressions where the clock jumps."""

    gap: Literal["shift", "skip"] | None = None
    overlap: Literal["first", "last", "both"] | None = None


class Misfire(Model):
    """The policy for late slots. With `all`, only the newest `maxCatchup` run, and none older than `window`."""

    policy: MisfireName
    max_catchup: int | None = None
    window: Text | None = None


class Refresh(Model):
    """A job with entities. An entity runs again when its last run ended at least one `window` before the job's tick."""

    window: Text | None = None
    limit: int | None = None
    run_on_add: bool | None = None


class CalendarUse(Model):
    """A named calendar. A slot on one of its days off is skipped, or moved to the working day before or after."""

    name: Text
    on_holiday: Literal["skip", "before", "after"] | None = None


Dates = Annotated[list[Text], Field(max_length=1_000)]


class ScheduleFields(Model):
    """The schedule of a job: a cron or an interval, in a time zone, with excluded dates or a named calendar."""

    cron: Annotated[Text, Field(max_length=1_000)] | None = None
    dialect: Literal["vixie", "quartz"] | None = None
    every: Text | None = None
    every_from: Literal["anchor", "finish"] | None = None
    anchor: Instant | None = None
    timezone: Text | None = None
    dst: Dst | None = None
    calendar: Dates | CalendarUse | None = None
    start_at: Instant | None = None
    end_at: Instant | None = None


class WhenIn(Model):
    """The assets to wait for: `all` of them, or `any` of them."""

    all: list[Text] | None = None
    any: list[Text] | None = None


class JobFields(ScheduleFields):
    """The fields of a job definition. At most one of cron, every, at and delay is allowed.

    `title` (up to 200 characters), `description` (4,000) and `owner` (200) are labels for people, in any script.
    """

    title: Text | None = None
    description: Text | None = None
    owner: Text | None = None
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
    produces: list[Text] | None = None
    """The assets that a success updates."""
    when: list[Text] | WhenIn | None = None
    """The assets to wait for: the job starts when all of them (or, with `any`, one of them) were updated since its last start."""
    refresh: Refresh | None = None
    tags: Tags | None = None
    status: StatusName | None = None
    encrypted: bool | None = None
    search_paths: Annotated[list[Text], Field(max_length=50)] | None = None
    keep_history: Text | None = None
    keep_dead_letters: Text | None = None
    concurrency_per_key: (
        Annotated[
            int,
            Field(description="Instances with the same `concurrencyKey` that run at once, 1 to 1,000; without it 1."),
        ]
        | None
    ) = None


class JobIn(JobFields):
    """`POST /api/v1/jobs`."""

    name: Text


class JobPatch(JobFields):
    """`PATCH /api/v1/jobs/{job}`: the given fields change; null removes a field."""

    name: Text | None = None


class Noted(Model):
    """`POST …/pause` and `…/resume`."""

    note: Note | None = None


class MatchingJobs(Model):
    """The jobs that match all given fields, oldest first; at least one field is required."""

    names: Annotated[list[Text], Field(min_length=1, max_length=1_000)] | None = None
    tag: Text | None = None
    queue: Text | None = None
    name_contains: Annotated[Text, Field(min_length=1, max_length=200)] | None = None
    owner: Text | None = None
    refresh: bool | None = None
    limit: Annotated[int, Field(ge=1, le=10_000)] = 10_000
    dry_run: bool = False


class JobSweepIn(MatchingJobs, Noted):
    """`POST /api/v1/jobs/pause` and `/resume`: the jobs that match all given fields; at least one is required."""


class DeleteManyIn(MatchingJobs):
    """`POST /api/v1/jobs/delete`: the jobs that match all given fields. `cursor` continues after an earlier request."""

    cursor: str | None = None


class TriggerManyIn(DeleteManyIn):
    """`POST /api/v1/jobs/trigger`: the jobs that match all given fields, the payload of their instances, and their rate.

    Without a payload each instance gets that of its job. With a `rate`, one instance after the other starts, the first at `startAt`
    or now.
    """

    payload: Any = None
    rate: RateText | None = None
    start_at: Instant | None = None


class SkippedJobOut(Model):
    """A job that matched and was left as it is, and why."""

    job: str
    reason: str
    reason_said: Sentence | None = None


class JobBulkAnswer(Model):
    """The result of a bulk trigger or deletion. `skipped` jobs could not be changed; `reasons` names the first 20 of them.

    `held`: another transaction had locked these jobs. The next request continues at `nextCursor`, with a rate from `nextStart` on;
    without a `nextCursor` no further job matches.
    """

    matched: int
    changed: int
    skipped: int
    held: int
    reasons: list[SkippedJobOut]
    next_cursor: str | None
    next_start: datetime | None
    dry_run: bool


class JobSweepAnswer(Model):
    """The number of jobs that matched and were changed.

    `held`: another request was changing these jobs; they stay as they are. `more`: further jobs may match.
    """

    matched: int
    changed: int
    held: int
    more: bool
    dry_run: bool


class JobOut(Model):
    """A job."""

    id: Id
    name: str
    title: str | None = None
    description: str | None = None
    owner: str | None = None
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
    calendar: list[str] | CalendarUse | None = None
    start_at: datetime | None = None
    end_at: datetime | None = None
    jitter: str | None = None
    produces: list[str] | None = None
    when: list[str] | WhenIn | None = None
    refresh: Refresh | None = None
    target: Target
    payload: Any = None
    """Null in lists when it is larger than 4,096 bytes: read the single job for it."""
    payload_size: int | None = None
    """Bytes of the payload; null if there is none."""
    encrypted: bool = False
    """Payloads, results, error texts and notes are encrypted; the role viewer sees `***`. It never changes."""
    search_paths: list[str] = Field(default_factory=list[str])
    """Fields of the payload that instances of an encrypted job are found by. They never change."""
    keep_history: str | None = None
    """Time for which finished instances are kept, from 1d to 3650d; null: as long as the tenant keeps them."""
    keep_dead_letters: str | None = None
    """Time for which dead letters are kept, at least as long as their instances; null: as the tenant does."""
    concurrency_per_key: int | None = None
    """Instances with the same `concurrencyKey` that run at once; null: 1."""
    payload_schema: dict[str, Any] | None = None
    """The JSON Schema of the payload, from the annotation of the function that runs it."""
    declared_by: str | None = None
    """The application whose code declares this job. Its next start undoes other changes, but not a pause."""
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
    """The few fields of an instance that a list of jobs shows."""

    id: Id
    state: StateName
    fire_time: datetime
    started_at: datetime | None
    finished_at: datetime | None


class ListedJob(JobOut):
    """A job in a list. With `recent`, it has its next fire and its last instances that were due, newest first."""

    recent: list[GlimpseOut] | None = None
    next_fire: datetime | None = None


class JobList(Model):
    """A page of jobs."""

    items: list[ListedJob]
    next_cursor: str | None
