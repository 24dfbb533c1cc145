"""Operations of users on runs of workflows: read, rerun from a node, and cancel."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from horai.core.audit import AuditVerb
from horai.core.errors import AlreadyFinal, Conflict, Invalid, NotFound
from horai.core.root_cause import RootCause, blocked_by
from horai.core.states import State
from horai.core.wakes import RunsWake
from horai.db import instances, jobs, quotas
from horai.db.blocked_runs import open_letters
from horai.db.claims import Claimable
from horai.db.instance_queries import InstanceRow
from horai.db.pool import TenantWrite, retrying
from horai.features.workflow import graph as dag
from horai.features.workflow import rerun_store, run_store
from horai.features.workflow.definition import WorkflowNode
from horai.features.workflow.graph import NoRerun, RunState
from horai.features.workflow.rerun_store import NodeNow, RunRow
from horai.features.workflow.run_store import NewNodes, RunStart
from horai.features.workflow.runs import advance_runs
from horai.features.workflow.sealed_nodes import readable_nodes
from horai.features.workflow.service import WorkflowRequest, require_workflow
from horai.features.workflow.store import NodeRow, share_node_jobs
from horai.operations import audit
from horai.operations.instances import read_one
from horai.operations.keyring import Keyring
from horai.operations.scope import Scope
from horai.text import Hint, Refused, Wrong, told_by


@dataclass(frozen=True, slots=True)
class RunView:
    """A run with its nodes.

    Without a `row` the run has not started yet, and `instance` is the one that will start it.
    """

    workflow: WorkflowRequest
    instance: InstanceRow | None
    row: RunRow | None = None
    nodes: tuple[NodeNow, ...] = ()
    causes: tuple[RootCause, ...] = ()
    """The dead nodes that block other nodes or the run."""

    def roots_of(self, name: str) -> list[str]:
        """Return the root causes that a node waits for."""
        return [cause.node for cause in self.causes if name in cause.blocks]


async def read_run(scope: Scope, reference: str, run_id: int) -> RunView:
    """Return one run of a workflow with the current state of its nodes. Raises `NotFound` if there is none."""
    async with scope.read() as connection:
        workflow = await require_workflow(connection, scope, reference)
        row = await rerun_store.find_run(connection, workflow.row.id, run_id)
        if row is not None:
            nodes = await readable_nodes(connection, scope, await rerun_store.nodes_now(connection, row))
            dead = [node.instance_id for node in nodes if node.state is State.DEAD]
            letters = await open_letters(connection, dead) if dead else frozenset[int]()
            return RunView(workflow, None, row, tuple(nodes), _causes(nodes, letters))
        instance = await read_one(connection, scope, run_id)
        if instance.job_id != workflow.row.job_id:
            raise _no_run(reference, run_id)
        return RunView(workflow, instance)


def _causes(nodes: Sequence[NodeNow], letters: Collection[int]) -> tuple[RootCause, ...]:
    """Return the root causes among the nodes of a run; `letters`: instances whose dead letters can be replayed."""
    by_name = {node.name: node for node in nodes}
    graph = {node.name: node.after for node in nodes}
    dead = [node.name for node in nodes if node.state is State.DEAD]
    waiting = [node.name for node in nodes if node.state is State.BLOCKED]
    return tuple(_cause(by_name[name], letters, blocks) for name, blocks in blocked_by(graph, dead, waiting).items())


def _cause(node: NodeNow, letters: Collection[int], blocks: tuple[str, ...]) -> RootCause:
    return RootCause(
        node.name,
        node.job,
        node.job_id,
        node.instance_id,
        node.error_code,
        node.error_msg,
        node.finished_at,
        node.instance_id in letters,
        blocks,
    )


def _no_run(reference: str, run_id: int) -> NotFound:
    return NotFound(
        Refused.NO_RUN_OF(workflow=reference[:128], run=run_id),
        Hint.LISTED_AT(path="/api/v1/workflows/{workflow}/runs"),
    )


async def rerun(scope: Scope, reference: str, run_id: int, first: str) -> RunView:
    """Rerun a run from a node: create new instances of it and of the ended nodes after it.

    The old instances stay in history.
    """

    async def attempt() -> tuple[list[Claimable], list[int]]:
        async with scope.write() as connection:
            workflow = await require_workflow(connection, scope, reference)
            done = await _rerun(connection, scope.keyring, workflow, run_id, first)
            after = {"run": str(run_id), "from": first}
            await audit.record_write(
                connection, scope, AuditVerb.WORKFLOW_RERUN, workflow.row.id, workflow.row.name, after
            )
            return done

    woken, told = await retrying(attempt)
    scope.wakeups.announce_new(woken)
    scope.wakeups.publish(RunsWake([run_id, *told]))
    return await read_run(scope, reference, run_id)


async def _rerun(
    connection: TenantWrite, keyring: Keyring, workflow: WorkflowRequest, run_id: int, first: str
) -> tuple[list[Claimable], list[int]]:
    """Rerun in the transaction of the caller; return the claimable rows and the ids of the replaced instances."""
    row = await rerun_store.lock_run(connection, workflow.row.id, run_id)
    if row is None:
        raise _no_run(workflow.row.name, run_id)
    woken = (await advance_runs(connection, [run_id], keyring)).woken  # a dead node may have been replayed meanwhile
    nodes = {node.name: node for node in await rerun_store.nodes_now(connection, row)}
    if first not in nodes:
        raise Invalid.field("from", Wrong.NO_NODE_IN_RUN(name=first[:128]), Hint.THERE_ARE(names=", ".join(nodes)))
    graph = {name: node.after for name, node in nodes.items()}
    try:
        plan = dag.rerun_from(graph, {name: node.state for name, node in nodes.items()}, first)
    except NoRerun as error:
        raise Conflict(Refused.NO_RERUN(run=run_id, node=first, reason=told_by(error)), error.hint) from error
    await _require_jobs(connection, workflow, [nodes[name] for name in plan.again])
    await _require_letters(connection, [nodes[name] for name in plan.again])
    await quotas.charge_jobs(connection, [nodes[name].job_id for name in plan.again])
    retired = await rerun_store.retire_nodes(connection, run_id, plan.again)
    await rerun_store.reopen_run(connection, run_id)
    again = [
        NodeRow(WorkflowNode(name, node.job, graph[name], retired[name][1]), node.job_id, node.is_sealed)
        for name, node in ((name, nodes[name]) for name in plan.again)
    ]
    start = RunStart(run_id, row.fire_time, row.payload)
    ready = frozenset[str]() if graph[first] else frozenset({first})
    woken += await run_store.make_nodes(connection, NewNodes(start, again, ready, row.generation + 1))
    woken += (await advance_runs(connection, [run_id], keyring)).woken  # with the results of its parents
    told = {"workflow": workflow.row.name, "run": str(run_id), "from": first, "nodes": list(plan.again)}
    await jobs.insert_event(connection, workflow.row.tenant_id, workflow.row.job_id, "WORKFLOW_RERUN", told)
    return woken, [instance_id for instance_id, _ in retired.values()]


async def cancel_run(scope: Scope, reference: str, run_id: int) -> RunView:
    """Cancel a run: waiting nodes are cancelled, running nodes finish.

    A second call changes nothing. A rerun continues a cancelled run.
    """

    async def attempt() -> None:
        async with scope.write() as connection:
            workflow = await require_workflow(connection, scope, reference)
            await _cancel(connection, scope.keyring, workflow, run_id)
            after = {"run": str(run_id)}
            await audit.record_write(
                connection, scope, AuditVerb.WORKFLOW_CANCEL, workflow.row.id, workflow.row.name, after
            )

    await retrying(attempt)
    scope.wakeups.publish(RunsWake([run_id]))
    return await read_run(scope, reference, run_id)


async def _cancel(connection: TenantWrite, keyring: Keyring, workflow: WorkflowRequest, run_id: int) -> None:
    row = await rerun_store.lock_run(connection, workflow.row.id, run_id)
    if row is None:
        raise _no_run(workflow.row.name, run_id)
    if row.state is RunState.SUCCESS:
        raise AlreadyFinal(Refused.RUN_SUCCEEDED(run=run_id))
    if row.finished_at is None and not row.is_given_up:
        await rerun_store.give_up_run(connection, run_id)
        await advance_runs(connection, [run_id], keyring)
        told = {"workflow": workflow.row.name, "run": str(run_id)}
        await jobs.insert_event(connection, workflow.row.tenant_id, workflow.row.job_id, "WORKFLOW_CANCELLED", told)


async def _require_jobs(connection: TenantWrite, workflow: WorkflowRequest, nodes: Sequence[NodeNow]) -> None:
    """Raise `Conflict` if the job of a node is deleted, which can happen after the job left the workflow.

    Existing jobs stay locked until the commit, so they cannot be deleted before.
    """
    ids = [str(node.job_id) for node in nodes]
    there = {job.id for job in (await share_node_jobs(connection, workflow.row.tenant_id, ids)).values()}
    if gone := next((node for node in nodes if node.job_id not in there), None):
        raise Conflict(
            Refused.NODE_JOB_DELETED(job=gone.job, node=gone.name),
            Hint.TRIGGER_WORKFLOW(),
        )


async def _require_letters(connection: TenantWrite, nodes: Sequence[NodeNow]) -> None:
    """Supersede the dead letters of the nodes. Raises `Conflict` if one was replayed: both would do the same work."""
    dead = [node.instance_id for node in nodes if node.state is State.DEAD]
    await instances.supersede_dead_letters(connection, dead)
    if await run_store.replays_of(connection, dead):
        raise Conflict(Refused.RUN_BEING_REPLAYED(), Hint.WAIT_FOR_REPLAY())
