"""Runs of workflows as people see them, and how one is done again from a node on."""

from dataclasses import dataclass

from horai.accept.instances import read_one
from horai.accept.runs import advance_runs
from horai.accept.scope import Scope
from horai.accept.workflows import Workflow, require_workflow
from horai.core import dag
from horai.core.dag import NoRerun
from horai.core.errors import Conflict, Invalid, NotFound
from horai.core.workflow import Node
from horai.db import jobs, plans, runs
from horai.db.claims import Woken
from horai.db.pool import Connection, acquire, retrying, transaction
from horai.db.reads import InstanceRow
from horai.db.runs import NewNodes, NodeNow, RunRow, Start
from horai.db.workflows import NodeRow


@dataclass(frozen=True, slots=True)
class RunView:
    """A run with its nodes; without a `row` it has not been started yet, and `instance` is what will start it."""

    workflow: Workflow
    instance: InstanceRow | None
    row: RunRow | None = None
    nodes: tuple[NodeNow, ...] = ()


async def read_run(scope: Scope, reference: str, run_id: int) -> RunView:
    """One run of a workflow, with its nodes as they are."""
    async with acquire(scope.pool) as connection:
        workflow = await require_workflow(connection, scope, reference)
        row = await runs.find_run(connection, workflow.row.id, run_id)
        if row is not None:
            return RunView(workflow, None, row, tuple(await runs.nodes_now(connection, row)))
        instance = await read_one(connection, scope, run_id)
        if instance.job_id != workflow.row.job_id:
            raise _no_run(reference, run_id)
        return RunView(workflow, instance)


def _no_run(reference: str, run_id: int) -> NotFound:
    return NotFound(
        f"The workflow {reference[:128]!r} has no run {run_id}.", "GET /api/v1/workflows/{workflow}/runs lists them."
    )


async def rerun(scope: Scope, reference: str, run_id: int, first: str) -> RunView:
    """Does a run again from a node on: new instances of it and of what came after it; the old ones stay in history."""

    async def attempt() -> tuple[list[Woken], list[int]]:
        async with transaction(scope.pool) as connection:
            return await _rerun(connection, await require_workflow(connection, scope, reference), run_id, first)

    woken, told = await retrying(attempt)
    scope.wakeups.announce(woken)
    scope.wakeups.runs_asked([run_id, *told])
    return await read_run(scope, reference, run_id)


async def _rerun(connection: Connection, workflow: Workflow, run_id: int, first: str) -> tuple[list[Woken], list[int]]:
    """Those that may be claimed, and the instances that were replaced."""
    row = await runs.lock_run(connection, workflow.row.id, run_id)
    if row is None:
        raise _no_run(workflow.row.name, run_id)
    nodes = {node.name: node for node in await runs.nodes_now(connection, row)}
    if first not in nodes:
        raise Invalid.field("from", f"there is no node {first[:128]!r} in this run", f"There are: {', '.join(nodes)}.")
    graph = {name: node.after for name, node in nodes.items()}
    try:
        plan = dag.rerun_from(graph, {name: node.state for name, node in nodes.items()}, first)
    except NoRerun as error:
        raise Conflict(f"The run {run_id} cannot be done again from {first!r}: {error}.", error.hint) from error
    retired = await runs.retire_nodes(connection, run_id, plan.again)
    await runs.reopen_run(connection, run_id)
    await plans.supersede_dead_letters(connection, [instance_id for instance_id, _ in retired.values()])
    again = [
        NodeRow(Node(name, nodes[name].job, graph[name], retired[name][1]), nodes[name].job_id) for name in plan.again
    ]
    start = Start(run_id, row.fire_time, row.payload)
    ready = frozenset[str]() if graph[first] else frozenset({first})
    woken = await runs.make_nodes(connection, NewNodes(start, again, ready, row.generation + 1))
    woken += (await advance_runs(connection, [run_id])).woken  # with what its parents came to
    told = {"workflow": workflow.row.name, "run": str(run_id), "from": first, "nodes": list(plan.again)}
    await jobs.insert_event(connection, workflow.row.tenant_id, workflow.row.job_id, "WORKFLOW_RERUN", told)
    return woken, [instance_id for instance_id, _ in retired.values()]
