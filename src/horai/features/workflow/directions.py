"""Directions of nodes to their runs: a node that skipped itself, and a node that chose among the nodes after it.

A direction is the result of an instance that has succeeded (core/node_results.py). The decision that records the end of
the node reads it once; the recorded end never changes.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

from horai.core.node_results import ChosenNodes, SkippedNode, direction_in
from horai.core.states import State
from horai.db.pool import AnyWrite
from horai.features.workflow.graph import children_of
from horai.features.workflow.run_store import HeldRun, RunNode, Seen
from horai.features.workflow.sealed_nodes import NodeValue, WaitsForKey, opened_result
from horai.features.workflow.trigger_rules import CHOICE_UNKNOWN, NodeCause
from horai.operations.keyring import Keyring

NOT_READ = Seen(State.RUNNING)
"""A node that has ended, and whose result this process cannot read: the run waits for a process with the key."""


async def with_directions(
    connection: AnyWrite, keyring: Keyring, held: Sequence[HeldRun], nodes: Sequence[RunNode], seen: Mapping[int, Seen]
) -> tuple[list[RunNode], dict[int, Seen]]:
    """Return the nodes and the states of their instances as the results of newly ended nodes direct."""
    tenants = {run.id: run.tenant_id for run in held}
    graphs: dict[int, dict[str, tuple[str, ...]]] = defaultdict(dict)
    for node in nodes:
        graphs[node.run_id][node.name] = node.after
    found, states = list[RunNode](), dict(seen)
    for node in nodes:
        there, directed = seen[node.instance_id], node
        if node.ended is None and there.result is not None:
            try:
                value = NodeValue(there.result, node.sealed_for)
                text = await opened_result(connection, keyring, tenants[node.run_id], value)
                directed, states[node.instance_id] = _directed(node, graphs[node.run_id], text, there)
            except WaitsForKey:
                states[node.instance_id] = NOT_READ
        found.append(directed)
    return found, states


def _directed(
    node: RunNode, graph: Mapping[str, tuple[str, ...]], result: str | None, there: Seen
) -> tuple[RunNode, Seen]:
    """Return the node and its state, by the result of its instance."""
    match direction_in(result):
        case SkippedNode():
            return replace(node, cause=NodeCause.ITSELF), Seen(State.CANCELLED)
        case ChosenNodes(nodes=chosen):
            if chosen is None or not children_of(graph, node.name).issuperset(chosen):
                return replace(node, cause=NodeCause.CHOICE_UNKNOWN), Seen(State.DEAD, CHOICE_UNKNOWN)
            return replace(node, chosen=tuple(dict.fromkeys(chosen))), there
        case None:
            return node, there
