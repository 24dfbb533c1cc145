"""Create, change and delete workflows.

The schedule of a workflow belongs to a job of the same name, which Horai itself runs: pause, resume, trigger, next and
explain act on that job.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from horai.core.assets import WHEN
from horai.core.audit import AuditVerb
from horai.core.errors import Conflict, Duplicate, NotFound
from horai.core.job import BUILTIN, checked, retry_document, with_instants
from horai.core.job_patch import amended
from horai.core.timing import Timing
from horai.core.validation import Validation
from horai.core.wakes import RunsWake
from horai.db import jobs as stored_jobs
from horai.db.claims import Claimable
from horai.db.jobs import JobRow
from horai.db.pool import Plans, TenantRead, TenantWrite
from horai.features.workflow import run_store
from horai.features.workflow import store as workflows
from horai.features.workflow.child_settings import DEPTH_LIMIT
from horai.features.workflow.definition import WORKFLOW_HANDLER, WorkflowNode, WrittenWorkflow, builtin_document
from horai.features.workflow.params import fitted
from horai.features.workflow.runs import advance_runs
from horai.features.workflow.sealed_nodes import seal_nodes
from horai.features.workflow.store import ANY_WORKFLOW, NodeJob, NodeRow, WorkflowFilter, WorkflowRow
from horai.features.workflow.stored_definition import stored_definition
from horai.operations import audit, job_schedule, jobs, move_waiting, request_keys, versions
from horai.operations.job_rows import JobDocument
from horai.operations.job_schedule import JoinedSlots
from horai.operations.request_keys import Once
from horai.operations.scope import Scope, require_version
from horai.text import Hint, Refused, Wrong

PAGE = 200


@dataclass(frozen=True, slots=True)
class WorkflowRequest:
    """A workflow, and the job that carries its schedule."""

    row: WorkflowRow
    job: JobRow


async def create_workflow(scope: Scope, written: WrittenWorkflow, once: Once | None = None) -> WorkflowRequest:
    """Create a workflow. It is durable on return."""
    document = builtin_document(written.document)
    definition = checked(document)
    _require_payload(written.params, written.payload, document, definition.timing)
    request = request_keys.request_key(scope, "create-workflow", once) if once else None
    made: WorkflowRequest | None = None
    joined, woken = JoinedSlots(), list[Claimable]()
    async with scope.write() as connection:
        if await request_keys.take(connection, scope, request):
            nodes = await _nodes(connection, scope, written.nodes)
            job, joined, woken = await jobs.add_job(
                connection, scope, definition, JobDocument(document, written.payload)
            )
            made = WorkflowRequest(await _insert(connection, scope, job, nodes, written.params), job)
            await request_keys.bind(connection, request, job.id, None)
            fields = audited_fields(made)
            await audit.record_write(connection, scope, AuditVerb.WORKFLOW_CREATE, made.row.id, job.name, fields)
            await versions.keep(connection, scope, stored_definition(made.row, made.job))
    if made is None:
        assert request is not None  # noqa: S101 — a request without a key is always the first
        raise await request_keys.duplicate_of(scope, request)
    job_schedule.announce(scope, joined, woken)
    return made


async def _nodes(
    connection: TenantWrite, scope: Scope, nodes: Sequence[WorkflowNode], own_job: int | None = None
) -> list[NodeRow]:
    """Return the nodes with their jobs, which stay locked until commit, and with their payloads as they are stored.

    Raises `Invalid` for jobs that cannot be nodes, and `Conflict` if a payload has to be sealed and this process has no key.
    """
    found = await workflows.share_node_jobs(connection, scope.tenant_id, [node.job for node in nodes])
    faults = Validation()
    for number, node in enumerate(nodes):
        job = found.get(node.job)
        if node.child is not None:
            _check_child(node.job, job, f"nodes.{number}.workflow", faults)
        elif job is None:
            faults.add(f"nodes.{number}.job", Wrong.NO_SUCH_JOB(name=node.job[:128]), Hint.CREATE_JOBS_FIRST())
        elif job.handler == WORKFLOW_HANDLER:
            faults.add(f"nodes.{number}.job", Wrong.JOB_IS_WORKFLOW(name=node.job))
        elif job.handler.startswith(BUILTIN):
            faults.add(f"nodes.{number}.job", Wrong.JOB_IS_BUILTIN(name=node.job))
        elif job.is_searched:
            faults.add(f"nodes.{number}.job", Wrong.NODE_SEARCHED(name=node.job), Hint.OTHER_JOB_FOR_NODE())
    faults.raise_if_any()
    sealed = {node.name for node in nodes if found[node.job].is_encrypted}
    for number, node in enumerate(nodes):  # it would store the results of its parents as they are
        if node.name not in sealed and (parent := next((name for name in node.after if name in sealed), None)):
            faults.add(
                f"nodes.{number}.job", Wrong.NODE_AFTER_SEALED(name=node.job, parent=parent), Hint.ENCRYPT_CHILD()
            )
    faults.raise_if_any()
    await _check_levels(connection, nodes, found, own_job)
    rows = [NodeRow(replace(node, job=found[node.job].name), found[node.job].id, node.name in sealed) for node in nodes]
    return await seal_nodes(connection, scope.keyring, scope.tenant_id, rows)


def _check_child(name: str, job: NodeJob | None, place: str, faults: Validation) -> None:
    if job is None:
        faults.add(place, Wrong.NO_SUCH_WORKFLOW(name=name[:128]), Hint.CREATE_WORKFLOW_FIRST())
    elif job.handler != WORKFLOW_HANDLER:
        faults.add(place, Wrong.NOT_A_WORKFLOW(name=name))


async def _check_levels(
    connection: TenantWrite, nodes: Sequence[WorkflowNode], found: Mapping[str, NodeJob], own_job: int | None
) -> None:
    """Raise `Invalid` if a workflow would start runs of itself, or if too many are inside each other.

    Two workflows that are changed at once may still form a circle: the depth of their runs is checked too.
    """
    faults = Validation()
    for number, node in enumerate(nodes):
        if node.child is None:
            continue
        levels = dict(await workflows.workflows_below(connection, [found[node.job].id], DEPTH_LIMIT))
        if own_job in levels:
            faults.add(f"nodes.{number}.workflow", Wrong.WORKFLOW_CIRCLE(name=node.job), Hint.FLATTEN_WORKFLOWS())
        elif max(levels.values(), default=0) >= DEPTH_LIMIT:
            fault = Wrong.WORKFLOW_DEPTH(name=node.job, most=DEPTH_LIMIT)
            faults.add(f"nodes.{number}.workflow", fault, Hint.FLATTEN_WORKFLOWS())
    faults.raise_if_any()


def _require_payload(params: str | None, payload: str | None, document: Mapping[str, Any], timing: Timing) -> None:
    """Raise `Invalid` if the payload of the workflow does not fit its parameters.

    Its schedule, and the assets that it waits for, start runs with it.
    """
    starts_itself = timing.schedule is not None or document.get(WHEN) is not None
    if params is not None and (payload is not None or starts_itself):
        fitted(json.loads(params), payload)


async def _insert(
    connection: TenantWrite, scope: Scope, job: JobRow, nodes: Sequence[NodeRow], params: str | None
) -> WorkflowRow:
    workflow_id = await workflows.insert_workflow(connection, scope.tenant_id, job.name, job.id, nodes, params)
    if workflow_id is None:
        raise Duplicate(Refused.WORKFLOW_NAME_TAKEN(name=job.name))
    await workflows.set_jobs(connection, workflow_id, {row.job_id for row in nodes})
    await jobs.tell_written(connection, scope, job)
    told = {"name": job.name, "nodes": len(nodes)}
    await stored_jobs.insert_event(connection, scope.tenant_id, job.id, "WORKFLOW_CREATED", told)
    row = await workflows.workflow_of_job(connection, job.id)
    assert row is not None  # noqa: S101 — inserted above
    return row


def audited_fields(workflow: WorkflowRequest) -> dict[str, Any]:
    """Return the fields of a workflow that the audit log compares."""
    nodes = [_audited_node(row.node) for row in workflow.row.nodes]
    params = {} if workflow.row.params is None else {"params": json.loads(workflow.row.params)}
    return {**jobs.audited_fields(workflow.job), "nodes": nodes, **params}


def _audited_node(node: WorkflowNode) -> dict[str, Any]:
    rule = {"triggerRule": node.rule.rest_name} if node.rule else {}
    retry = {"retry": retry_document(node.retry)} if node.retry else {}
    mapped = {"map": node.map.document} if node.map else {}
    produced = {"produces": list(node.produces)} if node.produces else {}
    rule |= {"sensor": node.sensor.document} if node.sensor else {}
    child = {} if node.child is None else {"workflow": node.job, **node.child.document}
    return {
        "name": node.name,
        "job": node.job,
        "after": list(node.after),
        **rule,
        **retry,
        **mapped,
        **produced,
        **child,
    }


@dataclass(frozen=True, slots=True)
class WorkflowChange:
    """The content of a PATCH: fields to merge (None removes one), new nodes, and a payload if `sets_payload`.

    `params` is the new schema of the parameters if `sets_params`; None removes it.
    """

    fields: Mapping[str, Any]
    nodes: tuple[WorkflowNode, ...] | None = None
    payload: str | None = None
    sets_payload: bool = False
    if_version: int | None = None
    params: str | None = None
    sets_params: bool = False


async def change_workflow(scope: Scope, reference: str, change: WorkflowChange) -> WorkflowRequest:
    """Change a workflow for future runs; current runs continue with the nodes they began with."""

    def document_of(job: JobRow) -> Mapping[str, Any]:
        return amended(job.document, job.status, change.fields)

    return await _change(scope, reference, change, document_of)


async def replace_workflow(scope: Scope, reference: str, written: WrittenWorkflow) -> WorkflowRequest:
    """Replace a workflow with the written one, but keep its paused state."""
    document = builtin_document(written.document)
    change = WorkflowChange(
        document, written.nodes, written.payload, sets_payload=True, params=written.params, sets_params=True
    )
    return await _change(scope, reference, change, lambda job: {**document, "status": job.status.name})


async def _change(
    scope: Scope, reference: str, change: WorkflowChange, document_of: Callable[[JobRow], Mapping[str, Any]]
) -> WorkflowRequest:
    async with scope.write() as connection:
        row = await _lock(connection, scope, reference, change.if_version)
        nodes = row.nodes if change.nodes is None else await _nodes(connection, scope, change.nodes, row.job_id)
        job = await _lock_job(connection, row)
        found = WorkflowRequest(row, job)
        document = document_of(job)
        payload = change.payload if change.sets_payload else job.payload
        params = change.params if change.sets_params else row.params
        _require_payload(params, payload, document, checked(with_instants(document)).timing)
        job, joined = await jobs.rewrite_job(connection, scope, job, document, payload)
        row = await workflows.update_workflow(connection, row.id, nodes, params)
        await workflows.set_jobs(connection, row.id, {node.job_id for node in nodes})
        await jobs.tell_written(connection, scope, job)
        fields = sorted(
            [*change.fields, *(["nodes"] if change.nodes else []), *(["payload"] if change.sets_payload else [])]
        )
        await stored_jobs.insert_event(connection, scope.tenant_id, job.id, "WORKFLOW_CHANGED", {"fields": fields})
        both = audited_fields(found), audited_fields(WorkflowRequest(row, job))
        await audit.record_change(connection, scope, AuditVerb.WORKFLOW_CHANGE, row.id, row.name, *both)
        await versions.keep(connection, scope, stored_definition(row, job), stored_definition(found.row, found.job))
    job_schedule.announce(scope, joined, [])
    await move_waiting.move_waiting_now(scope, [job.id])
    return WorkflowRequest(row, job)


async def delete_workflow(scope: Scope, reference: str, if_version: int | None = None) -> None:
    """Delete a workflow: it starts no runs, waiting nodes of current runs are cancelled, running nodes finish.

    History stays.
    """
    async with scope.write() as connection:
        row = await _lock(connection, scope, reference, if_version)
        job = await _lock_job(connection, row)
        if outer := await workflows.workflows_with(connection, row.job_id):
            first = next(iter(outer))
            refused = Refused.WORKFLOW_IN_WORKFLOW(inner=row.name, workflow=first)
            raise Conflict(refused, Hint.TAKE_OUT_OF_OUTER(), extra={"workflow": first})
        await workflows.delete_workflow(connection, row.id)
        await workflows.set_jobs(connection, row.id, ())
        await jobs.remove_job(connection, job)
        await stored_jobs.insert_event(connection, scope.tenant_id, job.id, "WORKFLOW_DELETED", {"name": row.name})
        await audit.record_write(connection, scope, AuditVerb.WORKFLOW_DELETE, row.id, row.name)
        await versions.forget(connection, scope, "workflow", row.id)
    await move_waiting.move_waiting_now(scope, [row.job_id])
    async with scope.write(Plans.FRESH, autocommit=True) as connection:
        after = 0
        while page := await run_store.open_runs_of(connection, row.id, after, PAGE):
            (await advance_runs(connection, page, scope.keyring)).tell_revoked(scope.wakeups)
            scope.wakeups.publish(RunsWake(page))
            after = page[-1]


async def set_paused(scope: Scope, reference: str, note: str | None, *, paused: bool) -> WorkflowRequest:
    """Pause or resume future runs of a workflow; current runs are not changed."""
    row = (await read_workflow(scope, reference)).row
    if paused:
        job = await jobs.pause_job(scope, str(row.job_id), note, AuditVerb.WORKFLOW_PAUSE)
    else:
        job = await jobs.resume_job(scope, str(row.job_id), note, AuditVerb.WORKFLOW_RESUME)
    return WorkflowRequest(row, job)


async def read_workflow(scope: Scope, reference: str) -> WorkflowRequest:
    """Return a workflow of this tenant by id or name. Raises `NotFound` if there is none."""
    async with scope.read() as connection:
        return await require_workflow(connection, scope, reference)


async def require_workflow(connection: TenantRead, scope: Scope, reference: str) -> WorkflowRequest:
    """Return a workflow over a given connection. Raises `NotFound` if there is none."""
    found = await find(connection, scope, reference)
    if found is None:
        raise not_found(reference)
    return found


async def find(connection: TenantRead, scope: Scope, reference: str) -> WorkflowRequest | None:
    """Return a workflow over a given connection; None if there is none."""
    row = None if "\x00" in reference else await workflows.find_workflow(connection, scope.tenant_id, reference)
    job = None if row is None else await stored_jobs.find_job(connection, scope.tenant_id, str(row.job_id))
    return None if row is None or job is None else WorkflowRequest(row, job)


async def list_workflows(
    scope: Scope, after_id: int, limit: int, only: WorkflowFilter = ANY_WORKFLOW
) -> list[WorkflowRequest]:
    """Return a page of the workflows that match, in order of id."""
    async with scope.read() as connection:
        rows = await workflows.list_workflows(connection, scope.tenant_id, after_id, limit, only)
        known = await stored_jobs.jobs_by_name(connection, scope.tenant_id, [row.name for row in rows])
    return [WorkflowRequest(row, known[row.name]) for row in rows if row.name in known]


async def _lock(connection: TenantWrite, scope: Scope, reference: str, if_version: int | None) -> WorkflowRow:
    found = await require_workflow(connection, scope, reference)
    row = await workflows.lock_workflow(connection, found.row.id)
    if row is None:
        raise not_found(reference)
    require_version(f"workflow {row.name!r}", row.version, if_version)
    return row


async def _lock_job(connection: TenantWrite, row: WorkflowRow) -> JobRow:
    job = await stored_jobs.lock_job(connection, row.job_id)
    if job is None:
        raise not_found(row.name)
    return job


def not_found(reference: str) -> NotFound:
    """Return the error for a workflow that does not exist."""
    return NotFound(Refused.NO_WORKFLOW(name=reference[:128]), Hint.LISTED_AT(path="/api/v1/workflows"))
