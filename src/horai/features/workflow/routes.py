"""HTTP routes for workflows and their runs."""

from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Depends, Query, Response

from horai.api.answer import answer
from horai.api.body import Body, body_of, payload_text
from horai.api.context import IdempotencyKey, ScopeDep, VersionDep, once_of, required_once, takes
from horai.api.cursors import cursor_after, instance_cursor, job_cursor, page_cursor
from horai.api.job_json import job_json
from horai.api.paging import PageQuery
from horai.api.replica_reads import may_lag
from horai.api.route import RoleRoute, needs
from horai.api.stuck_json import encode_cause
from horai.core.audit import AuditVerb
from horai.core.errors import NotFound
from horai.core.roles import AccessRole
from horai.core.states import State
from horai.db.instance_queries import InstanceRow
from horai.features.workflow import rerun as reruns
from horai.features.workflow import service as workflows
from horai.features.workflow.definition import WorkflowNode, checked_nodes
from horai.features.workflow.graph import RunState
from horai.features.workflow.rerun import RunView
from horai.features.workflow.rerun_store import RunPage, RunRow, list_runs
from horai.features.workflow.service import WorkflowChange, WorkflowRequest, WrittenWorkflow
from horai.features.workflow.views import WorkflowView, view, views
from horai.features.workflow.wire import (
    LastRun,
    RerunIn,
    RunAnswer,
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
from horai.operations import instances
from horai.operations.scope import Scope
from horai.text import Hint, Refused
from horai.wire.encode import Encoded
from horai.wire.instances import TriggerIn
from horai.wire.jobs import Noted

router = APIRouter(prefix="/api/v1/workflows", tags=["workflows"], route_class=RoleRoute)

NOT_OF_A_WORKFLOW = frozenset({"target", "retry", "timeout", "at", "delay", "encrypted", "searchPaths"})
_PENDING = {State.DEAD: "DEAD", State.CANCELLED: "CANCELLED"}


class RunQuery(PageQuery):
    """The filter and paging parameters of a list of runs."""

    state: StartedStateName | None = None


async def _shown(scope: Scope, workflow: WorkflowRequest) -> Response:
    return answer(_workflow_json(await view(scope, workflow)), headers={"ETag": f'"{workflow.row.version}"'})


class _RawNode(msgspec.Struct):
    payload: msgspec.Raw = msgspec.Raw(b"null")


class _RawWorkflow(msgspec.Struct):
    nodes: list[_RawNode]


def _nodes(body: Body[WorkflowIn] | Body[WorkflowPatch]) -> tuple[WorkflowNode, ...]:
    raw = msgspec.json.decode(body.raw, type=_RawWorkflow).nodes
    payloads = [payload_text(node.payload, f"nodes.{number}.payload") for number, node in enumerate(raw)]
    return checked_nodes(body.given()["nodes"], payloads)


def _fields(given: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in given.items() if name != "nodes"}


@router.post("", status_code=201, responses={201: {"model": WorkflowOut}}, openapi_extra=takes(WorkflowIn))
@needs(AccessRole.ADMIN)
async def create_workflow(
    scope: ScopeDep,
    body: Annotated[Body[WorkflowIn], Depends(body_of(WorkflowIn))],
    idempotency_key: IdempotencyKey = None,
) -> Response:
    """Create a workflow: jobs in the order of a graph, all for one fire time."""
    document = {name: value for name, value in _fields(body.given()).items() if value is not None}
    written = WrittenWorkflow(document, _nodes(body), body.text_of("payload"))
    made = await workflows.create_workflow(scope, written, once_of(idempotency_key, body.raw))
    headers = {"ETag": f'"{made.row.version}"', "Location": f"/api/v1/workflows/{made.row.id}"}
    return answer(_workflow_json(await view(scope, made)), 201, headers)


@router.get("", responses={200: {"model": WorkflowList}})
@needs(AccessRole.VIEWER)
@may_lag
async def get_workflows(scope: ScopeDep, query: Annotated[PageQuery, Query()]) -> Response:
    """List workflows, oldest first."""
    found = await workflows.list_workflows(scope, job_cursor(query.cursor), query.limit)
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
) -> Response:
    """Change a workflow; the change applies to future runs."""
    nodes = None if body.shape.nodes is None else _nodes(body)
    change = WorkflowChange(_fields(body.given()), nodes, body.text_of("payload"), body.has_payload, if_version)
    return await _shown(scope, await workflows.change_workflow(scope, workflow, change))


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
    openapi_extra=takes(TriggerIn, required=False),
)
@needs(AccessRole.OPERATOR)
async def trigger_workflow(
    scope: ScopeDep,
    workflow: str,
    body: Annotated[Body[TriggerIn], Depends(body_of(TriggerIn))],
    idempotency_key: IdempotencyKey = None,
) -> Response:
    """Start a run now, once per `Idempotency-Key`."""
    once = required_once(idempotency_key, body.raw, "run")
    found = await workflows.read_workflow(scope, workflow)
    row = await instances.trigger(
        scope, str(found.row.job_id), body.text_of("payload"), once, AuditVerb.WORKFLOW_TRIGGER
    )
    where = f"/api/v1/workflows/{found.row.id}/runs/{row.id}"
    return answer(RunAnswer.encode(run=_encode_pending(found, row), instance=row), 202, {"Location": where})


@router.get("/{workflow}/runs", responses={200: {"model": RunList}})
@needs(AccessRole.VIEWER)
@may_lag
async def get_runs(scope: ScopeDep, workflow: str, query: Annotated[RunQuery, Query()]) -> Response:
    """List the started runs of a workflow, newest fire time first."""
    page = RunPage(instance_cursor(query.cursor), query.limit, RunState[query.state] if query.state else None)
    async with scope.read() as connection:
        found = await workflows.require_workflow(connection, scope, workflow)
        rows = await list_runs(connection, found.row.id, page)
    cursor = cursor_after(rows[-1].fire_time, rows[-1].id) if len(rows) == query.limit else None
    return answer(RunList.encode(items=[_encode_run(found, row) for row in rows], next_cursor=cursor))


@router.get("/{workflow}/runs/{run}", responses={200: {"model": RunOut}})
@needs(AccessRole.VIEWER)
async def get_run(scope: ScopeDep, workflow: str, run: str) -> Response:
    """Read one run with its nodes and the state of each."""
    return answer(_encode_view(await reruns.read_run(scope, workflow, _run_id(run))))


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
    """Cancel a run: waiting nodes are cancelled, running nodes finish. A second call changes nothing."""
    found = await reruns.cancel_run(scope, workflow, _run_id(run))
    return answer(RunAnswer.encode(run=_encode_view(found)))


def _run_id(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        raise NotFound(Refused.NO_RUN(run=text[:40]), Hint.LISTED_AT(path="/api/v1/workflows/{workflow}/runs"))
    return int(text)


def _workflow_json(view: WorkflowView) -> dict[str, Any]:
    """Return the JSON of a workflow (`WorkflowOut`). It is a dict because its schedule fields are those of its job."""
    row, job = view.workflow.row, view.workflow.job
    shown = {name: value for name, value in job_json(job).items() if name not in NOT_OF_A_WORKFLOW}
    return {
        **shown,
        "id": str(row.id),
        "jobId": str(row.job_id),
        "nodes": [WorkflowNodeOut.encode(each.node, job_id=each.job_id) for each in row.nodes],
        "version": row.version,
        "createdAt": row.created_at,
        "updatedAt": max(row.updated_at, job.updated_at),
        "lastRun": None if view.last_run is None else LastRun.encode(view.last_run),
        "nextFire": view.next_fire,
    }


def _encode_run(workflow: WorkflowRequest, row: RunRow, **more: Any) -> Encoded:
    return RunOut.encode(row, workflow=workflow.row.name, **more)


def _encode_view(view: RunView) -> Encoded:
    if view.row is not None:
        nodes = [RunNodeOut.encode(node, root_causes=view.roots_of(node.name)) for node in view.nodes]
        causes = [encode_cause(cause) for cause in view.causes]
        return _encode_run(view.workflow, view.row, nodes=nodes, root_causes=causes)
    assert view.instance is not None  # noqa: S101 — a view has a row or an instance
    return _encode_pending(view.workflow, view.instance)


def _encode_pending(workflow: WorkflowRequest, instance: InstanceRow) -> Encoded:
    """Return a run that its instance has not started yet, or will never start."""
    return RunOut.encode(
        instance,
        workflow=workflow.row.name,
        workflow_id=workflow.row.id,
        state=_PENDING.get(instance.state, "PENDING"),
        duration_ms=None,
        generation=0,
        version=None,
        nodes=[],
        root_causes=[],
    )
