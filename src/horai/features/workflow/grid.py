"""The last runs of a workflow side by side: as a grid of runs and nodes, and one node over these runs."""

from collections.abc import Sequence
from dataclasses import dataclass

from horai.core.errors import NotFound
from horai.db.instance_lists import PageStart
from horai.features.workflow import graph as dag
from horai.features.workflow import grid_store, rerun_store
from horai.features.workflow.grid_store import NodeRun, NodeStates
from horai.features.workflow.rerun_store import RunRow
from horai.features.workflow.service import WorkflowRequest, require_workflow
from horai.operations.scope import Scope
from horai.text import Hint, Refused

GRID_RUNS = 50
"""The most runs of a grid. A workflow has at most 500 nodes, so a grid has at most 25,000 cells, and more only if nodes were renamed."""


@dataclass(frozen=True, slots=True)
class Grid:
    """The last runs of a workflow, newest first, and the nodes in the order of the graph; removed nodes are last."""

    runs: Sequence[RunRow]
    nodes: Sequence[NodeStates]


async def read_grid(scope: Scope, reference: str, limit: int) -> Grid:
    """Return the last `limit` runs of a workflow with the state of each node, by two statements."""
    async with scope.read() as connection:
        workflow = await require_workflow(connection, scope, reference)
        runs = await rerun_store.list_runs(connection, workflow.row.id, PageStart.of_all(upwards=False), limit)
        found = await grid_store.grid_nodes(connection, runs)
    return Grid(runs, in_order(workflow, found))


def in_order(workflow: WorkflowRequest, found: Sequence[NodeStates]) -> list[NodeStates]:
    """Return the nodes of the workflow in topological order, then by name those that it no longer has."""
    graph = {node.node.name: node.node.after for node in workflow.row.nodes}
    places = {name: place for place, name in enumerate(dag.ordered(graph))}
    none = NodeStates("", {}, {})
    by_name = dict.fromkeys(places, none) | {node.name: node for node in found}
    names = sorted(by_name, key=lambda name: (places.get(name, len(places)), name))
    return [NodeStates(name, by_name[name].states, by_name[name].maps) for name in names]


async def read_node_runs(scope: Scope, reference: str, name: str, limit: int) -> list[NodeRun]:
    """Return a node over the last runs of its workflow. Raises `NotFound` if neither the workflow nor one of them has it."""
    async with scope.read() as connection:
        workflow = await require_workflow(connection, scope, reference)
        found = await grid_store.node_runs(connection, workflow.row.id, name, limit)
    if not found and all(node.node.name != name for node in workflow.row.nodes):
        raise NotFound(
            Refused.NO_NODE_OF(workflow=workflow.row.name, node=name[:128]),
            Hint.LISTED_AT(path="/api/v1/workflows/{workflow}"),
        )
    return found
