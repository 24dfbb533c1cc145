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

from horai.core.states import FINAL, CancelReason, State
from horai.core.wakes import ExpiriesWake, OutcomeWake, RunsWake
from horai.db import instances
from horai.db.claims import Claim, Claimable
from horai.db.instances import CancelledRow
from horai.db.pool import AnyWrite, Platform
from horai.db.wakeups import Wakeups
from horai.features.workflow import graph as dag
from horai.features.workflow import run_store
from horai.features.workflow import store as workflows
from horai.features.workflow.child_settings import DEPTH_LIMIT, child_payload
from horai.features.workflow.child_store import levels_above, note_child_results
from horai.features.workflow.children import ChildDecisions
from horai.features.workflow.composed import with_calls
from horai.features.workflow.definition import graph_of
from horai.features.workflow.directions import with_directions
from horai.features.workflow.graph import Decision, Graph, RunState
from horai.features.workflow.maps import MapDecisions
from horai.features.workflow.node_assets import update_assets, update_assets_of_runs
from horai.features.workflow.params import fitted_run
from horai.features.workflow.releases import DecidedRun, release_nodes
from horai.features.workflow.rerun_store import NodeNow
from horai.features.workflow.run_store import (
    SLACK,
    Death,
    HeldRun,
    NewNodes,
    NodeEnd,
    RunNode,
    RunStart,
    Seen,
)
from horai.features.workflow.sealed_nodes import (
    with_payload_of_run,
)
from horai.features.workflow.sensors import with_deadlines
from horai.features.workflow.starters import RunEnd, end_starters
from horai.features.workflow.store import NodeRow
from horai.features.workflow.trigger_rules import RunFacts, TriggerRule
from horai.operations.keyring import Keyring


async def start_run(
    connection: Platform, job_id: int, start: RunStart, keyring: Keyring | None = None
) -> list[Claimable] | None:
    """Create the instances of one run of a workflow, once per starting instance; None if there is no workflow.

    Everything is one transaction: a process that dies meanwhile has started all of it or nothing. The caller announces
    the returned rows after the commit. Raises `Conflict` or `KeyUnavailable` if the payload of the run has to be sealed
    for a node and the `keyring` lacks the key, and `Invalid` if the payload does not fit the parameters.
    """
    async with connection.transaction():
        workflow = await workflows.workflow_of_job(connection, job_id)
        if workflow is None or workflow.deleted_at is not None:
            return None
        if workflow.params is not None:
            start = replace(start, payload=fitted_run(json.loads(workflow.params), start.payload))
        if not await run_store.insert_run(connection, workflow, start):
            return []
        ready = dag.roots(graph_of([row.node for row in workflow.nodes]))
        nodes = await with_payload_of_run(connection, keyring or Keyring(), workflow, start.payload)
        nodes = with_calls(_with_child_payloads(nodes, start.payload), start.payload)
        return await run_store.make_nodes(connection, NewNodes(start, nodes, ready))


def _with_child_payloads(nodes: Sequence[NodeRow], payload: str | None) -> list[NodeRow]:
    """Return the nodes of a new run; those that start runs of other workflows get the parameters that are known already."""
    return [
        row
        if row.node.child is None
        else replace(row, node=replace(row.node, payload=child_payload(row.node.child, payload)))
        for row in nodes
    ]


class TooDeep(Exception):
    """A run that would be inside more than `DEPTH_LIMIT` levels of runs."""


class StarterLost(Exception):
    """A claim that ended before it could start a run: the instance was cancelled, or another node claimed it."""


async def begin_run(
    connection: Platform, held: Claim, start: RunStart, keyring: Keyring | None = None
) -> list[Claimable] | None:
    """Start the run of a claimed instance and hand the instance over to it; None if the workflow is deleted.

    Raises `StarterLost`, with nothing written, if the claim has ended, and `TooDeep` if the run would be too many levels
    inside other runs. If the run exists and has ended, end the instance.
    """
    async with connection.transaction():
        if await levels_above(connection, held.id, DEPTH_LIMIT) >= DEPTH_LIMIT:
            raise TooDeep
        woken = await start_run(connection, held.job_id, start, keyring)
        if woken is None:
            return None
        state = await run_store.phase_of_run(connection, held.id)
        if not await run_store.hand_over(connection, held):
            raise StarterLost
        if state is not RunState.RUNNING:
            await end_starters(connection, {held.id: RunEnd(state)})
    return woken


async def abandon_runs(connection: AnyWrite, run_ids: Collection[int]) -> None:
    """Give up the unfinished runs among these: another run does their work, and their dead nodes need no replay."""
    if left := await run_store.open_runs(connection, run_ids):
        await instances.supersede_dead_letters(connection, await run_store.dead_nodes_of(connection, left))
        await run_store.give_up_runs(connection, left)
        await advance_runs(connection, left)


@dataclass(slots=True)
class AdvanceResult:
    """The result of a step: claimable rows, runs that continue, and runs to check again soon.

    A run of which a node waits for an encryption key continues, and is checked less often. `gates` are the jobs of workflows of which a run ended and whose next slots may have waited for that.
    `revoked` are running items of maps that were cancelled: the holders of their claims have to be told.
    """

    woken: list[Claimable] = field(default_factory=list[Claimable])
    running: set[int] = field(default_factory=set[int])
    busy: set[int] = field(default_factory=set[int])
    gates: set[int] = field(default_factory=set[int])
    revoked: list[CancelledRow] = field(default_factory=list[CancelledRow])
    changed: set[int] = field(default_factory=set[int])
    """Runs that nodes of other runs wait for, and that are in another state now."""
    has_deadlines: bool = False
    """Sensors were released: the expirer has to learn of their deadlines."""
    unfilled: set[int] = field(default_factory=set[int])
    """Runs with a map that gets more items by another decision, at once."""
    is_in_bulk: bool = False
    """A map has many items under way: the next decision may wait for more of them."""

    def tell_revoked(self, wakeups: Wakeups) -> None:
        """Tell the holders of revoked claims, and have parent runs decided on. Call this after the commit."""
        if self.has_deadlines:
            wakeups.publish(ExpiriesWake())
        if self.changed:
            wakeups.publish(RunsWake(sorted(self.changed)))
        for row in self.revoked:
            if row.fence is not None:
                wakeups.publish(OutcomeWake(row.id, row.fence))


async def advance_runs(connection: AnyWrite, run_ids: Collection[int], keyring: Keyring | None = None) -> AdvanceResult:
    """Decide on the unfinished runs among these. The caller announces the result after the commit.

    The `keyring` is used for nodes of encrypted jobs that get results; those whose key it lacks stay BLOCKED.
    """
    advanced = AdvanceResult()
    if not run_ids:
        return advanced
    async with connection.transaction():
        held = await run_store.lock_runs(connection, run_ids)
        due: Collection[HeldRun] = held
        while due:  # a map without items has ended at its start: the nodes after it are due
            over = await _advance(connection, [*due], advanced, keyring or Keyring())
            due = [run for run in due if run.id in over]
        if missing := set(run_ids) - {run.id for run in held}:
            advanced.busy |= await run_store.open_runs(connection, missing)
    return advanced


async def _advance(
    connection: AnyWrite, held: Sequence[HeldRun], advanced: AdvanceResult, keyring: Keyring
) -> frozenset[int]:
    """Decide on runs once. Return those to decide on again at once."""
    since = min(run.created_at for run in held)
    nodes, seen = await _look(
        connection, held, await run_store.nodes_of_runs(connection, [run.id for run in held]), since, advanced
    )
    nodes, seen = with_deadlines(nodes, seen)
    nodes, seen = await with_directions(connection, keyring, held, nodes, seen)
    orphans = [run.id for run in held if not run.is_settled and seen[run.id].state is State.CANCELLED]
    if orphans:
        await run_store.give_up_runs(connection, orphans)
    children = ChildDecisions(connection, since - SLACK)
    nodes, seen = await children.look(held, nodes, seen, orphans)
    left_children = await _give_up_children(connection, children.given_up, advanced, keyring)
    held = [run for run in held if run.id not in children.given_up]  # these are decided on now
    nodes = [node for node in nodes if node.run_id not in children.given_up]
    maps = MapDecisions(connection, keyring, since - SLACK)
    of_run = await _looked_at_maps(maps, held, nodes, seen, orphans)
    nodes = [node for own in of_run.values() for node in own]
    decided = [_decided(run, of_run[run.id], seen, is_orphan=run.id in orphans) for run in held]
    await _tell_deaths(connection, decided, seen)
    ends = {n.instance_id: NodeEnd(seen[n.instance_id].state, n.cause, n.chosen) for n in nodes if n.ended is None}
    ends |= dict.fromkeys(await _cancel(connection, decided), NodeEnd(State.CANCELLED))
    ends |= await _skip(connection, decided)
    if final := {i: end for i, end in ends.items() if end.state in FINAL}:
        await run_store.note_ends(connection, final)
        if succeeded := [
            n.instance_id
            for n in nodes
            if n.child is not None and n.instance_id in final and final[n.instance_id].state is State.SUCCESS
        ]:
            await note_child_results(connection, succeeded, since - SLACK)
        await update_assets(connection, nodes, final, since)
    released = await release_nodes(connection, keyring, decided, since, maps)
    advanced.woken += [*released.woken, *maps.woken, *children.woken]
    advanced.revoked += maps.revoked
    advanced.has_deadlines |= released.has_deadlines
    advanced.unfilled |= maps.unfilled
    advanced.is_in_bulk |= maps.is_in_bulk
    done = {row.id for row in released.woken} | set(final) | maps.opened
    left = {run.held.id for run in decided if not done.issuperset(run.ids(_touched(run.decision)))}
    phases = {run.held.id: RunState.RUNNING if run.held.id in left else run.decision.state for run in decided}
    left |= await _end_starters(connection, decided, phases, advanced)
    phases |= dict.fromkeys(left, RunState.RUNNING)
    advanced.changed |= {run.id for run in held if run.is_child and phases[run.id] != run.phase}
    advanced.busy |= children.busy
    again = maps.over | {node.run_id for node in nodes if node.instance_id in left_children}
    settled = {run.id for run in held if not run.is_settled and seen[run.id].state in FINAL}
    await run_store.set_phases(connection, phases, settled, left)
    await update_assets_of_runs(connection, held, phases)
    running = {run_id for run_id, state in phases.items() if state is RunState.RUNNING}
    advanced.running |= running - again
    advanced.busy |= left - released.without_key - maps.without_key - again
    return frozenset(again)


async def _give_up_children(
    connection: AnyWrite, run_ids: Collection[int], advanced: AdvanceResult, keyring: Keyring
) -> frozenset[int]:
    """Give up runs that nodes had started, in this transaction. Return those that have ended by that."""
    if not run_ids:
        return frozenset()
    await instances.supersede_dead_letters(connection, await run_store.dead_nodes_of(connection, run_ids))
    await run_store.give_up_runs(connection, run_ids)
    below = await advance_runs(connection, run_ids, keyring)
    advanced.woken += below.woken
    advanced.running |= below.running
    advanced.busy |= below.busy
    advanced.has_deadlines |= below.has_deadlines
    advanced.gates |= below.gates
    advanced.revoked += below.revoked
    return frozenset(below.changed)


async def _looked_at_maps(
    maps: MapDecisions,
    held: Sequence[HeldRun],
    nodes: Sequence[RunNode],
    seen: dict[int, Seen],
    orphans: Collection[int],
) -> dict[int, list[RunNode]]:
    """Return the nodes by run, with maps as their items are now; `seen` gets the states of maps."""
    of_run: dict[int, list[RunNode]] = defaultdict(list)
    for node in nodes:
        of_run[node.run_id].append(node)
    for run in held:
        own = of_run[run.id]
        for place, node in enumerate(own):
            if node.map is not None:
                is_given_up = run.is_given_up or run.id in orphans
                own[place], seen[node.instance_id] = await maps.look(run, node, own, is_given_up=is_given_up)
    return of_run


async def _end_starters(
    connection: AnyWrite, decided: Sequence[DecidedRun], phases: Mapping[int, RunState], advanced: AdvanceResult
) -> frozenset[int]:
    """End the starters of runs that are over or blocked; return the runs whose starter is locked elsewhere."""
    over = [run.held for run in decided if not run.held.is_settled and phases[run.held.id] is not RunState.RUNNING]
    if not over:
        return frozenset()
    ends = await end_starters(connection, {held.id: RunEnd(phases[held.id], held.reason) for held in over})
    advanced.gates |= {held.job_id for held in over if held.is_gated and held.id in ends.ended}
    return ends.locked


def _touched(decision: Decision) -> tuple[str, ...]:
    return (*decision.released, *decision.cancelled, *(name for name, _ in decision.skipped))


async def _look(
    connection: AnyWrite, held: Sequence[HeldRun], nodes: Sequence[RunNode], since: datetime, advanced: AdvanceResult
) -> tuple[list[RunNode], dict[int, Seen]]:
    """Return the nodes, and the states of their instances and of starters that have not ended.

    A dead node that was replayed continues with its replay.
    """
    seen = {node.instance_id: Seen(node.ended or State.BLOCKED) for node in nodes if node.ended or node.map}
    starters = [run.id for run in held if not run.is_settled]
    unended = [node.instance_id for node in nodes if node.ended is None and node.map is None]
    sealed = {node.instance_id for node in nodes if node.ended is None and node.sealed_for is not None}
    seen |= await run_store.states_of(connection, [*unended, *starters], since, sealed)
    current: list[RunNode] = list(nodes)
    asked = [node.instance_id for node in nodes if seen[node.instance_id].state is State.DEAD]
    while replays := await run_store.replays_of(connection, asked):
        deadlines = {
            node.instance_id: node.sensor.deadline
            for node in current
            if node.instance_id in replays and node.sensor is not None
        }
        await run_store.follow_replays(connection, replays, deadlines)
        advanced.has_deadlines |= bool(deadlines)
        current = [
            replace(node, instance_id=replays[node.instance_id], ended=None, cause=None, chosen=None)
            if node.instance_id in replays
            else node
            for node in current
        ]
        sealed = {node.instance_id for node in current if node.ended is None and node.sealed_for is not None}
        seen |= await run_store.states_of(connection, list(replays.values()), since, sealed)
        asked = [new for new in replays.values() if seen[new].state is State.DEAD]
    return current, seen


def _decided(held: HeldRun, nodes: Sequence[RunNode], seen: Mapping[int, Seen], *, is_orphan: bool) -> DecidedRun:
    graph = {node.name: node.after for node in nodes}
    states = {node.name: seen[node.instance_id].state for node in nodes}
    facts = facts_of(graph, nodes)
    decision = dag.decide(graph, states, is_given_up=held.is_given_up or is_orphan, facts=facts)
    return DecidedRun(held, {node.name: node for node in nodes}, states, graph, decision, facts)


def facts_of(graph: Graph, nodes: Collection[RunNode | NodeNow]) -> RunFacts:
    """Return the rules, the skipped nodes and the branches of a run."""
    chosen = {node.name: node.chosen for node in nodes if node.chosen is not None}
    return RunFacts(
        {node.name: node.rule for node in nodes if node.rule is not TriggerRule.ALL_SUCCESS},
        frozenset(node.name for node in nodes if node.cause is not None and node.cause.is_skip),
        dag.passed_over(graph, chosen),
    )


async def _tell_deaths(connection: AnyWrite, decided: Sequence[DecidedRun], seen: Mapping[int, Seen]) -> None:
    """Insert an event for each node that is newly dead."""
    deaths = [
        Death(run.held, node.instance_id, json.dumps(_told(run, node, seen[node.instance_id])))
        for run in decided
        for node in run.nodes.values()
        if node.ended is None and run.states[node.name] is State.DEAD
    ]
    if deaths:
        await run_store.tell_blocked(connection, deaths)


def _told(run: DecidedRun, node: RunNode, seen: Seen) -> dict[str, object]:
    return {
        "workflow": run.held.workflow,
        "run": str(run.held.id),
        "node": node.name,
        "errorCode": seen.error_code,
        "blocked": dag.held_up_by(run.graph, run.states, node.name, run.facts.rules),
    }


async def _cancel(connection: AnyWrite, decided: Sequence[DecidedRun]) -> list[int]:
    """Cancel nodes with their cancelled parent, run or workflow; return the ids of the cancelled instances."""
    by_reason: dict[CancelReason, list[int]] = defaultdict(list)
    for run in decided:
        by_reason[run.held.reason] += run.ids(run.decision.cancelled)
    cancelled = [id_ for run in decided for id_ in run.map_ids(run.decision.cancelled)]  # a map has no instance
    for reason in sorted(by_reason):
        if ids := sorted(by_reason[reason]):
            rows = await instances.cancel_live(connection, ids, reason, running=False)
            cancelled += [row.id for row in rows]
    return cancelled


async def _skip(connection: AnyWrite, decided: Sequence[DecidedRun]) -> dict[int, NodeEnd]:
    """End nodes that will not run, because of their trigger rule or a branch; return the ends of those that were free."""
    causes = {run.nodes[name].instance_id: cause for run in decided for name, cause in run.decision.skipped}
    if not causes:
        return {}
    rows = await instances.cancel_live(connection, sorted(causes), CancelReason.SKIPPED, running=False)
    ended = {row.id for row in rows}.union(
        *(run.map_ids([name for name, _ in run.decision.skipped]) for run in decided)
    )
    return {id_: NodeEnd(State.CANCELLED, causes[id_]) for id_ in ended}
