"""Workflows that an application's code declares, applied when it starts, after its jobs.

As with jobs, the code says what a workflow is and an operator whether it runs; a start that finds everything as the code
says writes nothing.
"""

import json
from collections.abc import Sequence

from horai.accept import workflows
from horai.accept.declarations import Applied
from horai.accept.scope import Scope
from horai.accept.workflows import Workflow, WrittenWorkflow
from horai.core.definition import checked, document_of
from horai.core.errors import Duplicate, NotFound
from horai.core.workflow import house_document
from horai.db.pool import retrying

TRIES = 5


async def declare_workflows(scope: Scope, declared: Sequence[WrittenWorkflow]) -> Applied:
    """Makes the workflows what the code says; whether one is paused is the operator's. Another one's is not touched."""
    fates: dict[str, list[str]] = {"created": [], "changed": [], "unchanged": []}
    for written in sorted(declared, key=_name):
        fates[await _apply(scope, written)].append(_name(written))
    return Applied(tuple(fates["created"]), tuple(fates["changed"]), tuple(fates["unchanged"]))


def _name(written: WrittenWorkflow) -> str:
    return str(written.document["name"])


async def _apply(scope: Scope, written: WrittenWorkflow) -> str:
    """Whoever comes second finds it as it should be, and writes nothing."""
    for left in reversed(range(TRIES)):
        try:
            there = await workflows.read_workflow(scope, _name(written))
        except NotFound:
            there = None
        if there is not None and _is_as_written(there, written):
            return "unchanged"
        try:
            if there is None:
                await retrying(lambda: workflows.create_workflow(scope, written))
                return "created"
            await retrying(lambda: workflows.replace_workflow(scope, _name(written), written))
        except (Duplicate, NotFound):  # another process was quicker: now there is something else to compare with
            if left == 0:
                raise
            continue
        return "changed"
    raise AssertionError("there is at least one try")


def _is_as_written(there: Workflow, written: WrittenWorkflow) -> bool:
    document = house_document(written.document)
    stored = json.loads(json.dumps(document_of(checked(document), document)))
    nodes = tuple(row.node for row in there.row.nodes)
    return there.job.document == stored and there.job.payload == written.payload and nodes == written.nodes
