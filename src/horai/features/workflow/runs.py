"""Runs of workflows: start a run and advance it.

The row of a run is its lock (compare operations/overlap.py). A transaction that decides on a run locks the row without
waiting, reads the states of the nodes in later statements, and writes its decision before it commits. So two
transactions never decide on one run at the same time, and a node that ends meanwhile asks for another decision.
"""

import json
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from horai.core.outcome import RESULT_LIMIT
from horai.core.states import FINAL, CancelReason, State
from horai.db import instances
from horai.db.claims import Claim, Claimable
from horai.db.pool import AnyWrite, Platform
from horai.features.workflow import graph as dag
from horai.features.workflow import run_store
from horai.features.workflow import store as workflows
from horai.features.workflow.definition import graph_of
from horai.features.workflow.graph import Decision, Graph, RunState
from horai.features.workflow.run_store import Death, HeldRun, NewNodes, RunNode, RunStart, Seen, Unblock
from horai.features.workflow.sealed_nodes import (
    SEALED_RESULT_LIMIT,
    NodeValue,
    WaitsForKey,
    handed_over,
    with_payload_of_run,
)
from horai.features.workflow.starters import RunEnd, end_starters
from horai.operations.keyring import Keyring


async def start_run(
    connection: Platform, job_id: int, start: RunStart, keyring: Keyring | None = None
) -> list[Claimable] | None:
    """Create the instances of one run of a workflow, once per starting instance; None if there is no workflow.

    Everything is one transaction: a process that dies meanwhile has started all of it or nothing. The caller announces
    the returned rows after the commit. Raises `Conflict` or `KeyUnavailable` if the payload of the run has to be sealed
    for a node and the `keyring` lacks the key.
    """
    async with connection.transaction():
        workflow = await workflows.workflow_of_job(connection, job_id)
        if workflow is None or workflow.deleted_at is not None:
            return None
        if not await run_store.insert_run(connection, workflow, start):
            return []
        ready = dag.roots(graph_of([row.node for row in workflow.nodes]))
        nodes = await with_payload_of_run(connection, keyring or Keyring(), workflow, start.payload)
        return await run_store.make_nodes(connection, NewNodes(start, nodes, ready))


class StarterLost(Exception):
    """A claim that ended before it could start a run: the instance was cancelled, or another node claimed it."""


async def begin_run(
    connection: Platform, held: Claim, start: RunStart, keyring: Keyring | None = None
) -> list[Claimable] | None:
    """Start the run of a claimed instance and hand the instance over to it; None if the workflow is deleted.

    Raises `StarterLost`, with nothing written, if the claim has ended. If the run exists and has ended, end the
    instance.
    """
    async with connection.transaction():
        woken = await start_run(connection, held.job_id, start, keyring)
        if woken is None:
            return None
        state = await run_store.phase_of_run(connection, held.id)
        if not await run_store.hand_over(connection, held):
            raise StarterLost
        if state is not RunState.RUNNING:
            await end_starters(connection, {held.id: RunEnd(state)})
    return woken


async def abandon_runs(connection: Platform, run_ids: Collection[int]) -> None:
    """Give up the unfinished runs among these: another run does their work, and their dead nodes need no replay."""
    if left := await run_store.open_runs(connection, run_ids):
        await instances.supersede_dead_letters(connection, await run_store.dead_nodes_of(connection, left))
        await run_store.give_up_runs(connection, left)
        await advance_runs(connection, left)


@dataclass(slots=True)
class AdvanceResult:
    """The result of a step: claimable rows, runs that continue, and runs to check again soon.

    A run of which a node waits for an encryption key continues, and is checked less often. `gates` are the jobs of workflows of which a run ended and whose next slots may have waited for that.
    """

    woken: list[Claimable] = field(default_factory=list[Claimable])
    running: set[int] = field(default_factory=set[int])
    busy: set[int] = field(default_factory=set[int])
    gates: set[int] = field(default_factory=set[int])


@dataclass(frozen=True, slots=True)
class _RunView:
    """A run, its current nodes, and the decision on it."""

    held: HeldRun
    nodes: Mapping[str, RunNode]
    states: Mapping[str, State]
    graph: Graph
    decision: Decision

    def ids(self, names: Collection[str]) -> list[int]:
        """Return the ids of the instances of nodes."""
        return [self.nodes[name].instance_id for name in names]


async def advance_runs(connection: AnyWrite, run_ids: Collection[int], keyring: Keyring | None = None) -> AdvanceResult:
    """Decide on the unfinished runs among these. The caller announces the result after the commit.

    The `keyring` is used for nodes of encrypted jobs that get results; those whose key it lacks stay BLOCKED.
    """
    advanced = AdvanceResult()
    if not run_ids:
        return advanced
    async with connection.transaction():
        held = await run_store.lock_runs(connection, run_ids)
        if held:
            await _advance(connection, held, advanced, keyring or Keyring())
        if missing := set(run_ids) - {run.id for run in held}:
            advanced.busy |= await run_store.open_runs(connection, missing)
    return advanced


async def _advance(connection: AnyWrite, held: Sequence[HeldRun], advanced: AdvanceResult, keyring: Keyring) -> None:
    since = min(run.created_at for run in held)
    nodes, seen = await _look(
        connection, held, await run_store.nodes_of_runs(connection, [run.id for run in held]), since
    )
    orphans = [run.id for run in held if not run.is_settled and seen[run.id].state is State.CANCELLED]
    if orphans:
        await run_store.give_up_runs(connection, orphans)
    of_run: dict[int, list[RunNode]] = defaultdict(list)
    for node in nodes:
        of_run[node.run_id].append(node)
    decided = [_decided(run, of_run[run.id], seen, is_orphan=run.id in orphans) for run in held]
    await _tell_deaths(connection, decided, seen)
    ends = {n.instance_id: seen[n.instance_id].state for n in nodes if n.ended is None}
    ends |= dict.fromkeys(await _cancel(connection, decided), State.CANCELLED)
    if final := {i: state for i, state in ends.items() if state in FINAL}:
        await run_store.note_ends(connection, final)
    released = await _release(connection, keyring, decided, since)
    advanced.woken += released.woken
    done = {row.id for row in advanced.woken} | set(final)
    left = {run.held.id for run in decided if not done.issuperset(run.ids(_touched(run.decision)))}
    phases = {run.held.id: RunState.RUNNING if run.held.id in left else run.decision.state for run in decided}
    left |= await _end_starters(connection, decided, phases, advanced)
    phases |= dict.fromkeys(left, RunState.RUNNING)
    settled = {run.id for run in held if not run.is_settled and seen[run.id].state in FINAL}
    await run_store.set_phases(connection, phases, settled)
    advanced.running |= {run_id for run_id, state in phases.items() if state is RunState.RUNNING}
    advanced.busy |= left - released.without_key


async def _end_starters(
    connection: AnyWrite, decided: Sequence[_RunView], phases: Mapping[int, RunState], advanced: AdvanceResult
) -> frozenset[int]:
    """End the starters of runs that are over or blocked; return the runs whose starter is locked elsewhere."""
    over = [run.held for run in decided if not run.held.is_settled and phases[run.held.id] is not RunState.RUNNING]
    if not over:
        return frozenset()
    ends = await end_starters(connection, {held.id: RunEnd(phases[held.id], held.reason) for held in over})
    advanced.gates |= {held.job_id for held in over if held.is_gated and held.id in ends.ended}
    return ends.locked


def _touched(decision: Decision) -> tuple[str, ...]:
    return (*decision.released, *decision.cancelled)


async def _look(
    connection: AnyWrite, held: Sequence[HeldRun], nodes: Sequence[RunNode], since: datetime
) -> tuple[list[RunNode], dict[int, Seen]]:
    """Return the nodes, and the states of their instances and of starters that have not ended.

    A dead node that was replayed continues with its replay.
    """
    seen = {node.instance_id: Seen(node.ended) for node in nodes if node.ended is not None}
    starters = [run.id for run in held if not run.is_settled]
    unended = [node.instance_id for node in nodes if node.ended is None]
    seen |= await run_store.states_of(connection, [*unended, *starters], since)
    current: list[RunNode] = list(nodes)
    asked = [node.instance_id for node in nodes if seen[node.instance_id].state is State.DEAD]
    while replays := await run_store.replays_of(connection, asked):
        await run_store.follow_replays(connection, replays)
        seen |= await run_store.states_of(connection, list(replays.values()), since)
        current = [
            replace(node, instance_id=replays[node.instance_id], ended=None) if node.instance_id in replays else node
            for node in current
        ]
        asked = [new for new in replays.values() if seen[new].state is State.DEAD]
    return current, seen


def _decided(held: HeldRun, nodes: Sequence[RunNode], seen: Mapping[int, Seen], *, is_orphan: bool) -> _RunView:
    graph = {node.name: node.after for node in nodes}
    states = {node.name: seen[node.instance_id].state for node in nodes}
    decision = dag.decide(graph, states, is_given_up=held.is_given_up or is_orphan)
    return _RunView(held, {node.name: node for node in nodes}, states, graph, decision)


async def _tell_deaths(connection: AnyWrite, decided: Sequence[_RunView], seen: Mapping[int, Seen]) -> None:
    """Insert an event for each node that is newly dead."""
    deaths = [
        Death(run.held, node.instance_id, json.dumps(_told(run, node, seen[node.instance_id])))
        for run in decided
        for node in run.nodes.values()
        if node.ended is None and run.states[node.name] is State.DEAD
    ]
    if deaths:
        await run_store.tell_blocked(connection, deaths)


def _told(run: _RunView, node: RunNode, seen: Seen) -> dict[str, object]:
    return {
        "workflow": run.held.workflow,
        "run": str(run.held.id),
        "node": node.name,
        "errorCode": seen.error_code,
        "blocked": dag.held_up_by(run.graph, run.states, node.name),
    }


async def _cancel(connection: AnyWrite, decided: Sequence[_RunView]) -> list[int]:
    """Cancel nodes with their cancelled parent, run or workflow; return the ids of the cancelled instances."""
    by_reason: dict[CancelReason, list[int]] = defaultdict(list)
    for run in decided:
        by_reason[run.held.reason] += run.ids(run.decision.cancelled)
    cancelled: list[int] = []
    for reason in sorted(by_reason):
        if ids := sorted(by_reason[reason]):
            rows = await instances.cancel_live(connection, ids, reason, running=False)
            cancelled += [row.id for row in rows]
    return cancelled


@dataclass(slots=True)
class _Release:
    """The nodes that were released, and the runs of which a node waits for an encryption key."""

    woken: list[Claimable] = field(default_factory=list[Claimable])
    without_key: set[int] = field(default_factory=set[int])


async def _release(connection: AnyWrite, keyring: Keyring, decided: Sequence[_RunView], since: datetime) -> _Release:
    """Release the nodes whose parents have all succeeded, with the results of those."""
    released = _Release()
    ready = [(run, name) for run in decided for name in run.decision.released]
    if not ready:
        return released
    parents = {run.nodes[parent] for run, name in ready for parent in run.graph[name]}
    results = await _results(connection, parents, since)
    taking = [
        run.nodes[name].instance_id for run, name in ready if not results.keys().isdisjoint(run.ids(run.graph[name]))
    ]
    payloads = await run_store.blocked_payloads(connection, taking) if taking else {}
    wishes: list[Unblock] = []
    for run, name in ready:
        node, payload = run.nodes[name], None
        if node.instance_id in payloads:
            given = {
                parent: NodeValue(results.get(run.nodes[parent].instance_id), run.nodes[parent].sealed_for)
                for parent in run.graph[name]
            }
            own = NodeValue(payloads[node.instance_id], node.sealed_for)
            try:
                payload = await handed_over(connection, keyring, run.held.tenant_id, own, given)
            except WaitsForKey:
                released.without_key.add(run.held.id)
                continue
        wishes.append(Unblock(node.instance_id, run.held.id, payload))
    released.woken = await run_store.unblock(connection, wishes) if wishes else []
    return released


async def _results(connection: AnyWrite, parents: Collection[RunNode], since: datetime) -> dict[int, str]:
    """Return the results of parents that may be small enough to pass on. An envelope is longer than its value."""
    limit = SEALED_RESULT_LIMIT if any(parent.sealed_for is not None for parent in parents) else RESULT_LIMIT
    return await run_store.results_of(connection, {parent.instance_id for parent in parents}, since, limit)
