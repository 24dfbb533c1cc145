"""Operations of users on runs of workflows: read, rerun from a node, and cancel."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Self

from horai.core.audit import AuditVerb
from horai.core.errors import AlreadyFinal, Conflict, Invalid, NotFound
from horai.core.node_results import SkippedNode, direction_in
from horai.core.root_cause import RootCause, blocked_by
from horai.core.states import FINAL, CancelReason, State
from horai.core.wakes import ExpiriesWake, RunsWake
from horai.db import instance_queries, instances, jobs, quotas
from horai.db.blocked_runs import open_letters
from horai.db.claims import Claimable
from horai.db.instance_queries import InstanceRow
from horai.db.pool import TenantWrite, retrying
from horai.features.workflow import graph as dag
from horai.features.workflow import map_store, rerun_store, run_store
from horai.features.workflow.child_store import ParentNode, parent_of_run
from horai.features.workflow.definition import WorkflowNode
from horai.features.workflow.graph import NoRerun, RunState
from horai.features.workflow.phrases import SkipWords
from horai.features.workflow.rerun_store import NodeNow, RetiredNode, RunRow
from horai.features.workflow.run_store import NewNodes, RunStart
from horai.features.workflow.runs import AdvanceResult, abandon_runs, advance_runs, facts_of
from horai.features.workflow.sealed_nodes import readable_nodes
from horai.features.workflow.service import WorkflowRequest, require_workflow
from horai.features.workflow.store import NodeRow, share_node_jobs
from horai.features.workflow.trigger_rules import NodeCause
from horai.operations import audit
from horai.operations.instances import read_one
from horai.operations.keyring import Keyring
from horai.operations.scope import Scope
from horai.text import Hint, Refused, Wrong, told_by
from horai.text.phrase import Joined, Phrase


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
    parent: ParentNode | None = None
    """The node of another run that waits for this run."""

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
            dead = [_blamed(node) for node in nodes if node.state is State.DEAD]
            letters = await open_letters(connection, dead) if dead else frozenset[int]()
            parent = await parent_of_run(connection, run_id)
            return RunView(workflow, None, row, tuple(nodes), _causes(nodes, letters), parent)
        instance = await read_one(connection, scope, run_id)
        if instance.job_id != workflow.row.job_id:
            raise _no_run(reference, run_id)
        return RunView(workflow, instance)


def _causes(nodes: Sequence[NodeNow], letters: Collection[int]) -> tuple[RootCause, ...]:
    """Return the root causes among the nodes of a run; `letters`: instances whose dead letters can be replayed."""
    by_name = {node.name: node for node in nodes}
    graph = dag.without_tolerant({node.name: node.after for node in nodes}, {node.name: node.rule for node in nodes})
    dead = [node.name for node in nodes if node.state is State.DEAD]
    waiting = [node.name for node in nodes if node.state is State.BLOCKED]
    return tuple(_cause(by_name[name], letters, blocks) for name, blocks in blocked_by(graph, dead, waiting).items())


def skip_reason(view: RunView, node: NodeNow) -> Phrase | None:
    """Return why a node was skipped; None if it was not."""
    match node.cause:
        case NodeCause.RULE:
            stands = Joined.LISTED.all(
                SkipWords.NODE_STANDS(node=parent.name, state=parent.state_name)
                for parent in view.nodes
                if parent.name in node.after
            )
            return SkipWords.RULE_NOT_MET(rule=node.rule.rest_name, parents=stands)
        case NodeCause.NOT_CHOSEN:
            return SkipWords.PASSED_OVER()
        case NodeCause.SENSOR_SKIPPED:
            return SkipWords.NOT_READY()
        case NodeCause.ITSELF:
            match direction_in(node.kept_result):
                case SkippedNode(reason) if reason:
                    return SkipWords.SKIPPED_BECAUSE(reason=reason)
                case _:
                    return SkipWords.SKIPPED_ITSELF()
        case _:
            return None


def _blamed(node: NodeNow) -> int:
    """Return the instance to look at if the node is dead: its own, or that of the first item that failed."""
    return node.instance_id if node.fault_id is None else node.fault_id


def _cause(node: NodeNow, letters: Collection[int], blocks: tuple[str, ...]) -> RootCause:
    return RootCause(
        node.name,
        node.job,
        node.job_id,
        _blamed(node),
        node.fault_code,
        node.fault_message,
        node.finished_at,
        _blamed(node) in letters,
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

    async def attempt() -> RerunDone:
        async with scope.write() as connection:
            return await rerun_in(
                connection, scope, await require_workflow(connection, scope, reference), run_id, first
            )

    (await retrying(attempt)).tell(scope)
    return await read_run(scope, reference, run_id)


@dataclass(frozen=True, slots=True)
class RerunDone:
    """The writes of a rerun: the claimable rows, and the ids of the replaced instances."""

    run_id: int
    woken: Sequence[Claimable]
    replaced: Sequence[int]
    has_deadlines: bool
    """Sensors were released: the expirer has to learn of their deadlines."""

    async def start_at(self, connection: TenantWrite, at: datetime) -> Self:
        """Let the instances that are due start at a time; the deadlines of sensors count from it.

        Call this in the transaction of the rerun: no node sees them yet.
        """
        return replace(self, woken=await rerun_store.delay_starts(connection, [row.id for row in self.woken], at))

    def tell(self, scope: Scope) -> None:
        """Announce the new instances and the decision to come. Call this after the commit."""
        scope.wakeups.announce_new(self.woken)
        scope.wakeups.publish(RunsWake([self.run_id, *self.replaced]))
        if self.has_deadlines:
            scope.wakeups.publish(ExpiriesWake())


async def rerun_in(
    connection: TenantWrite, scope: Scope, workflow: WorkflowRequest, run_id: int, first: str
) -> RerunDone:
    """Rerun in the transaction of the caller, and record it."""
    done = await _rerun(connection, scope.keyring, workflow, run_id, first)
    after = {"run": str(run_id), "from": first}
    await audit.record_write(connection, scope, AuditVerb.WORKFLOW_RERUN, workflow.row.id, workflow.row.name, after)
    return done


async def _rerun(
    connection: TenantWrite, keyring: Keyring, workflow: WorkflowRequest, run_id: int, first: str
) -> RerunDone:
    """Rerun in the transaction of the caller."""
    row = await rerun_store.lock_run(connection, workflow.row.id, run_id)
    if row is None:
        raise _no_run(workflow.row.name, run_id)
    before = await advance_runs(connection, [run_id], keyring)  # a dead node may have been replayed meanwhile
    nodes = {node.name: node for node in await rerun_store.nodes_now(connection, row)}
    if first not in nodes:
        raise Invalid.field("from", Wrong.NO_NODE_IN_RUN(name=first[:128]), Hint.THERE_ARE(names=", ".join(nodes)))
    graph = {name: node.after for name, node in nodes.items()}
    try:
        states = {name: node.state for name, node in nodes.items()}
        plan = dag.rerun_from(graph, states, first, facts_of(graph, nodes.values()))
    except NoRerun as error:
        raise Conflict(Refused.NO_RERUN(run=run_id, node=first, reason=told_by(error)), error.hint) from error
    await _require_jobs(connection, workflow, [nodes[name] for name in plan.again])
    await _require_letters(connection, run_id, [nodes[name] for name in plan.again])
    await quotas.charge_jobs(connection, [nodes[name].job_id for name in plan.again])
    retired = await rerun_store.retire_nodes(connection, run_id, plan.again)
    await abandon_runs(connection, [nodes[name].instance_id for name in plan.again if nodes[name].has_child])
    await rerun_store.reopen_run(connection, run_id)
    again = [
        NodeRow(_again(nodes[name], retired[name]), nodes[name].job_id, nodes[name].is_sealed) for name in plan.again
    ]
    start = RunStart(run_id, row.fire_time, row.payload)
    ready = frozenset[str]() if graph[first] else frozenset({first})
    made = await run_store.make_nodes(connection, NewNodes(start, again, ready, row.generation + 1))
    after = await advance_runs(connection, [run_id], keyring)  # with the results of its parents
    told = {"workflow": workflow.row.name, "run": str(run_id), "from": first, "nodes": list(plan.again)}
    await jobs.insert_event(connection, workflow.row.tenant_id, workflow.row.job_id, "WORKFLOW_RERUN", told)
    has_deadlines = (
        before.has_deadlines or after.has_deadlines or (first in ready and retired[first].sensor is not None)
    )
    replaced = [node.instance_id for node in retired.values()]
    return RerunDone(run_id, [*before.woken, *made, *after.woken], replaced, has_deadlines)


def _again(node: NodeNow, before: RetiredNode) -> WorkflowNode:
    return WorkflowNode(
        node.name,
        node.job,
        node.after,
        before.payload,
        node.rule,
        before.retry,
        before.map,
        before.produces,
        before.sensor,
        before.child,
    )


async def cancel_run(scope: Scope, reference: str, run_id: int) -> RunView:
    """Cancel a run: waiting nodes and all items of maps are cancelled, running nodes finish.

    A second call changes nothing. A rerun continues a cancelled run.
    """

    async def attempt() -> CancelDone:
        async with scope.write() as connection:
            return await cancel_in(connection, scope, await require_workflow(connection, scope, reference), run_id)

    (await retrying(attempt)).tell(scope)
    return await read_run(scope, reference, run_id)


@dataclass(frozen=True, slots=True)
class CancelDone:
    """The writes of the cancel of a run."""

    run_id: int
    advanced: AdvanceResult

    def tell(self, scope: Scope) -> None:
        """Announce revoked claims and the decision to come. Call this after the commit."""
        self.advanced.tell_revoked(scope.wakeups)
        scope.wakeups.publish(RunsWake([self.run_id]))


async def cancel_in(connection: TenantWrite, scope: Scope, workflow: WorkflowRequest, run_id: int) -> CancelDone:
    """Cancel a run in the transaction of the caller, and record it."""
    done = await _cancel(connection, scope.keyring, workflow, run_id)
    after = {"run": str(run_id)}
    await audit.record_write(connection, scope, AuditVerb.WORKFLOW_CANCEL, workflow.row.id, workflow.row.name, after)
    return CancelDone(run_id, done)


async def _cancel(connection: TenantWrite, keyring: Keyring, workflow: WorkflowRequest, run_id: int) -> AdvanceResult:
    row = await rerun_store.lock_run(connection, workflow.row.id, run_id)
    if row is None:
        if (done := await _cancel_starter(connection, workflow, run_id)) is not None:
            return done
        row = await rerun_store.lock_run(connection, workflow.row.id, run_id)  # it has started meanwhile
        if row is None:
            raise _no_run(workflow.row.name, run_id)
    if row.state is RunState.SUCCESS:
        raise AlreadyFinal(Refused.RUN_SUCCEEDED(run=run_id))
    if row.finished_at is not None or row.is_given_up:
        return AdvanceResult()
    await rerun_store.give_up_run(connection, run_id)
    done = await advance_runs(connection, [run_id], keyring)
    told = {"workflow": workflow.row.name, "run": str(run_id)}
    await jobs.insert_event(connection, workflow.row.tenant_id, workflow.row.job_id, "WORKFLOW_CANCELLED", told)
    return done


async def _cancel_starter(connection: TenantWrite, workflow: WorkflowRequest, run_id: int) -> AdvanceResult | None:
    """Cancel a run that has not started, by the instance that would start it. Return None if there is no such instance.

    A second call changes nothing. Raises `AlreadyFinal` if the instance has ended in another way.
    """
    instance = await instance_queries.instance_by_id(connection, workflow.row.tenant_id, run_id)
    if instance is None or instance.job_id != workflow.row.job_id:
        return None
    cancelled = await instances.cancel_live(connection, [run_id], CancelReason.USER, running=True)
    if cancelled:
        return AdvanceResult(revoked=cancelled)
    after = await instance_queries.instance_by_id(connection, workflow.row.tenant_id, run_id)
    if after is None or after.state not in FINAL:
        return None
    if after.state is not State.CANCELLED:
        raise AlreadyFinal(Refused.INSTANCE_FINAL(instance=run_id, state=after.state.name))
    return AdvanceResult()


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


async def _require_letters(connection: TenantWrite, run_id: int, nodes: Sequence[NodeNow]) -> None:
    """Supersede the dead letters of the nodes and items. Raises `Conflict` if one was replayed: both would do the same work."""
    dead = [node.instance_id for node in nodes if node.state is State.DEAD]
    if maps := [node.name for node in nodes if node.map is not None]:
        dead += await map_store.dead_items_of(connection, run_id, maps)
    await instances.supersede_dead_letters(connection, dead)
    if await run_store.replays_of(connection, dead):
        raise Conflict(Refused.RUN_BEING_REPLAYED(), Hint.WAIT_FOR_REPLAY())
