"""Workflows as a kind of definitions: found, listed, and written from files and kept versions."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from horai.core.definitions import exact_json, patch_between, same_json, shown_document
from horai.core.job import checked, document_of, with_instants
from horai.core.job_patch import NESTED
from horai.features.workflow import service as workflows
from horai.features.workflow.definition import WorkflowNode, WrittenWorkflow, builtin_document, checked_nodes
from horai.features.workflow.node_payloads import node_payloads
from horai.features.workflow.params import checked_params
from horai.features.workflow.sealed_nodes import opened_nodes
from horai.features.workflow.service import WorkflowChange, WorkflowRequest
from horai.features.workflow.stored_definition import NOT_OF_A_WORKFLOW, stored_definition
from horai.features.workflow.wire import WorkflowIn
from horai.operations.definitions import DefinitionKind, WrittenDefinition
from horai.operations.scope import Scope
from horai.operations.versions import StoredDefinition


async def _find(scope: Scope, reference: str) -> StoredDefinition | None:
    async with scope.read() as connection:
        found = await workflows.find(connection, scope, reference)
    return None if found is None else stored_definition(found.row, found.job)


async def _page(scope: Scope, after: int, limit: int) -> list[StoredDefinition]:
    found = await workflows.list_workflows(scope, after, limit)
    return [stored_definition(each.row, each.job) for each in found]


async def _put(scope: Scope, written: WrittenDefinition, known: StoredDefinition | None) -> None:
    document = {name: value for name, value in written.document.items() if value is not None}
    params = None if (schema := document.pop("params", None)) is None else json.dumps(checked_params(schema))
    nodes = checked_nodes(document.pop("nodes"), node_payloads(written.text))
    if known is None:
        await workflows.create_workflow(scope, WrittenWorkflow(document, nodes, written.payload, params))
        return
    async with scope.read() as connection:
        found = await workflows.require_workflow(connection, scope, str(known.id))
        opened = await opened_nodes(connection, scope, found.row)
    nodes = _with_sealed(nodes, WorkflowRequest(opened, found.job))
    fields = _fields(found, document)
    has_nodes = nodes != tuple(row.node for row in opened.nodes)
    sets_payload = not same_json(found.job.payload, written.payload)
    sets_params = not same_json(found.row.params, params)
    if fields or has_nodes or sets_payload or sets_params:
        change = WorkflowChange(
            fields,
            nodes if has_nodes else None,
            written.payload,
            sets_payload,
            known.version,
            params,
            sets_params,
        )
        await workflows.change_workflow(scope, str(known.id), change)


def _fields(found: WorkflowRequest, document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of the schedule in which a written workflow differs from the stored one."""
    written = builtin_document(document)
    wanted = document_of(checked(with_instants(written)), written)
    fields = patch_between(shown_document(found.job.document), shown_document(wanted), NESTED)
    fields = {name: value for name, value in fields.items() if name not in NOT_OF_A_WORKFLOW}
    has_status = document.get("status") not in {None, found.job.status.name}
    return {**fields, "status": document["status"]} if has_status else fields


def _with_sealed(nodes: Sequence[WorkflowNode], known: WorkflowRequest) -> tuple[WorkflowNode, ...]:
    """Return the written nodes with the stored payloads of encrypted jobs, which no file has, and equal payloads as stored."""
    rows = {row.node.name: row for row in known.row.nodes}
    return tuple(
        _like(node, rows[node.name].node, rows[node.name].is_sealed) if node.name in rows else node for node in nodes
    )


def _like(node: WorkflowNode, stored: WorkflowNode, is_sealed: bool) -> WorkflowNode:
    keeps = is_sealed and node.payload is None and node.job == stored.job
    is_same = exact_json(node.payload or "null") == exact_json(stored.payload or "null")
    return replace(node, payload=stored.payload) if keeps or is_same else node


KIND = DefinitionKind("workflow", WorkflowIn, _find, _page, _put, workflows.not_found)
