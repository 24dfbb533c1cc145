"""The definition of a workflow as files and kept versions have it."""

import json
from typing import Any

import msgspec

from horai.core.definitions import shown_document
from horai.core.job import retry_document
from horai.db.jobs import JobRow
from horai.features.workflow.store import NodeRow, WorkflowRow
from horai.operations.versions import StoredDefinition, definition_text

NOT_OF_A_WORKFLOW = frozenset({"target", "retry", "timeout", "at", "delay", "encrypted", "searchPaths"})
"""Fields of a job that the job of a workflow has, and a workflow has not."""


def stored_definition(row: WorkflowRow, job: JobRow) -> StoredDefinition:
    """Return the definition of a workflow. The payloads of nodes whose jobs are encrypted are left out."""
    schedule = {name: value for name, value in shown_document(job.document).items() if name not in NOT_OF_A_WORKFLOW}
    params = {} if row.params is None else {"params": json.loads(row.params)}
    payload = {} if job.payload is None else {"payload": msgspec.Raw(job.payload.encode())}
    text = definition_text({**schedule, "nodes": [_node(each) for each in row.nodes], **params, **payload})
    updated_at = max(row.updated_at, job.updated_at)
    return StoredDefinition("workflow", row.id, row.name, row.version, updated_at, job.document.get("declaredBy"), text)


def _node(row: NodeRow) -> dict[str, Any]:
    node = row.node
    shown: dict[str, Any] = {"name": node.name, "job" if node.child is None else "workflow": node.job}
    shown |= {} if node.child is None else node.child.document
    shown |= {"after": list(node.after)} if node.after else {}
    shown |= {"triggerRule": node.rule.rest_name} if node.rule else {}
    shown |= {"retry": retry_document(node.retry)} if node.retry else {}
    shown |= {"sensor": node.sensor.document} if node.sensor else {}
    shown |= {"map": node.map.document} if node.map else {}
    shown |= {"produces": list(node.produces)} if node.produces else {}
    has_payload = node.payload is not None and not row.is_sealed
    return {**shown, "payload": msgspec.Raw((node.payload or "").encode())} if has_payload else shown
