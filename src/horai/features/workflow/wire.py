"""Request and response models of workflows and their runs."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field

from horai.wire.encode import From
from horai.wire.fields import Id, Json, Model, Text
from horai.wire.instances import InstanceOut, Reason, StateName
from horai.wire.jobs import (
    CalendarUse,
    Dst,
    Misfire,
    MisfireName,
    OverlapName,
    PriorityName,
    ScheduleFields,
    StatusName,
    Tags,
)
from horai.wire.stuck import RootCauseOut

StartedStateName = Literal["RUNNING", "BLOCKED", "SUCCESS", "CANCELLED"]
RunStateName = Literal["PENDING", "RUNNING", "BLOCKED", "SUCCESS", "CANCELLED", "DEAD"]


class NodeIn(Model):
    """A node: it runs `job` (a name or an id; its own name by default) once all nodes in `after` have succeeded."""

    name: Text
    job: Text | None = None
    after: list[Text] | None = None
    payload: Any = None


class WorkflowFields(ScheduleFields):
    """The fields of a workflow. At most one of cron and every; without either it runs only when triggered."""

    payload: Any = None
    queue: Text | None = None
    priority: PriorityName | None = None
    misfire: MisfireName | Misfire | None = None
    misfire_after: Text | None = None
    overlap: OverlapName | None = None
    jitter: Text | None = None
    tags: Tags | None = None
    status: StatusName | None = None


class WorkflowIn(WorkflowFields):
    """`POST /api/v1/workflows`."""

    name: Text
    nodes: Annotated[list[NodeIn], Field(json_schema_extra={"minItems": 1, "maxItems": 500})]


class WorkflowPatch(WorkflowFields):
    """`PATCH /api/v1/workflows/{workflow}`: given fields are changed, for future runs; null removes a field."""

    nodes: Annotated[list[NodeIn], Field(json_schema_extra={"minItems": 1, "maxItems": 500})] | None = None


class RerunIn(Model):
    """`POST /api/v1/workflows/{workflow}/runs/{run}/rerun`: the node to start the rerun from."""

    from_: Annotated[Text, Field(alias="from")]


class WorkflowNodeOut(Model):
    """A node of a workflow."""

    name: str
    job: str
    job_id: Id
    after: list[str]
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
    queue: str
    priority: PriorityName
    tags: list[str]
    payload: Any
    payload_size: int | None = None
    """Bytes of the payload; null if there is none."""
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
    """A node of a run, with its instance. `generation` counts its reruns.

    `rootCauses`: the names of the dead nodes that a BLOCKED node waits for, directly or through other nodes.
    """

    name: str
    job: str
    job_id: Id
    after: list[str]
    instance_id: Id
    generation: int
    state: StateName
    reason: Reason | None
    attempt: int | None
    error_code: str | None
    error_msg: str | None
    started_at: Annotated[datetime | None, From("claimed_at")]
    finished_at: datetime | None
    duration_ms: int | None
    """Milliseconds of the last attempt; null until it has ended."""
    result: Json
    root_causes: list[str]


class RunOut(Model):
    """A run; its id is that of the instance that starts it.

    PENDING: that instance has not run yet. DEAD: the run could not be started.
    """

    id: Id
    workflow: str
    workflow_id: Id
    state: RunStateName
    fire_time: datetime
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


class RunList(Model):
    """A page of runs, newest fire time first."""

    items: list[RunOut]
    next_cursor: str | None


class RunAnswer(Model):
    """The response of a trigger, a rerun and a cancel."""

    run: RunOut
    instance: InstanceOut | None = None
