"""Request and response models of workflows and their runs."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field

from horai.features.workflow.wire_nodes import (
    ChildRunOut,
    MapIn,
    MapOut,
    ParamIn,
    ParentNodeOut,
    SensorIn,
    SensorOut,
)
from horai.wire.encode import From
from horai.wire.fields import Id, Instant, Json, Model, RateText, Text
from horai.wire.instances import InstanceOut, Reason
from horai.wire.jobs import (
    CalendarUse,
    Dst,
    Misfire,
    MisfireName,
    OverlapName,
    PriorityName,
    Retry,
    ScheduleFields,
    StatusName,
    Tags,
    WhenIn,
)
from horai.wire.sentences import Sentence
from horai.wire.stuck import RootCauseOut

StartedStateName = Literal["RUNNING", "BLOCKED", "SUCCESS", "CANCELLED"]
RunStateName = Literal["PENDING", "RUNNING", "BLOCKED", "SUCCESS", "CANCELLED", "DEAD"]


NodeStateName = Literal["INIT", "BLOCKED", "RUNNING", "FAIL", "SUCCESS", "DEAD", "CANCELLED", "SKIPPED"]
ItemStateName = Literal["INIT", "RUNNING", "FAIL", "SUCCESS", "DEAD", "CANCELLED"]
TriggerRuleName = Literal["allSuccess", "allDone", "oneFailed", "noneFailed"]


class NodeIn(Model):
    """A node: it runs `job` (a name or an id; its own name by default) once the nodes in `after` have ended.

    `triggerRule`: `allSuccess` (default) if all of them succeeded, `allDone` in any case, `oneFailed` as soon as one has
    failed, `noneFailed` if each succeeded or was skipped. `retry` replaces the retry policy of the job in runs of this
    workflow. `map` runs it once for each item of a list. `workflow` instead of `job` starts a run of that workflow, with the payload
    `params`, and waits for its end; `retry` says when a failed run is followed by another one.
    """

    name: Text
    job: Text | None = None
    workflow: Text | None = None
    params: dict[str, ParamIn] | None = None
    after: list[Text] | None = None
    trigger_rule: TriggerRuleName | None = None
    retry: Retry | None = None
    map: MapIn | None = None
    sensor: SensorIn | None = None
    produces: list[Text] | None = None
    """The assets that a success of the node updates."""
    payload: Any = None


class WorkflowFields(ScheduleFields):
    """The fields of a workflow. At most one of cron and every; without either it runs only when triggered.

    `title` (up to 200 characters), `description` (4,000) and `owner` (200) are labels for people, in any script.
    """

    title: Text | None = None
    description: Text | None = None
    owner: Text | None = None
    payload: Any = None
    params: dict[str, Any] | None = None
    """A JSON Schema: the payload of every run has to fit it, and gets the defaults of its members."""
    queue: Text | None = None
    priority: PriorityName | None = None
    misfire: MisfireName | Misfire | None = None
    misfire_after: Text | None = None
    overlap: OverlapName | None = None
    jitter: Text | None = None
    produces: list[Text] | None = None
    """The assets that a successful run updates."""
    when: list[Text] | WhenIn | None = None
    """The assets to wait for: a run starts when all of them (or, with `any`, one of them) were updated since its last start."""
    tags: Tags | None = None
    status: StatusName | None = None


class WorkflowIn(WorkflowFields):
    """`POST /api/v1/workflows`."""

    name: Text
    nodes: Annotated[list[NodeIn], Field(json_schema_extra={"minItems": 1, "maxItems": 500})]


class WorkflowPatch(WorkflowFields):
    """`PATCH /api/v1/workflows/{workflow}`: given fields are changed, for future runs; null removes a field."""

    nodes: Annotated[list[NodeIn], Field(json_schema_extra={"minItems": 1, "maxItems": 500})] | None = None


class RunIn(Model):
    """`POST /api/v1/workflows/{workflow}/trigger`. Without a payload the run gets the workflow's payload.

    `logicalDate` is the fire time of the run, now or in the past.
    """

    payload: Any = None
    logical_date: Instant | None = None


class RerunIn(Model):
    """`POST /api/v1/workflows/{workflow}/runs/{run}/rerun`: the node to start the rerun from."""

    from_: Annotated[Text, Field(alias="from")]


class RunsIn(Model):
    """`POST /api/v1/workflows/{workflow}/runs/cancel` and `/rerun`: the runs that match all given fields; at least one is required."""

    ids: Annotated[list[Id], Field(min_length=1, max_length=500)] | None = None
    state: Literal["RUNNING", "BLOCKED"] | None = None
    from_: Annotated[Instant | None, Field(alias="from")] = None
    to: Instant | None = None
    limit: Annotated[int, Field(ge=1, le=10_000)] = 1_000
    dry_run: bool = False


class RerunManyIn(RunsIn):
    """`POST /api/v1/workflows/{workflow}/runs/rerun`: the runs, and how their starts are spread.

    With a `rate`, one run after the other starts, the first at `startAt` or now. `nextStart` of the answer is the `startAt` of the next
    request.
    """

    rate: RateText | None = None
    start_at: Instant | None = None


class SkippedRunOut(Model):
    """A run that matched and was left as it is, and why."""

    run: Id
    reason: str
    reason_said: Sentence | None = None


class RunsAnswer(Model):
    """The result of a bulk cancel or rerun. `skipped` runs could not be changed; `reasons` names the first 20 of them.

    `held`: another transaction had locked these runs. `more`: further runs may match.
    """

    matched: int
    changed: int
    skipped: int
    held: int
    more: bool
    reasons: list[SkippedRunOut]
    next_start: datetime | None
    """Of a rerun with a rate: the time of the next start."""
    dry_run: bool


class WorkflowNodeOut(Model):
    """A node of a workflow."""

    name: str
    job: str
    job_id: Id
    after: list[str]
    trigger_rule: Annotated[TriggerRuleName, From("rule.rest_name")]
    retry: Retry | None
    """The retry policy of the node; null for that of its job."""
    map: MapIn | None
    sensor: SensorIn | None
    workflow: str | None
    """The workflow that the node starts a run of; null for an ordinary node."""
    params: dict[str, ParamIn] | None
    """The parameters of that run; null: it gets the payload that every node gets."""
    produces: list[str]
    payload: Json


class LastRun(Model):
    """The run of a workflow's newest fire time."""

    id: Id
    state: StartedStateName
    fire_time: datetime
    created_at: datetime
    finished_at: datetime | None
    duration_ms: int | None


class WorkflowOut(Model):
    """A workflow."""

    id: Id
    name: str
    job_id: Id
    """The job that starts its runs; pause, next and explain of the workflow act on this job."""
    title: str | None = None
    description: str | None = None
    owner: str | None = None
    status: StatusName
    cron: str | None = None
    dialect: str | None = None
    every: str | None = None
    every_from: str | None = None
    anchor: datetime | None = None
    timezone: str | None = None
    dst: Dst | None = None
    calendar: list[str] | CalendarUse | None = None
    start_at: datetime | None = None
    end_at: datetime | None = None
    jitter: str | None = None
    misfire: MisfireName | Misfire
    misfire_after: str | None = None
    overlap: OverlapName
    produces: list[str] | None = None
    when: list[str] | WhenIn | None = None
    queue: str
    priority: PriorityName
    tags: list[str]
    payload: Any
    payload_size: int | None = None
    """Bytes of the payload; null if there is none."""
    params: dict[str, Any] | None = None
    note: str | None
    declared_by: str | None = None
    nodes: list[WorkflowNodeOut]
    version: int
    created_at: datetime
    updated_at: datetime
    last_run: LastRun | None
    next_fire: datetime | None
    """Null while the workflow is paused, or if it runs only when triggered."""


class WorkflowList(Model):
    """A page of workflows."""

    items: list[WorkflowOut]
    next_cursor: str | None


class RunNodeOut(Model):
    """A node of a run, with its instance. `generation` counts its reruns. A node with a `map` has an instance for each item instead.

    `state` is that of the instance, or SKIPPED; `skipReason` then says why. `chosen`: the nodes directly after it that it
    chose to run; null if it did not choose. `rootCauses`: the names of the dead nodes that a BLOCKED node waits for,
    directly or through other nodes.
    """

    name: str
    job: str
    job_id: Id
    after: list[str]
    trigger_rule: Annotated[TriggerRuleName, From("rule.rest_name")]
    instance_id: Annotated[Id | None, From("own_instance")]
    generation: int
    state: Annotated[NodeStateName, From("state_name")]
    reason: Reason | None
    skip_reason: str | None
    skip_reason_said: Sentence | None = None
    chosen: list[str] | None
    map: MapOut | None
    child_run: ChildRunOut | None
    sensor: SensorOut | None
    attempt: int | None
    error_code: Annotated[str | None, From("fault_code")]
    error_msg: Annotated[str | None, From("fault_message")]
    started_at: Annotated[datetime | None, From("claimed_at")]
    finished_at: datetime | None
    duration_ms: int | None
    """Milliseconds of the last attempt; null until it has ended."""
    result: Json
    root_causes: list[str]


class ItemOut(Model):
    """An item of a map, with its instance. `position` counts from 0; `result` is null unless it succeeded."""

    position: int
    instance_id: Id
    state: ItemStateName
    attempt: int | None
    error_code: str | None
    error_msg: str | None
    started_at: Annotated[datetime | None, From("claimed_at")]
    finished_at: datetime | None
    result: Json


class ItemList(Model):
    """A page of the items of a map that have an instance, in order."""

    items: list[ItemOut]
    next_cursor: str | None


class IntervalOut(Model):
    """A data interval: `start` belongs to it, `end` does not."""

    start: datetime
    end: datetime


class RunOut(Model):
    """A run; its id is that of the instance that starts it.

    PENDING: that instance has not run yet. DEAD: the run could not be started.
    """

    id: Id
    workflow: str
    workflow_id: Id
    state: RunStateName
    fire_time: datetime
    interval: IntervalOut | None = None
    """The data interval; null until the run has started, and if the workflow has no schedule."""
    created_at: datetime
    finished_at: datetime | None
    duration_ms: int | None
    """Milliseconds from the creation of the run to its end; null until then."""
    generation: int
    version: int | None
    payload: Json
    nodes: list[RunNodeOut] | None = None
    root_causes: list[RootCauseOut] | None = None
    """The dead nodes that block the run; absent in lists."""
    parent: ParentNodeOut | None = None
    """The node that started the run; null for a run of its own; absent in lists."""


class RunList(Model):
    """A page of runs, newest fire time first."""

    items: list[RunOut]
    next_cursor: str | None


class RunAnswer(Model):
    """The response of a trigger, a rerun and a cancel."""

    run: RunOut
    instance: InstanceOut | None = None
