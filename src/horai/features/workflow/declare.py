"""Workflows that an application's code declares, applied when the application starts, after its jobs.

As with jobs, the code defines a workflow and the operator decides whether it runs. A start writes nothing if every
stored workflow matches the code.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from horai.core.errors import Duplicate, FieldError, Invalid, NotFound
from horai.core.job import checked, document_of
from horai.db import jobs
from horai.db.jobs import JobRow
from horai.db.pool import TenantRead, retrying
from horai.features.workflow import graph
from horai.features.workflow import service as workflows
from horai.features.workflow.definition import WrittenWorkflow, builtin_document
from horai.features.workflow.sealed_nodes import opened_nodes
from horai.features.workflow.service import WorkflowRequest
from horai.operations.declarations import SECOND_REFUSED
from horai.operations.declared_owner import DeclaredChanges, Owner, owner_of
from horai.operations.scope import Scope

TRIES = 5


async def declare_workflows(scope: Scope, app: str | Owner, declared: Sequence[WrittenWorkflow]) -> DeclaredChanges:
    """Create or update the workflows to match the code; leave their paused state to the operator.

    A workflow that was created by hand is taken over. If a workflow belongs to another application, raise `Invalid` and
    write nothing.
    """
    owner = owner_of(app)
    wishes = _wishes(owner, declared)
    stored, removed = await _look(scope, owner, wishes)
    _refuse(_conflicts(stored, owner), _way_out(stored, owner))
    fates = {name: await _apply(scope, owner, wish) for name, wish in wishes.items()}
    return _applied(fates, removed)


async def compare_workflows(
    scope: Scope, app: str | Owner, declared: Sequence[WrittenWorkflow], coming: Collection[str]
) -> DeclaredChanges:
    """Return the changes that `declare_workflows` would make once the jobs in `coming` exist; write nothing."""
    owner = owner_of(app)
    wishes = _wishes(owner, declared)
    stored, removed = await _look(scope, owner, wishes)
    missing = await _missing_jobs(scope, wishes.values(), coming)
    taken = await _taken(scope, [name for name in wishes if name not in stored])
    _refuse([*_conflicts(stored, owner), *taken, *missing], _way_out(stored, owner))
    return _applied({name: _fate(stored.get(name), wish) for name, wish in wishes.items()}, removed)


def _wishes(owner: Owner, declared: Sequence[WrittenWorkflow]) -> dict[str, WrittenWorkflow]:
    """Return the workflows as they will be stored, inner ones first: every process writes them in this order.

    Raises `Invalid` if workflows start runs of one another in a circle.
    """
    owned = {_name(each): replace(each, document={**each.document, **owner.mark}) for each in declared}
    inner = {
        name: {node.job for node in written.nodes if node.child is not None and node.job in owned}
        for name, written in owned.items()
    }
    if (cycle := graph.cycle_in(inner)) is not None:
        raise Invalid.field(cycle[0], f"runs itself through other workflows: {' → '.join(cycle)}")
    return {name: owned[name] for name in graph.ordered(inner)}


def _name(written: WrittenWorkflow) -> str:
    return str(written.document["name"])


def _applied(fates: Mapping[str, str], removed: Sequence[str]) -> DeclaredChanges:
    by_fate = {fate: tuple(name for name, own in fates.items() if own == fate) for fate in set(fates.values())}
    return DeclaredChanges(
        by_fate.get("created", ()), by_fate.get("changed", ()), by_fate.get("unchanged", ()), tuple(removed)
    )


async def _look(
    scope: Scope, owner: Owner, wishes: Mapping[str, WrittenWorkflow]
) -> tuple[dict[str, WorkflowRequest], list[str]]:
    """Return the stored workflows of these names, and the names of workflows that the code no longer declares."""
    async with scope.read() as connection:
        found = [await _find(connection, scope, name) for name in wishes]
        name = owner.name
        known = await jobs.names_declared_by(connection, scope.tenant_id, name, workflows=True) if name else []
    return {each.row.name: each for each in found if each}, [name for name in known if name not in wishes]


async def _find(connection: TenantRead, scope: Scope, name: str) -> WorkflowRequest | None:
    """Return a stored workflow with the payloads of its nodes opened, to compare them."""
    found = await workflows.find(connection, scope, name)
    return None if found is None else replace(found, row=await opened_nodes(connection, scope, found.row))


def _refuse(faults: Sequence[FieldError], hint: str | None = None) -> None:
    if faults:
        raise Invalid.fields(faults, hint)


def _conflicts(stored: Mapping[str, WorkflowRequest], owner: Owner) -> list[FieldError]:
    told = "is a workflow that the application {!r} declares, and " + SECOND_REFUSED
    return [FieldError(name, told.format(theirs)) for name, theirs in _foreign(stored, owner)]


def _way_out(stored: Mapping[str, WorkflowRequest], owner: Owner) -> str | None:
    return next((owner.way_out(theirs) for _, theirs in _foreign(stored, owner)), None)


def _foreign(stored: Mapping[str, WorkflowRequest], owner: Owner) -> list[tuple[str, str]]:
    """Return the workflows that belong to other applications, each with the name of its application."""
    owners = {name: workflow.job.document.get("declaredBy") for name, workflow in stored.items()}
    return [(name, theirs) for name, theirs in owners.items() if theirs and not owner.may_declare(theirs)]


async def _taken(scope: Scope, names: Sequence[str]) -> list[FieldError]:
    """Return an error for each new workflow whose name a job already has."""
    async with scope.read() as connection:
        found = await jobs.jobs_by_name(connection, scope.tenant_id, names)
    return [
        FieldError(name, "is already a job: use another name for the workflow, or delete the job") for name in found
    ]


async def _missing_jobs(scope: Scope, wishes: Collection[WrittenWorkflow], coming: Collection[str]) -> list[FieldError]:
    """Return an error for each node whose job or workflow neither exists nor is declared now."""
    named = {node.job for wish in wishes for node in wish.nodes} - set(coming) - {_name(wish) for wish in wishes}
    async with scope.read() as connection:
        found: dict[str, JobRow | None] = {
            name: await jobs.find_job(connection, scope.tenant_id, name) for name in sorted(named)
        }
    return [
        FieldError(f"{_name(wish)}.nodes.{number}.{kind}", f"there is no {kind} {node.job!r}")
        for wish in wishes
        for number, node in enumerate(wish.nodes)
        for kind in ("job" if node.child is None else "workflow",)
        if node.job in found and found[node.job] is None
    ]


def _fate(there: WorkflowRequest | None, written: WrittenWorkflow) -> str:
    if there is None:
        return "created"
    return "unchanged" if _is_as_written(there, written) else "changed"


async def _apply(scope: Scope, owner: Owner, written: WrittenWorkflow) -> str:
    """Create or update one workflow. The second of two processes finds the workflow up to date and writes nothing."""
    for left in reversed(range(TRIES)):
        async with scope.read() as connection:
            there = await _find(connection, scope, _name(written))
        found = {} if there is None else {_name(written): there}
        _refuse(_conflicts(found, owner), _way_out(found, owner))
        fate = _fate(there, written)
        try:
            if fate == "created":
                await retrying(lambda: workflows.create_workflow(scope, written))
            elif fate == "changed":
                await retrying(lambda: workflows.replace_workflow(scope, _name(written), written))
        except (Duplicate, NotFound):  # another process was faster: compare with its result
            if left == 0:
                raise
            continue
        return fate
    raise AssertionError("there is at least one try")


def _is_as_written(there: WorkflowRequest, written: WrittenWorkflow) -> bool:
    document = builtin_document(written.document)
    stored = json.loads(json.dumps(document_of(checked(document), document)))
    nodes = tuple(row.node for row in there.row.nodes)
    is_same = there.job.document == stored and there.job.payload == written.payload and nodes == written.nodes
    return is_same and _json(there.row.params) == _json(written.params)


def _json(text: str | None) -> object:
    return None if text is None else json.loads(text)
