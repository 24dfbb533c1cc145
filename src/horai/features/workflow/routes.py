"""HTTP routes for workflows and their runs."""

import json
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Response
from pydantic import ConfigDict, Field

from horai.api.answer import answer
from horai.api.body import Body, body_of
from horai.api.context import DryRunDep, IdempotencyKey, ScopeDep, VersionDep, once_of, required_once, takes
from horai.api.cursors import cursor_after, job_cursor, page_cursor
from horai.api.job_json import job_json
from horai.api.paging import PageQuery, TimedPageQuery
from horai.api.replica_reads import may_lag
from horai.api.route import RoleRoute, needs
from horai.api.sentence_json import sentence_fields
from horai.api.stuck_json import encode_cause
from horai.core.digits import number_in
from horai.core.errors import NotFound
from horai.core.job import JobStatus, retry_document
from horai.core.roles import AccessRole
from horai.core.states import State
from horai.db.instance_queries import InstanceRow
from horai.features.workflow import rerun as reruns
from horai.features.workflow import service as workflows
from horai.features.workflow.definition import WorkflowNode, WrittenWorkflow, checked_nodes
from horai.features.workflow.graph import RunState
from horai.features.workflow.items import read_items
from horai.features.workflow.map_store import ItemPage
from horai.features.workflow.node_payloads import node_payloads
from horai.features.workflow.params import checked_params
from horai.features.workflow.rerun import RunView
from horai.features.workflow.rerun_store import NodeNow, RunFilter, RunRow, count_runs, list_runs
from horai.features.workflow.service import WorkflowChange, WorkflowRequest
from horai.features.workflow.store import NodeRow, WorkflowFilter
from horai.features.workflow.stored_definition import NOT_OF_A_WORKFLOW
from horai.features.workflow.triggers import RunRequest, trigger_run
from horai.features.workflow.views import WorkflowView, view, views
from horai.features.workflow.wire import (
    IntervalOut,
    ItemList,
    LastRun,
    RerunIn,
    RunAnswer,
    RunIn,
    RunList,
    RunNodeOut,
    RunOut,
    StartedStateName,
    WorkflowIn,
    WorkflowList,
    WorkflowNodeOut,
    WorkflowOut,
    WorkflowPatch,
)
from horai.features.workflow.wire_nodes import SensorOut
from horai.operations.dry_run import perhaps
from horai.operations.scope import Scope
from horai.text import Hint, Refused
from horai.wire.counts import CountOut
from horai.wire.encode import Encoded
from horai.wire.fields import Instant, Model, Text
from horai.wire.jobs import Noted, StatusName

router = APIRouter(prefix="/api/v1/workflows", tags=["workflows"], route_class=RoleRoute)

_PENDING = {State.DEAD: "DEAD", State.CANCELLED: "CANCELLED"}


class WorkflowQuery(PageQuery):
    """The filter and page of a list of workflows."""

    name_contains: Annotated[Text, Field(min_length=1, max_length=200)] | None = None
    owner: Text | None = None
    tag: Text | None = None
    status: StatusName | None = None

    @property
    def only(self) -> WorkflowFilter:
        """Return the filter as the store takes it."""
        return WorkflowFilter(self.name_contains, self.owner, self.tag, JobStatus[self.status] if self.status else None)


class RunCountQuery(Model):
    """A filter for started runs: their state, and their fire time from `from` to before `to`."""

    model_config = ConfigDict(strict=False, populate_by_name=False)

    state: StartedStateName | None = None
    from_: Annotated[Instant | None, Field(alias="from")] = None
    to: Instant | None = None

    @property
    def only(self) -> RunFilter:
        """Return the filter as the store takes it."""
        return RunFilter(RunState[self.state] if self.state else None, self.from_, self.to)


class RunQuery(TimedPageQuery, RunCountQuery):
    """The filter, order and page of a list of runs by fire time."""


class ItemQuery(PageQuery):
    """The filter and paging parameters of the items of a map."""

    failed: bool = False


async def _shown(scope: Scope, workflow: WorkflowRequest) -> Response:
    return answer(_workflow_json(await view(scope, workflow)), headers={"ETag": f'"{workflow.row.version}"'})


def _nodes(body: Body[WorkflowIn] | Body[WorkflowPatch]) -> tuple[WorkflowNode, ...]:
    return checked_nodes(body.given()["nodes"], node_payloads(body.raw))


def _fields(given: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in given.items() if name not in ("nodes", "params")}


def _params(given: dict[str, Any]) -> str | None:
    """Return the schema of the parameters as JSON text. Raises `Invalid` for a schema that Horai cannot check."""
    return None if (schema := given.get("params")) is None else json.dumps(checked_params(schema))


@router.post("", status_code=201, responses={201: {"model": WorkflowOut}}, openapi_extra=takes(WorkflowIn))
@needs(AccessRole.ADMIN)
async def create_workflow(
    scope: ScopeDep,
    body: Annotated[Body[WorkflowIn], Depends(body_of(WorkflowIn))],
    idempotency_key: IdempotencyKey = None,
) -> Response:
    """Create a workflow: jobs in the order of a graph, all for one fire time."""
    document = {name: value for name, value in _fields(body.given()).items() if value is not None}
    written = WrittenWorkflow(document, _nodes(body), body.text_of("payload"), _params(body.given()))
    made = await workflows.create_workflow(scope, written, once_of(idempotency_key, body.raw))
    headers = {"ETag": f'"{made.row.version}"', "Location": f"/api/v1/workflows/{made.row.id}"}
    return answer(_workflow_json(await view(scope, made)), 201, headers)


@router.get("", responses={200: {"model": WorkflowList}})
@needs(AccessRole.VIEWER)
@may_lag
async def get_workflows(scope: ScopeDep, query: Annotated[WorkflowQuery, Query()]) -> Response:
    """List workflows, oldest first. `nameContains` looks into names and titles, in any script."""
    found = await workflows.list_workflows(scope, job_cursor(query.cursor), query.limit, query.only)
    cursor = page_cursor(str(found[-1].row.id)) if len(found) == query.limit else None
    items = [_workflow_json(each) for each in await views(scope, found)]
    return answer(WorkflowList.encode(items=items, next_cursor=cursor))


@router.get("/{workflow}", responses={200: {"model": WorkflowOut}})
@needs(AccessRole.VIEWER)
async def get_workflow(scope: ScopeDep, workflow: str) -> Response:
    """Read a workflow by id or name."""
    return await _shown(scope, await workflows.read_workflow(scope, workflow))


@router.patch("/{workflow}", responses={200: {"model": WorkflowOut}}, openapi_extra=takes(WorkflowPatch))
@needs(AccessRole.ADMIN)
async def patch_workflow(
    scope: ScopeDep,
    workflow: str,
    body: Annotated[Body[WorkflowPatch], Depends(body_of(WorkflowPatch))],
    if_version: VersionDep,
    dry_run: DryRunDep = False,
) -> Response:
    """Change a workflow; the change applies to future runs."""
    nodes = None if body.shape.nodes is None else _nodes(body)
    given = body.given()
    change = WorkflowChange(
        _fields(given),
        nodes,
        body.text_of("payload"),
        body.has_payload,
        if_version,
        _params(given),
        sets_params="params" in given,
    )
    async with perhaps(scope, is_dry=dry_run) as trial:
        return await _shown(trial, await workflows.change_workflow(trial, workflow, change))


@router.delete("/{workflow}", status_code=204)
@needs(AccessRole.ADMIN)
async def delete_workflow(scope: ScopeDep, workflow: str, if_version: VersionDep) -> Response:
    """Delete a workflow: waiting nodes of its runs are cancelled, running nodes finish, its jobs and history stay."""
    await workflows.delete_workflow(scope, workflow, if_version)
    return Response(status_code=204)


@router.post("/{workflow}/pause", responses={200: {"model": WorkflowOut}}, openapi_extra=takes(Noted, required=False))
@needs(AccessRole.OPERATOR)
async def pause_workflow(
    scope: ScopeDep, workflow: str, body: Annotated[Body[Noted], Depends(body_of(Noted))]
) -> Response:
    """Pause a workflow: it starts no new runs. Current runs continue; to hold a node, pause its job."""
    return await _shown(scope, await workflows.set_paused(scope, workflow, body.shape.note, paused=True))


@router.post("/{workflow}/resume", responses={200: {"model": WorkflowOut}}, openapi_extra=takes(Noted, required=False))
@needs(AccessRole.OPERATOR)
async def resume_workflow(
    scope: ScopeDep, workflow: str, body: Annotated[Body[Noted], Depends(body_of(Noted))]
) -> Response:
    """Resume a paused workflow."""
    return await _shown(scope, await workflows.set_paused(scope, workflow, body.shape.note, paused=False))


@router.post(
    "/{workflow}/trigger",
    status_code=202,
    responses={202: {"model": RunAnswer}},
    openapi_extra=takes(RunIn, required=False),
)
@needs(AccessRole.OPERATOR)
async def trigger_workflow(
    scope: ScopeDep,
    workflow: str,
    body: Annotated[Body[RunIn], Depends(body_of(RunIn))],
    idempotency_key: IdempotencyKey = None,
) -> Response:
    """Start a run now, once per `Idempotency-Key`. It stands for `logicalDate`, by default for the time of the call."""
    once = required_once(idempotency_key, body.raw, "run")
    asked = RunRequest(body.text_of("payload"), body.shape.logical_date)
    made = await trigger_run(scope, workflow, asked, once)
    found, row = made.workflow, made.instance
    where = f"/api/v1/workflows/{found.row.id}/runs/{row.id}"
    return answer(RunAnswer.encode(run=_encode_pending(found, row), instance=row), 202, {"Location": where})


@router.get("/{workflow}/runs", responses={200: {"model": RunList}})
@needs(AccessRole.VIEWER)
@may_lag
async def get_runs(scope: ScopeDep, workflow: str, query: Annotated[RunQuery, Query()]) -> Response:
    """List the started runs of a workflow, newest fire time first, or oldest first with `order=oldest`."""
    async with scope.read() as connection:
        found = await workflows.require_workflow(connection, scope, workflow)
        rows = await list_runs(connection, found.row.id, query.start, query.limit, query.only)
    cursor = cursor_after(rows[-1].fire_time, rows[-1].id) if len(rows) == query.limit else None
    return answer(RunList.encode(items=[_encode_run(found, row) for row in rows], next_cursor=cursor))


@router.get("/{workflow}/runs/count", responses={200: {"model": CountOut}})
@needs(AccessRole.VIEWER)
@may_lag
async def get_run_count(scope: ScopeDep, workflow: str, query: Annotated[RunCountQuery, Query()]) -> Response:
    """Count the started runs that match, at most 100,000. If there are others, `more` is true."""
    async with scope.read() as connection:
        found = await workflows.require_workflow(connection, scope, workflow)
        counted = await count_runs(connection, found.row.id, query.only)
    return answer(CountOut.encode(counted))


@router.get("/{workflow}/runs/{run}", responses={200: {"model": RunOut}})
@needs(AccessRole.VIEWER)
async def get_run(scope: ScopeDep, workflow: str, run: str) -> Response:
    """Read one run with its nodes and the state of each."""
    return answer(_encode_view(await reruns.read_run(scope, workflow, _run_id(run))))


@router.get("/{workflow}/runs/{run}/nodes/{node}/items", responses={200: {"model": ItemList}})
@needs(AccessRole.VIEWER)
async def get_map_items(
    scope: ScopeDep, workflow: str, run: str, node: str, query: Annotated[ItemQuery, Query()]
) -> Response:
    """List the items of a map in order, with their results; `failed=true` lists only those that failed."""
    page = ItemPage(job_cursor(query.cursor) - 1, query.limit, query.failed)
    found = await read_items(scope, workflow, _run_id(run), node, page)
    cursor = page_cursor(str(found.items[-1].position + 1)) if len(found.items) == query.limit else None
    return answer(ItemList.encode(items=found.items, next_cursor=cursor))


@router.post("/{workflow}/runs/{run}/rerun", responses={200: {"model": RunAnswer}}, openapi_extra=takes(RerunIn))
@needs(AccessRole.OPERATOR)
async def rerun(
    scope: ScopeDep, workflow: str, run: str, body: Annotated[Body[RerunIn], Depends(body_of(RerunIn))]
) -> Response:
    """Rerun a run from a node: that node and all nodes after it."""
    found = await reruns.rerun(scope, workflow, _run_id(run), body.shape.from_)
    return answer(RunAnswer.encode(run=_encode_view(found)))


@router.post("/{workflow}/runs/{run}/cancel", responses={200: {"model": RunAnswer}})
@needs(AccessRole.OPERATOR)
async def cancel_run(scope: ScopeDep, workflow: str, run: str) -> Response:
    """Cancel a run: waiting nodes and all items of maps are cancelled, running nodes finish. A second call changes nothing."""
    found = await reruns.cancel_run(scope, workflow, _run_id(run))
    return answer(RunAnswer.encode(run=_encode_view(found)))


def _run_id(text: str) -> int:
    if (number := number_in(text)) is None:
        raise NotFound(Refused.NO_RUN(run=text[:40]), Hint.LISTED_AT(path="/api/v1/workflows/{workflow}/runs"))
    return number


def _workflow_json(view: WorkflowView) -> dict[str, Any]:
    """Return the JSON of a workflow (`WorkflowOut`). It is a dict because its schedule fields are those of its job."""
    row, job = view.workflow.row, view.workflow.job
    shown = {name: value for name, value in job_json(job).items() if name not in NOT_OF_A_WORKFLOW}
    return {
        **shown,
        "id": str(row.id),
        "jobId": str(row.job_id),
        "nodes": [_encode_node(each) for each in row.nodes],
        "params": None if row.params is None else json.loads(row.params),
        "version": row.version,
        "createdAt": row.created_at,
        "updatedAt": max(row.updated_at, job.updated_at),
        "lastRun": None if view.last_run is None else LastRun.encode(view.last_run),
        "nextFire": view.next_fire,
    }


def _encode_node(row: NodeRow) -> Encoded:
    retry = None if row.node.retry is None else retry_document(row.node.retry)
    mapped = None if row.node.map is None else row.node.map.document
    child = row.node.child
    workflow, params = (None, None) if child is None else (row.node.job, child.params)
    return WorkflowNodeOut.encode(
        row.node,
        job_id=row.job_id,
        retry=retry,
        map=mapped,
        workflow=workflow,
        params=params,
        sensor=None if row.node.sensor is None else row.node.sensor.document,
    )


def _encode_run(workflow: WorkflowRequest, row: RunRow, **more: Any) -> Encoded:
    started = row.interval_start
    interval = None if started is None else IntervalOut.encode(start=started, end=row.fire_time)
    return RunOut.encode(row, workflow=workflow.row.name, interval=interval, **more)


def _encode_view(view: RunView) -> Encoded:
    if view.row is not None:
        nodes = [
            RunNodeOut.encode(
                node,
                root_causes=view.roots_of(node.name),
                sensor=_encode_sensor(node),
                **sentence_fields("skip_reason", reruns.skip_reason(view, node)),
            )
            for node in view.nodes
        ]
        causes = [encode_cause(cause) for cause in view.causes]
        return _encode_run(view.workflow, view.row, nodes=nodes, root_causes=causes, parent=view.parent)
    assert view.instance is not None  # noqa: S101 — a view has a row or an instance
    return _encode_pending(view.workflow, view.instance)


def _encode_sensor(node: NodeNow) -> Encoded | None:
    if (sensor := node.sensor) is None:
        return None
    settings = sensor.settings.document
    return SensorOut.encode(
        every=settings["every"],
        deadline=settings["deadline"],
        on_deadline=settings["onDeadline"],
        polls=sensor.polls,
        deadline_at=sensor.deadline_at,
        next_poll_at=sensor.next_at,
    )


def _encode_pending(workflow: WorkflowRequest, instance: InstanceRow) -> Encoded:
    """Return a run that its instance has not started yet, or will never start."""
    return RunOut.encode(
        instance,
        workflow=workflow.row.name,
        workflow_id=workflow.row.id,
        state=_PENDING.get(instance.state, "PENDING"),
        interval=None,
        duration_ms=None,
        generation=0,
        version=None,
        nodes=[],
        root_causes=[],
    )
