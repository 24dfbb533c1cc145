"""A checked workflow definition, built from the JSON document of the user.

The schedule of a workflow belongs to a job of its own, whose target is Horai itself; `builtin_document` returns the
definition of that job.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from horai.core.assets import PRODUCES, checked_names
from horai.core.job import NAME, read_retry
from horai.core.retry import RetryPolicy
from horai.core.validation import Validation
from horai.features.workflow import graph
from horai.features.workflow.child_settings import ChildSettings, read_params
from horai.features.workflow.graph import EDGES_LIMIT, NODES_LIMIT, Graph
from horai.features.workflow.map_settings import MapSettings, read_map
from horai.features.workflow.sensor_settings import SensorSettings, read_sensor
from horai.features.workflow.trigger_rules import RULE_NAMES, TriggerRule
from horai.text import Hint, Wrong, mismatch

WORKFLOW_HANDLER = "horai:workflow"
"""The target of the job that starts the runs of a workflow."""

_SHOWN = 6
"""The number of nodes of a cycle that an error names."""


@dataclass(frozen=True, slots=True)
class WorkflowNode:
    """A valid node: it runs `job` (a name or an id) once the nodes in `after` have ended as its `rule` says."""

    name: str
    job: str
    after: tuple[str, ...] = ()
    payload: str | None = None
    """JSON text; None to use the payload of the run, or that of the job if the run has none."""
    rule: TriggerRule = TriggerRule.ALL_SUCCESS
    retry: RetryPolicy | None = None
    """The retry policy of its instances; None for that of the job."""
    map: MapSettings | None = None
    """Runs the job once for each item of a list; None for once. The node that it goes over is in `after`."""
    produces: tuple[str, ...] = ()
    """The assets that its success updates."""
    sensor: SensorSettings | None = None
    """Runs the job again and again until its condition is met; None for once."""
    child: ChildSettings | None = None
    """Starts a run of the workflow `job` instead, and waits for it. The nodes whose results the run gets are in `after`."""


@dataclass(frozen=True, slots=True)
class WrittenWorkflow:
    """A workflow as the user wrote it: the document without its nodes, those checked, and the payload as JSON text.

    `params` is the checked JSON Schema of the payload of a run, as JSON text.
    """

    document: Mapping[str, Any]
    nodes: tuple[WorkflowNode, ...]
    payload: str | None
    params: str | None = None


def checked_nodes(written: Sequence[Mapping[str, Any]], payloads: Sequence[str | None]) -> tuple[WorkflowNode, ...]:
    """Return the nodes of a document. Raises `Invalid` that names every invalid node, or a cycle among valid ones."""
    faults = Validation()
    nodes = tuple(
        _node(node, payload, f"nodes.{number}", faults)
        for number, (node, payload) in enumerate(zip(written, payloads, strict=True))
    )
    _check_rules(written, faults)
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


def _node(written: Mapping[str, Any], payload: str | None, field: str, faults: Validation) -> WorkflowNode:
    name = str(written.get("name") or "")
    rule = RULE_NAMES.get(str(written.get("triggerRule")), TriggerRule.ALL_SUCCESS)
    retry = None if (given := written.get("retry")) is None else read_retry(given, faults, f"{field}.retry")
    mapped = None if (given := written.get("map")) is None else read_map(given, faults, f"{field}.map")
    if mapped is not None and payload is not None:
        faults.add(f"{field}.payload", Wrong.MAP_PAYLOAD())
    child = _child(written, payload, field, faults)
    job = str(written.get("workflow" if child else "job") or name)
    given_results = () if child is None else child.results_of
    after = tuple(dict.fromkeys([*(written.get("after") or ()), *parents_of_map(mapped), *given_results]))
    produces = checked_names(written.get(PRODUCES), f"{field}.{PRODUCES}", faults)
    sensor = None if (given := written.get("sensor")) is None else read_sensor(given, faults, f"{field}.sensor")
    if sensor is not None and (mapped is not None or child is not None):
        faults.add(f"{field}.sensor", Wrong.SENSOR_OF_JOB(), Hint.SPLIT_SENSOR())
    return WorkflowNode(name, job, after, payload, rule, retry, mapped, produces, sensor, child)


def _child(written: Mapping[str, Any], payload: str | None, field: str, faults: Validation) -> ChildSettings | None:
    """Return the settings of a node that starts a run of another workflow; None for an ordinary node."""
    if written.get("workflow") is None:
        if written.get("params") is not None:
            faults.add(f"{field}.params", Wrong.PARAMS_WITHOUT_WORKFLOW())
        return None
    for name in ("job", "map"):
        if written.get(name) is not None:
            faults.add(f"{field}.{name}", Wrong.NOT_WITH_WORKFLOW())
    if payload is not None:
        faults.add(f"{field}.payload", Wrong.NOT_WITH_WORKFLOW(), Hint.WRITE_PARAM())
    return read_params(written.get("params"), faults, f"{field}.params")


def parents_of_map(mapped: MapSettings | None) -> tuple[str, ...]:
    """Return the node that a map goes over: it is before the map, also if `after` does not say so."""
    return () if mapped is None or mapped.over is None else (mapped.over,)


def _check_rules(written: Sequence[Mapping[str, Any]], faults: Validation) -> None:
    for number, node in enumerate(written):
        if (given := node.get("triggerRule")) is None:
            continue
        if str(given) not in RULE_NAMES:
            known = Hint.THERE_ARE(names=", ".join(rule.rest_name for rule in TriggerRule))
            faults.add(f"nodes.{number}.triggerRule", Wrong.NO_TRIGGER_RULE(value=str(given)[:40]), known)
        elif RULE_NAMES[str(given)] is not TriggerRule.ALL_SUCCESS and not _has_parents(node):
            faults.add(f"nodes.{number}.triggerRule", Wrong.RULE_WITHOUT_PARENTS())


def _has_parents(node: Mapping[str, Any]) -> bool:
    mapped: Mapping[str, Any] = node.get("map") or {}
    params: Mapping[str, Any] = node.get("params") or {}
    takes_result = any(isinstance(source, Mapping) and "resultOf" in source for source in params.values())
    return bool(node.get("after") or mapped.get("over") or takes_result)


def _check_names(nodes: Sequence[WorkflowNode], faults: Validation) -> None:
    times = Counter(node.name for node in nodes)
    for number, node in enumerate(nodes):
        if not NAME.fullmatch(node.name):
            faults.add(f"nodes.{number}.name", mismatch(node.name, NAME))
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
    kept = {
        name: value
        for name, value in document.items()
        if name not in {"nodes", "payload", "params"} and value is not None
    }
    return {**kept, "target": {"type": "worker", "handler": WORKFLOW_HANDLER}}
