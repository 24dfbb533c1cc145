"""Workflow: the result of `app.workflow`, jobs with the order in which they run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from horai.core.errors import Invalid
from horai.core.job import checked
from horai.features.workflow import definition as workflow
from horai.features.workflow.definition import builtin_document, checked_nodes
from horai.features.workflow.service import WrittenWorkflow
from horai.operations import instances
from horai.operations.request_keys import Once
from horai.sdk.declaration import Options, fields_of, refuse_unknown
from horai.sdk.job_api import Home, Verbs
from horai.sdk.payloads import shape_of

NOT_FOR_WORKFLOWS = (
    *("name", "retry", "timeout", "isolation", "encrypted", "search_paths"),
    *("executor", "resources", "keep_history", "keep_dead_letters"),
)

Named = Verbs[Any] | str
"""A job, or the name of one that is declared elsewhere."""


@dataclass(frozen=True, slots=True)
class Node:
    """A job in a workflow. `after` lists the nodes before it: jobs, or names of nodes. `name` defaults to the job's."""

    job: Named
    after: Sequence[Named] = ()
    name: str | None = None
    payload: object = None


class Workflow:
    """Jobs that run in the order of a graph, all for one fire time."""

    def __init__(self, home: Home, name: str, nodes: Sequence[Node], options: Options) -> None:
        self.name = name
        self.written = _written(name, nodes, options)
        self._home = home

    def __repr__(self) -> str:
        return f"<Workflow {self.name!r}>"

    async def trigger(self, payload: object = None, *, idempotency_key: str | None = None) -> int:
        """Start a run now, once per key; return its id. The workflow must have been declared."""
        scope = (await self._home.client()).scope
        text = shape_of(Any).encode(payload)
        once = Once(idempotency_key or str(uuid4()), (text or "null").encode())
        return (await instances.trigger(scope, self.name, text, once)).id


def _written(name: str, nodes: Sequence[Node], options: Options) -> WrittenWorkflow:
    """Return the validated workflow. Raises `Invalid` with the workflow's name and the fault."""
    refuse_unknown("app.workflow", options)
    given: Mapping[str, Any] = options
    if strange := next((option for option in NOT_FOR_WORKFLOWS if given.get(option) is not None), None):
        raise Invalid.field(strange, f"is not for workflows: {name!r} has it")
    try:
        document = {"name": name, **fields_of(options)}
        checked(builtin_document(document))
        return WrittenWorkflow(document, _nodes(nodes), shape_of(Any).encode(options.get("payload")))
    except Invalid as error:
        raise Invalid(f"The workflow {name!r}: {error.detail}", error.hint, error.errors) from error


def _nodes(nodes: Sequence[Node]) -> tuple[workflow.WorkflowNode, ...]:
    documents = [
        {"name": node.name or _name(node.job), "job": _name(node.job), "after": [_name(each) for each in node.after]}
        for node in nodes
    ]
    return checked_nodes(documents, [_payload(node) for node in nodes])


def _name(job: Named) -> str:
    return job if isinstance(job, str) else job.name


def _payload(node: Node) -> str | None:
    shape = shape_of(Any) if isinstance(node.job, str) else node.job.declaration.signature.shape
    return shape.encode(node.payload)
