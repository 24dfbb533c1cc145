"""Instances on the wire."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field

from horai.wire.encode import From
from horai.wire.fields import Id, Instant, Json, JsonObject, Key, Model, RateText, Text

StateName = Literal["INIT", "BLOCKED", "RUNNING", "FAIL", "SUCCESS", "DEAD", "CANCELLED"]
Reason = Literal["USER", "SUPERSEDED", "OVERLAP", "PARENT", "JOB_DELETED", "SKIPPED", "EXPIRED"]
DecisionName = Literal["INSERTED", "UPDATED", "SUPERSEDED", "IGNORED"]
Version = Annotated[int, Field(ge=0, lt=2**62)]
OWN_TAGS = 10
TagText = Annotated[str, Field(pattern=r"^[^\x00-\x20,]{1,64}$")]


ConcurrencyKey = Annotated[
    Key,
    Field(
        description="At most `concurrencyPerKey` of the job (1 if it has none) of the instances with this key run at once.",
    ),
]


QueueName = Annotated[Text, Field(max_length=64, description="Run it in this queue instead of that of its job.")]
PriorityName = Annotated[
    Literal["core", "high", "normal", "low"],
    Field(description="Run it with this priority instead of that of its job."),
]
Expires = Annotated[
    Text,
    Field(
        max_length=64,
        description='No attempt begins later: a time with an offset, or a duration such as "10m" after its time. The instance is '
        "then CANCELLED with the reason EXPIRED.",
    ),
]


class PutIn(Model):
    """`PUT /api/v1/jobs/{job}/instances/{key}`. Without `executeTime` the instance runs now."""

    execute_time: Instant | None = None
    payload: Any = None
    version: Version | None = None
    again: bool = False
    keep_steps: Annotated[
        bool,
        Field(description="The finished steps of an instance that is moved or replaced stay finished."),
    ] = False
    concurrency_key: ConcurrencyKey | None = None
    queue: QueueName | None = None
    priority: PriorityName | None = None
    expires: Expires | None = None


Window = Annotated[str, Field(max_length=64)]
"""A duration from 1ms to 7d."""
Unique = Annotated[
    bool | Window,
    Field(
        description="Do not add it while an instance of an earlier unique call with the same payload is live; with a duration "
        'such as "10m", not within that time after the earlier call either.'
    ),
]


class BatchItem(Model):
    """One item of a batch. With a key it follows the rules of put; `unique` and `debounce` are for items without one."""

    key: Key | None = None
    execute_time: Instant | None = None
    payload: Any = None
    unique: Unique | None = None
    debounce: (
        Annotated[
            Window,
            Field(
                description="Run it after this time, and move the instance of an earlier debounced item with the same payload "
                "that has not started."
            ),
        ]
        | None
    ) = None
    concurrency_key: ConcurrencyKey | None = None
    queue: QueueName | None = None
    priority: PriorityName | None = None
    expires: Expires | None = None


class BatchIn(Model):
    """`POST /api/v1/jobs/{job}/instances/batch`."""

    items: Annotated[list[BatchItem], Field(min_length=1, max_length=10_000)]


class TriggerIn(Model):
    """`POST /api/v1/jobs/{job}/trigger`. Without a payload the instance gets the job's payload."""

    payload: Any = None
    unique: Unique | None = None
    concurrency_key: ConcurrencyKey | None = None
    queue: QueueName | None = None
    priority: PriorityName | None = None
    expires: Expires | None = None


class OutcomeIn(Model):
    """`POST /api/v1/instances/{id}/outcome`, by a target that answered 202."""

    fence: Annotated[int, Field(ge=1, lt=2**62)]
    result: Literal["SUCCESS", "FAIL_RETRYABLE", "FAIL_UNRECOVERABLE"]
    message: Annotated[Text, Field(max_length=10_000)] | None = None
    output: Any = None
    tags: Annotated[list[TagText], Field(max_length=OWN_TAGS)] | None = None
    """With FAIL_UNRECOVERABLE: tags to find the dead letter by."""


class Narrowed(Model):
    """The filter of a list of instances, or of a bulk request over them.

    `when` selects instances whose fire time has passed (`happened`) or lies ahead (`planned`). `payload` is a member of
    the payload and its value, such as `order.id=17`; dots separate the names.
    """

    state: Text | None = None
    key: Text | None = None
    key_prefix: Text | None = None
    tag: Text | None = None
    queue: Text | None = None
    error_code: Text | None = None
    payload: Annotated[Text, Field(max_length=1_000)] | None = None
    from_: Annotated[Instant | None, Field(alias="from")] = None
    to: Instant | None = None
    when: Literal["happened", "planned"] | None = None


class SweepIn(Narrowed):
    """`POST /api/v1/instances/cancel`: the instances that match all given fields; at least one is required."""

    job: Text | None = None
    ids: Annotated[list[Id], Field(min_length=1, max_length=500)] | None = None
    limit: Annotated[int, Field(ge=1, le=10_000)] = 10_000
    dry_run: bool = False


class SweepAnswer(Model):
    """The result of a bulk cancel. `held`: another transaction had locked them; `more`: further instances may match."""

    matched: int
    cancelled: int
    held: int
    more: bool
    dry_run: bool


class ReplaySweepIn(SweepIn):
    """`POST /api/v1/instances/replay`: the dead instances that match. `cursor` continues after an earlier request.

    `rate` spreads the starts of one request: the first starts now.
    """

    cursor: str | None = None
    rate: RateText | None = None


class ReplaySweepAnswer(Model):
    """The result of a bulk replay.

    `superseded` instances were not run: their keys are live, or have succeeded since. `held` instances can still be
    replayed: another transaction had locked them. The next request continues at `nextCursor`; null means the end.
    """

    matched: int
    replayed: int
    superseded: int
    held: int
    next_cursor: str | None
    dry_run: bool


class LogLine(Model):
    """A message of a running function, with its progress if the function reported it in the same call."""

    at: datetime
    level: Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"]
    message: str
    progress: float | None


class AttemptOut(Model):
    """One attempt. `late`: its outcome arrived after the instance had moved on, and changed nothing.

    `LOST`: its node died. A loss is not a failure, as another function may have killed the node.

    `progress` is the last value that its function reported, from 0 to 1; `log` has its last lines. A released attempt
    (`RELEASED`: nothing was sent, or the function asked to run later) is only shown if its function wrote a note.
    """

    attempt: int
    fence: int
    outcome: Literal["SUCCESS", "FAIL", "LOST", "DEAD", "RUNNING", "CANCELLED", "RELEASED"]
    late: bool
    started_at: datetime | None
    finished_at: datetime | None
    error_code: str | None
    error_msg: str | None
    progress: float | None
    log: list[LogLine]
    trace_id: Annotated[str, Field(description="The trace of the instance. Only if traces are on.")] | None = None
    span_id: Annotated[str, Field(description="The span of the attempt. Only if traces are on.")] | None = None


class EventOut(Model):
    """One entry of an instance's timeline."""

    seq: int | None
    at: datetime
    kind: str
    data: JsonObject | None


class NeighbourOut(Model):
    """A direct parent or child of an instance in its workflow. `state` is null until the workflow records its end."""

    node: Annotated[str, From("name")]
    instance_id: Id
    state: StateName | None


class WorkflowPlace(Model):
    """The place of an instance in a workflow: the run and the node."""

    run_id: Id
    workflow_id: Id
    workflow: str
    node: str
    parents: list[NeighbourOut]
    children: list[NeighbourOut]


class InstanceOut(Model):
    """One planned execution of a job.

    `retryCount` counts failures; `lostCount`, which lists leave out, counts attempts that were lost with their nodes.
    While the state is RUNNING, `errorCode` and `errorMsg` are null; `attempts` has the errors of earlier attempts.
    """

    id: Id
    job: str
    job_id: Id
    key: str | None
    state: StateName
    reason: Reason | None
    fire_time: datetime
    execute_time: datetime
    due: datetime | None
    attempt: int
    retry_count: int
    fence: int
    queue: str
    priority: Literal["core", "high", "normal", "low"]
    payload: Json
    """Null in lists when it is larger than 4,096 bytes: read the single instance for it."""
    payload_size: int | None
    """Bytes of the payload; null if there is none."""
    result: Annotated[
        Json,
        From("kept_result"),
        Field(description="The result of the function or the target, at most 64 kB; null if `resultTruncated`."),
    ]
    result_truncated: Annotated[
        bool,
        From("is_result_truncated"),
        Field(description="The target's result was not kept: over 64 kB, or text that PostgreSQL cannot store."),
    ]
    error_code: str | None
    error_msg: str | None
    created_at: datetime
    started_at: Annotated[datetime | None, From("claimed_at")]
    finished_at: datetime | None
    node: str | None
    version: int | None
    supersedes: Id | None
    replay_of: Id | None
    idempotency_key: Annotated[str, From("idem_key")]
    concurrency_key: Annotated[str | None, From("concurrency_key")] = None
    expires_at: Annotated[
        datetime | None, From("expires_at"), Field(description="No attempt begins at this time or later.")
    ] = None
    timezone: Annotated[
        str | None,
        From("timezone"),
        Field(
            description="The zone of the job's cron schedule. Null without one, from the archive, and in answers of writes."
        ),
    ] = None
    lost_count: int | None = None
    progress: float | None = None
    attempts: list[AttemptOut] | None = None
    timeline: list[EventOut] | None = None
    workflow: WorkflowPlace | None = None
    called_by: (
        Annotated[Id, Field(description="The instance whose durable function has called it. Lists leave it out.")]
        | None
    ) = None
    replays: list[Id] | None = None
    superseded_by: list[Id] | None = None
    trace_id: (
        Annotated[
            str,
            Field(
                description="The id of its OpenTelemetry trace. Lists leave it out, and so does a server "
                "whose traces are off."
            ),
        ]
        | None
    ) = None


class InstanceList(Model):
    """A page of instances, newest fire time first. It ends after 4 MB or `limit` instances."""

    items: list[InstanceOut]
    next_cursor: str | None


class InstanceAnswer(Model):
    """The response with one instance: to a trigger, a cancel or an outcome."""

    instance: InstanceOut


class CancelAnswer(Model):
    """The response to a cancel."""

    instance: InstanceOut
    compensates: (
        Annotated[
            list[str],
            Field(
                description="With `compensate`: the steps that are compensated before it ends, as `name#n`, the last first."
            ),
        ]
        | None
    ) = None


class PutAnswer(Model):
    """The response to a put."""

    decision: DecisionName
    instance: InstanceOut


class BatchResult(Model):
    """The result of one item of a batch."""

    decision: Annotated[DecisionName, From("verdict")]
    instance_id: Id
    key: str | None


class BatchAnswer(Model):
    """The results of a batch, in the order of its items."""

    items: list[BatchResult]
