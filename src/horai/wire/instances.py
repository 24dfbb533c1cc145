"""Instances on the wire."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field

from horai.wire.fields import Id, Instant, Key, Model, Text

StateName = Literal["INIT", "BLOCKED", "RUNNING", "FAIL", "SUCCESS", "DEAD", "CANCELLED"]
Reason = Literal["USER", "SUPERSEDED", "OVERLAP", "PARENT", "JOB_DELETED"]
DecisionName = Literal["INSERTED", "UPDATED", "SUPERSEDED", "IGNORED"]
Version = Annotated[int, Field(ge=0, lt=2**62)]
OWN_TAGS = 10
TagText = Annotated[str, Field(pattern=r"^[^\x00-\x20,]{1,64}$")]


class PutIn(Model):
    """`PUT /api/v1/jobs/{job}/instances/{key}`. No time means now."""

    execute_time: Instant | None = None
    payload: Any = None
    version: Version | None = None
    again: bool = False


class BatchItem(Model):
    """One of a batch; with a key it follows the rules of put."""

    key: Key | None = None
    execute_time: Instant | None = None
    payload: Any = None


class BatchIn(Model):
    """`POST /api/v1/jobs/{job}/instances/batch`."""

    items: Annotated[list[BatchItem], Field(min_length=1, max_length=10_000)]


class TriggerIn(Model):
    """`POST /api/v1/jobs/{job}/trigger`; without a payload the job's own is used."""

    payload: Any = None


class OutcomeIn(Model):
    """`POST /api/v1/instances/{id}/outcome`, by a target that answered 202."""

    fence: Annotated[int, Field(ge=1, lt=2**62)]
    result: Literal["SUCCESS", "FAIL_RETRYABLE", "FAIL_UNRECOVERABLE"]
    message: Annotated[Text, Field(max_length=10_000)] | None = None
    output: Any = None
    tags: Annotated[list[TagText], Field(max_length=OWN_TAGS)] | None = None
    """With FAIL_UNRECOVERABLE: what the dead letter shall be found by."""


class Narrowed(Model):
    """What a list of instances, or a sweep over them, is narrowed to.

    `when` parts those whose fire time has come from those that are planned. `payload` is a member of the payload and its
    value, `order.id=17`; names are parted by dots.
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
    """`POST /api/v1/instances/cancel`: what is given narrows it down, and something must."""

    job: Text | None = None
    ids: Annotated[list[Id], Field(min_length=1, max_length=500)] | None = None
    limit: Annotated[int, Field(ge=1, le=10_000)] = 10_000
    dry_run: bool = False


class SweepAnswer(Model):
    """What became of it. `held`: somebody was at work on them; `more`: there are others that may match."""

    matched: int
    cancelled: int
    held: int
    more: bool
    dry_run: bool


class ReplaySweepIn(SweepIn):
    """`POST /api/v1/instances/replay`: what is dead and matches; `cursor` goes on where an earlier request ended."""

    cursor: str | None = None


class ReplaySweepAnswer(Model):
    """What became of it.

    `superseded` ones were not run: their keys are live, or have succeeded since. `held` ones may be replayed still:
    somebody was at work on them. `nextCursor` is where the next request goes on; null: there are no more.
    """

    matched: int
    replayed: int
    superseded: int
    held: int
    next_cursor: str | None
    dry_run: bool


class LogLine(Model):
    """What a function said while it ran, and how far it had come if it said so with it."""

    at: datetime
    message: str
    progress: float | None


class AttemptOut(Model):
    """One try. `late`: its outcome came when the instance had moved on, and changed nothing.

    `LOST`: its node died; a loss is not a failure, as another function may have killed the node.

    `progress` is the last that its function told, from 0 to 1; `log` are its last lines. A try that was given back
    (`RELEASED`: nothing was sent, or the function asked for later) is only shown when its function said something.
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


class EventOut(Model):
    """One entry of an instance's timeline."""

    seq: int | None
    at: datetime
    kind: str
    data: dict[str, Any] | None


class NeighbourOut(Model):
    """What comes right before or behind an instance in its workflow; `state` is null while it moves."""

    node: str
    instance_id: Id
    state: StateName | None


class WorkflowPlace(Model):
    """Which node of which run of a workflow an instance is."""

    run_id: Id
    workflow_id: Id
    workflow: str
    node: str
    parents: list[NeighbourOut]
    children: list[NeighbourOut]


class InstanceOut(Model):
    """One planned execution of a job.

    `retryCount` counts failures; `lostCount`, which lists leave out, counts attempts that were lost with their nodes.
    While it is RUNNING, `errorCode` and `errorMsg` are null; `attempts` has the errors of earlier attempts.
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
    payload: Any
    """Null in lists when it is larger than 4,096 bytes: read the single instance for it."""
    payload_size: int | None
    """Bytes of the payload; null without one."""
    result: Annotated[
        Any, Field(description="What the function or the target returned, at most 64 kB; null if `resultTruncated`.")
    ]
    result_truncated: Annotated[
        bool, Field(description="The target's result was not kept: over 64 kB, or text that PostgreSQL cannot store.")
    ]
    error_code: str | None
    error_msg: str | None
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    node: str | None
    version: int | None
    supersedes: Id | None
    replay_of: Id | None
    idempotency_key: str
    lost_count: int | None = None
    progress: float | None = None
    attempts: list[AttemptOut] | None = None
    timeline: list[EventOut] | None = None
    workflow: WorkflowPlace | None = None
    replays: list[Id] | None = None
    superseded_by: list[Id] | None = None


class InstanceList(Model):
    """A page of instances, newest fire time first. It ends after 4 MB, or after `limit` instances."""

    items: list[InstanceOut]
    next_cursor: str | None


class InstanceAnswer(Model):
    """What a trigger answers."""

    instance: InstanceOut


class PutAnswer(Model):
    """What a put answers."""

    decision: DecisionName
    instance: InstanceOut


class BatchResult(Model):
    """What became of one item."""

    decision: DecisionName
    instance_id: Id
    key: str | None


class BatchAnswer(Model):
    """What became of a batch, in its order."""

    items: list[BatchResult]
