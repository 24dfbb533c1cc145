"""Release nodes whose trigger rules are met: with the results of their parents, and with the deadlines of sensors."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from horai.core.limits import RESULT_LIMIT
from horai.core.node_results import own_result
from horai.core.states import State
from horai.db.claims import Claimable
from horai.db.pool import AnyWrite
from horai.features.workflow import run_store
from horai.features.workflow.child_settings import with_child_results
from horai.features.workflow.child_store import child_results
from horai.features.workflow.composed import is_template
from horai.features.workflow.graph import Decision, Graph
from horai.features.workflow.map_store import map_results
from horai.features.workflow.maps import MapDecisions
from horai.features.workflow.run_store import (
    HeldRun,
    RunNode,
    Unblock,
)
from horai.features.workflow.sealed_nodes import (
    SEALED_RESULT_LIMIT,
    NodeValue,
    WaitsForKey,
    handed_over,
    opened_result,
)
from horai.features.workflow.trigger_rules import RunFacts
from horai.operations.keyring import Keyring


@dataclass(frozen=True, slots=True)
class DecidedRun:
    """A run, its current nodes, and the decision on it."""

    held: HeldRun
    nodes: Mapping[str, RunNode]
    states: Mapping[str, State]
    graph: Graph
    decision: Decision
    facts: RunFacts

    def ids(self, names: Collection[str]) -> list[int]:
        """Return the ids of the instances of nodes."""
        return [self.nodes[name].instance_id for name in names]

    def map_names(self, names: Collection[str]) -> list[str]:
        """Return those of the nodes that are maps."""
        return [name for name in names if self.nodes[name].map is not None]

    def map_ids(self, names: Collection[str]) -> list[int]:
        """Return the reserved ids of those of the nodes that are maps."""
        return self.ids(self.map_names(names))


@dataclass(slots=True)
class ReleasedNodes:
    """The nodes that were released, and the runs of which a node waits for an encryption key."""

    woken: list[Claimable] = field(default_factory=list[Claimable])
    without_key: set[int] = field(default_factory=set[int])
    has_deadlines: bool = False


async def release_nodes(
    connection: AnyWrite, keyring: Keyring, decided: Sequence[DecidedRun], since: datetime, maps: MapDecisions
) -> ReleasedNodes:
    """Release the nodes whose trigger rules are met, with the results of their parents."""
    released = ReleasedNodes()
    ready = [(run, name) for run in decided for name in run.decision.released if run.nodes[name].map is None]
    for run in decided:
        for name in run.map_names(run.decision.released):
            try:
                await maps.start(run.held, run.nodes[name], [*run.nodes.values()], run.states)
            except WaitsForKey:
                released.without_key.add(run.held.id)
    if not ready:
        return released
    parents = {run.nodes[parent] for run, name in ready for parent in run.graph[name]}
    results = await _results(connection, parents, since)
    taking = {run.nodes[name].instance_id for run, name in ready if run.graph[name]}
    payloads = await run_store.blocked_payloads(connection, sorted(taking)) if taking else {}
    wishes: list[Unblock] = []
    for run, name in ready:
        node, payload = run.nodes[name], None
        has_results = not results.keys().isdisjoint(run.ids(run.graph[name]))
        if node.instance_id in payloads and (has_results or is_template(payloads[node.instance_id])):
            given = {
                parent: NodeValue(results.get(run.nodes[parent].instance_id), run.nodes[parent].sealed_for)
                for parent in run.graph[name]
            }
            own = NodeValue(payloads[node.instance_id], node.sealed_for)
            try:
                payload = await (
                    handed_over(connection, keyring, run.held.tenant_id, own, given)
                    if node.child is None
                    else _child_payload(connection, keyring, run.held.tenant_id, node, own, given)
                )
            except WaitsForKey:
                released.without_key.add(run.held.id)
                continue
        wishes.append(Unblock(node.instance_id, run.held.id, payload, node.sensor.deadline if node.sensor else None))
    released.woken = await run_store.unblock(connection, wishes) if wishes else []
    released.has_deadlines = any(wish.lasts is not None for wish in wishes)
    return released


async def _results(connection: AnyWrite, parents: Collection[RunNode], since: datetime) -> dict[int, str]:
    """Return the results of parents that may be small enough to pass on. An envelope is longer than its value."""
    limit = SEALED_RESULT_LIMIT if any(parent.sealed_for is not None for parent in parents) else RESULT_LIMIT
    maps = {parent.instance_id for parent in parents if parent.map is not None}
    children = {parent.instance_id for parent in parents if parent.child is not None}
    plain = {parent.instance_id for parent in parents} - maps - children
    found = await run_store.results_of(connection, plain, since, limit) | await map_results(connection, maps)
    return found | await child_results(connection, children)


async def _child_payload(
    connection: AnyWrite,
    keyring: Keyring,
    tenant_id: int,
    node: RunNode,
    own: NodeValue,
    given: Mapping[str, NodeValue],
) -> str | None:
    """Return the payload of the run that a node starts, with the results that it takes. Raises `WaitsForKey`."""
    assert node.child is not None  # noqa: S101 — the caller checked it
    results = {
        name: own_result(await opened_result(connection, keyring, tenant_id, given[name]))
        for name in node.child.results_of
        if name in given
    }
    return with_child_results(node.child, own.text, results)
