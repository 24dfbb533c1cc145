"""Workflow: the result of `app.workflow`, jobs with the order in which they run."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal, TypeAlias

from horai.core.errors import Invalid
from horai.core.job import checked
from horai.features.workflow import definition as workflow
from horai.features.workflow.definition import WrittenWorkflow, builtin_document, checked_nodes
from horai.features.workflow.params import checked_params
from horai.sdk.declaration import AssetNames, Options, Retry, asset_names, fields_of, refuse_unknown, retry_fields
from horai.sdk.deferred import runtime
from horai.sdk.job_api import Home, Verbs
from horai.sdk.outcomes import seconds_of
from horai.sdk.payloads import Shape, shape_of
from horai.sdk.workflow_api import WorkflowVerbs
from horai.time.durations import format_duration

NOT_FOR_WORKFLOWS = (
    *("name", "retry", "timeout", "isolation", "encrypted", "search_paths"),
    *("executor", "resources", "keep_history", "keep_dead_letters", "concurrency_per_key"),
)

Params: TypeAlias = type[Any] | Mapping[str, Any]
"""The parameters of a run: a type (dataclass, msgspec Struct, pydantic model), or a JSON Schema."""

Named = Verbs[..., Any] | str
"""A job, or the name of one that is declared elsewhere."""


TriggerRuleName: TypeAlias = Literal["all_success", "all_done", "one_failed", "none_failed"]


@dataclass(frozen=True, slots=True)
class Map:
    """Run the job of a node once for each item of a list that is known at run time.

    The list is the result of the node `over`: a job, or the name of a node; the results of all items, if that node is a map
    itself. `over_payload` is a member of the payload of the run instead; an empty text is the payload itself. An item is
    the payload of its call. At most `max_concurrency` items are under way at a time. `allow_failures` may fail: a number
    of items, a percentage such as "10%", or "all"; their results are None. With `flatten` the list is one of lists, and
    the items are their elements.
    """

    over: Named | None = None
    over_payload: str | None = None
    max_concurrency: int | None = None
    allow_failures: int | str = 0
    flatten: bool = False


@dataclass(frozen=True, slots=True)
class Sensor:
    """Run the job of a node again and again until its condition is met: until it returns instead of raising `NotReady`.

    It is asked again after `every` (1 s to 1 day); meanwhile it holds no slot, and no retry is used up. At the `deadline`, counted
    from the start of the node, the node is dead (`on_deadline="fail"`) or skipped (`"skip"`).
    """

    every: str | float | timedelta
    deadline: str | float | timedelta
    on_deadline: Literal["fail", "skip"] = "fail"


@dataclass(frozen=True, slots=True)
class Param:
    """A parameter of the run of an inner workflow that is known when the node starts: exactly one of the two.

    `payload` is a member of the payload of the run, `result_of` the node whose result it is: a job or workflow, or the name
    of a node. A parameter without such a member or result is left out, so that its default counts.
    """

    payload: str | None = None
    result_of: "Named | Workflow | None" = None


@dataclass(frozen=True, slots=True)
class Node:
    """A job in a workflow. `after` lists the nodes before it: jobs, or names of nodes. `name` defaults to the job's.

    `workflow` instead of a job starts a run of that workflow, with the payload `params` (literals or `Param`), and waits for
    its end; `sensor` runs the job until a condition is met. Without `params` the run gets the payload of this one. `retry` says when a failed run is followed by another one.

    `trigger_rule` says when it starts: `all_success` if all nodes before it succeeded, `all_done` when all have ended,
    `one_failed` when one has failed, `none_failed` if each succeeded or was skipped. `retry` replaces the retry policy of
    the job in runs of this workflow. `map` runs the job once for each item of a list. Its success updates the assets in
    `produces`.
    """

    job: Named | None = None
    after: "Sequence[Named | Workflow]" = ()
    name: str | None = None
    payload: object = None
    trigger_rule: TriggerRuleName = "all_success"
    retry: Retry | int | None = None
    map: Map | None = None
    produces: AssetNames = ()
    workflow: "Workflow | str | None" = None
    params: Mapping[str, object] | None = None
    sensor: Sensor | None = None


class Workflow(WorkflowVerbs):
    """Jobs that run in the order of a graph, all for one fire time."""

    def __init__(
        self, home: Home, name: str, nodes: Sequence[Node], options: Options, params: Params | None = None
    ) -> None:
        shape = _params_shape(name, params)
        self.written = _written(name, nodes, options, shape, params)
        results = {
            node.name or node.job.name: node.job.declaration.result
            for node in nodes
            if node.job is not None and not isinstance(node.job, str)
        }
        super().__init__(home, name, shape, results)

    def __repr__(self) -> str:
        return f"<Workflow {self.name!r}>"

    @property
    def sync(self) -> "runtime.SyncWorkflow":
        """The same methods without `await`."""
        return runtime.SyncWorkflow(self)


def _params_shape(name: str, params: Params | None) -> Shape[Any]:
    """Return the shape of the payload of a run: that of a type, or any if a JSON Schema or nothing is given."""
    if params is None or isinstance(params, Mapping):
        return shape_of(Any)
    shape = shape_of(params, "params")
    if not shape.schema:
        raise Invalid.field("params", f"the workflow {name!r} needs a type that can be described", "Use a dataclass.")
    return shape_of(params)


def _params_text(shape: Shape[Any], params: Params | None) -> str | None:
    schema = params if isinstance(params, Mapping) else shape.schema
    return None if params is None else json.dumps(checked_params(schema))


def _written(
    name: str, nodes: Sequence[Node], options: Options, shape: Shape[Any], params: Params | None
) -> WrittenWorkflow:
    """Return the validated workflow. Raises `Invalid` with the workflow's name and the fault."""
    refuse_unknown("app.workflow", options)
    given: Mapping[str, Any] = options
    if strange := next((option for option in NOT_FOR_WORKFLOWS if given.get(option) is not None), None):
        raise Invalid.field(strange, f"is not for workflows: {name!r} has it")
    try:
        document = {"name": name, **fields_of(options)}
        checked(builtin_document(document))
        text, payload = _params_text(shape, params), shape.encode(options.get("payload"))
        return WrittenWorkflow(document, _nodes(nodes), payload, text)
    except Invalid as error:
        raise Invalid(f"The workflow {name!r}: {error.detail}", error.hint, error.errors) from error


def _nodes(nodes: Sequence[Node]) -> tuple[workflow.WorkflowNode, ...]:
    documents = [
        {
            "name": node.name or _name(_runs(number, node)),
            "job": None if node.job is None else _name(node.job),
            "workflow": None if node.workflow is None else _name(node.workflow),
            "params": None if node.params is None else {name: _source(each) for name, each in node.params.items()},
            "after": [_name(each) for each in node.after],
            "triggerRule": node.trigger_rule,
            "retry": None if node.retry is None else retry_fields(node.retry),
            "map": None if node.map is None else _map_fields(node.map),
            "sensor": None if node.sensor is None else _sensor_fields(node.sensor),
            "produces": asset_names("produces", node.produces) or None,
        }
        for number, node in enumerate(nodes)
    ]
    return checked_nodes(documents, [_payload(node) for node in nodes])


def _runs(number: int, node: Node) -> "Named | Workflow":
    """Return the job or the workflow of a node. Raises `Invalid` unless it has exactly one of them."""
    runs = node.workflow if node.job is None else node.job
    if runs is None or (node.job is not None and node.workflow is not None):
        raise Invalid.field(
            f"nodes.{number}", "needs either a job or a workflow", "Write Node(job) or Node(workflow=…)."
        )
    return runs


def _source(given: object) -> object:
    """Return a parameter as in REST."""
    if not isinstance(given, Param):
        return {"value": given}
    sources = {
        "payload": given.payload,
        "resultOf": None if given.result_of is None else _name(given.result_of),
    }
    return {name: value for name, value in sources.items() if value is not None}


def _sensor_fields(given: Sensor) -> dict[str, Any]:
    return {
        "every": format_duration(seconds_of(given.every)),
        "deadline": format_duration(seconds_of(given.deadline)),
        "onDeadline": given.on_deadline,
    }


def _map_fields(given: Map) -> dict[str, Any]:
    return {
        "over": None if given.over is None else _name(given.over),
        "overPayload": given.over_payload,
        "maxConcurrency": given.max_concurrency,
        "allowFailures": given.allow_failures,
        "flatten": given.flatten,
    }


def _name(job: "Named | Workflow") -> str:
    return job if isinstance(job, str) else job.name


def _payload(node: Node) -> str | None:
    job = node.job
    shape = shape_of(Any) if job is None or isinstance(job, str) else job.declaration.signature.shape
    return shape.encode(node.payload)
