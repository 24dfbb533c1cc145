"""A checked workflow definition, built from the JSON document of the user.

The schedule of a workflow belongs to a job of its own, whose target is Horai itself; `builtin_document` returns the
definition of that job.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from horai.core.job import NAME
from horai.core.validation import Validation
from horai.features.workflow import graph
from horai.features.workflow.graph import EDGES_LIMIT, NODES_LIMIT, Graph
from horai.text import Hint, Wrong

WORKFLOW_HANDLER = "horai:workflow"
"""The target of the job that starts the runs of a workflow."""

_SHOWN = 6
"""The number of nodes of a cycle that an error names."""


@dataclass(frozen=True, slots=True)
class WorkflowNode:
    """A valid node: it runs `job` (a name or an id) once all nodes in `after` have succeeded."""

    name: str
    job: str
    after: tuple[str, ...] = ()
    payload: str | None = None
    """JSON text; None to use the payload of the run, or that of the job if the run has none."""


def checked_nodes(written: Sequence[Mapping[str, Any]], payloads: Sequence[str | None]) -> tuple[WorkflowNode, ...]:
    """Return the nodes of a document. Raises `Invalid` that names every invalid node, or a cycle among valid ones."""
    faults = Validation()
    nodes = tuple(_node(node, payload) for node, payload in zip(written, payloads, strict=True))
    if not 1 <= len(nodes) <= NODES_LIMIT:
        faults.add("nodes", Wrong.NODE_COUNT(most=NODES_LIMIT))
    if sum(len(node.after) for node in nodes) > EDGES_LIMIT:
        faults.add("nodes", Wrong.EDGE_COUNT(most=EDGES_LIMIT))
    _check_names(nodes, faults)
    faults.raise_if_any()
    if (cycle := graph.cycle_in(graph_of(nodes))) is not None:
        faults.add("nodes", Wrong.CIRCLE(circle=_circle(cycle)), Hint.BREAK_CIRCLE())
    faults.raise_if_any()
    return nodes


def _node(written: Mapping[str, Any], payload: str | None) -> WorkflowNode:
    name = str(written.get("name") or "")
    return WorkflowNode(
        name, str(written.get("job") or name), tuple(dict.fromkeys(written.get("after") or ())), payload
    )


def _check_names(nodes: Sequence[WorkflowNode], faults: Validation) -> None:
    times = Counter(node.name for node in nodes)
    for number, node in enumerate(nodes):
        if not NAME.fullmatch(node.name):
            faults.add(f"nodes.{number}.name", Wrong.NO_MATCH(value=node.name[:40], pattern=NAME.pattern))
        elif times[node.name] > 1:
            faults.add(f"nodes.{number}.name", Wrong.NODE_TWICE(name=node.name))
        for parent in node.after:
            if parent not in times:
                faults.add(f"nodes.{number}.after", Wrong.NO_NODE(name=parent[:40]), Hint.THERE_ARE(names=_few(times)))


def graph_of(nodes: Sequence[WorkflowNode]) -> Graph:
    """Return the parents of each node."""
    return {node.name: node.after for node in nodes}


def _few(names: Mapping[str, int]) -> str:
    shown = [name[:40] for name in names][:_SHOWN]
    return ", ".join([*shown, *(["…"] if len(names) > len(shown) else [])])


def _circle(cycle: Sequence[str]) -> str:
    names = list(cycle)
    if len(names) > _SHOWN + 1:
        names = [*names[:_SHOWN], "…", names[-1]]
    return " → ".join(names)


def builtin_document(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the definition of the job that starts the runs of a workflow: its name, its schedule, its queue."""
    kept = {name: value for name, value in document.items() if name not in {"nodes", "payload"} and value is not None}
    return {**kept, "target": {"type": "worker", "handler": WORKFLOW_HANDLER}}
