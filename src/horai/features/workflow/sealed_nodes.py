"""Values of encrypted jobs in workflows: sealed for the job that reads them, and sealed again where they cross jobs.

The payload of a node is sealed when the workflow is defined. The payload of a run, which belongs to the workflow, is sealed for
each encrypted node when the run starts. The results of parents are opened, and the payload of their child is sealed with
them, when the child is released: in the process, since PostgreSQL has no key.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import structlog

from horai.core.encryption import EnvelopeBroken
from horai.core.errors import Conflict, KeyUnavailable
from horai.core.limits import RESULT_LIMIT
from horai.core.node_results import own_result
from horai.core.sealed_values import SealedColumn
from horai.core.stored_text import TRUNCATED
from horai.db.pool import AnyWrite, TenantRead
from horai.features.workflow.payload import with_results
from horai.features.workflow.rerun_store import NodeNow
from horai.features.workflow.store import NodeRow, WorkflowRow
from horai.operations.keyring import Keyring
from horai.operations.readable_values import ValueReader
from horai.operations.scope import Scope
from horai.operations.sealed_values import (
    SealedJob,
    SealedText,
    load_keys,
    open_loaded,
    opened_or_none,
    seal_text,
)

log = structlog.get_logger(__name__)

SEALED_RESULT_LIMIT = 2 * RESULT_LIMIT
"""The largest envelope of a result that is small enough to pass on, in bytes."""


class NodeValue(NamedTuple):
    """A stored value of a node, and the name of its job if the job is encrypted."""

    text: str | None
    sealed_for: str | None


class WaitsForKey(Exception):
    """The values of a node cannot be opened or sealed in this process: the node stays BLOCKED."""


async def seal_nodes(connection: AnyWrite, keyring: Keyring, tenant_id: int, nodes: Sequence[NodeRow]) -> list[NodeRow]:
    """Return nodes with the payloads of encrypted jobs sealed. Raises `Conflict` if this process has no key."""
    return [
        replace(row, node=replace(row.node, payload=await _sealed(connection, keyring, tenant_id, row)))
        if row.is_sealed
        else row
        for row in nodes
    ]


async def _sealed(connection: AnyWrite, keyring: Keyring, tenant_id: int, row: NodeRow) -> str | None:
    job = SealedJob(tenant_id, row.node.job)
    return await seal_text(connection, keyring, job, SealedColumn.PAYLOAD, row.node.payload)


async def with_payload_of_run(
    connection: AnyWrite, keyring: Keyring, workflow: WorkflowRow, payload: str | None
) -> Sequence[NodeRow]:
    """Return the nodes of a new run: encrypted ones without a payload of their own get that of the run, sealed."""
    if payload is None or not any(_takes_payload(row) for row in workflow.nodes):
        return workflow.nodes
    given = [
        replace(row, node=replace(row.node, payload=payload)) if _takes_payload(row) else row for row in workflow.nodes
    ]
    fresh = [row for row, before in zip(given, workflow.nodes, strict=True) if row is not before]
    sealed = iter(await seal_nodes(connection, keyring, workflow.tenant_id, fresh))
    return [next(sealed) if row is not before else row for row, before in zip(given, workflow.nodes, strict=True)]


def _takes_payload(row: NodeRow) -> bool:
    """Return whether a node needs the payload of the run sealed. The items of a map are sealed when they are made."""
    return row.is_sealed and row.node.payload is None and row.node.map is None


async def handed_over(
    connection: AnyWrite, keyring: Keyring, tenant_id: int, child: NodeValue, results: Mapping[str, NodeValue]
) -> str | None:
    """Return the payload of a node with the results of its parents, as it is stored.

    A result that was changed counts as none. Raises `WaitsForKey` if a key is missing.
    """
    try:
        stored = await _opened_results(connection, keyring, tenant_id, results)
        opened = {parent: own_result(text) for parent, text in stored.items()}
        if child.sealed_for is None:
            return with_results(child.text, opened)
        own = SealedJob(tenant_id, child.sealed_for)
        payload = child.text
        if payload is not None:
            sealed = SealedText(own, SealedColumn.PAYLOAD, payload)
            await load_keys(connection, keyring, [sealed])
            payload = open_loaded(keyring, sealed)
        return await seal_text(connection, keyring, own, SealedColumn.PAYLOAD, with_results(payload, opened))
    except EnvelopeBroken:
        return child.text  # its attempt fails and says so
    except (KeyUnavailable, Conflict):
        raise WaitsForKey from None


async def opened_result(connection: AnyWrite, keyring: Keyring, tenant_id: int, value: NodeValue) -> str | None:
    """Return the result of a node as it was returned; None if it was changed. Raises `WaitsForKey` without the key."""
    try:
        return (await _opened_results(connection, keyring, tenant_id, {"": value}))[""]
    except (KeyUnavailable, Conflict):
        raise WaitsForKey from None


async def opened_texts(
    connection: AnyWrite, keyring: Keyring, tenant_id: int, sealed_for: str | None, texts: Sequence[str | None]
) -> list[str | None]:
    """Return the results of one job as they were returned; None for one that was changed. Raises `WaitsForKey`."""
    if sealed_for is None:
        return list(texts)
    values = {str(place): NodeValue(text, sealed_for) for place, text in enumerate(texts)}
    try:
        opened = await _opened_results(connection, keyring, tenant_id, values)
    except (KeyUnavailable, Conflict):
        raise WaitsForKey from None
    return [opened[place] for place in values]


async def _opened_results(
    connection: AnyWrite, keyring: Keyring, tenant_id: int, results: Mapping[str, NodeValue]
) -> dict[str, str | None]:
    sealed = {
        parent: SealedText(SealedJob(tenant_id, value.sealed_for), SealedColumn.RESULT, value.text)
        for parent, value in results.items()
        if value.text is not None and value.sealed_for is not None
    }
    await load_keys(connection, keyring, sealed.values())
    opened: dict[str, str | None] = {parent: value.text for parent, value in results.items()}
    for parent, value in sealed.items():
        try:
            opened[parent] = open_loaded(keyring, value)
        except EnvelopeBroken:
            log.warning("a result is not passed on: it was changed", job=value.job.name, node=parent)
            opened[parent] = None
    return {parent: None if _is_too_large(text) else text for parent, text in opened.items()}


def _is_too_large(text: str | None) -> bool:
    return text is not None and len(text.encode()) > RESULT_LIMIT


async def opened_nodes(connection: TenantRead, scope: Scope, row: WorkflowRow) -> WorkflowRow:
    """Return a workflow with the payloads of its nodes opened. One that cannot be opened differs from every payload."""
    texts = {
        each.node.name: SealedText(SealedJob(row.tenant_id, each.node.job), SealedColumn.PAYLOAD, each.node.payload)
        for each in row.nodes
        if each.is_sealed and each.node.payload is not None
    }
    await load_keys(connection, scope.keyring, texts.values())
    opened = {name: opened_or_none(scope.keyring, text) for name, text in texts.items()}
    return replace(row, nodes=tuple(_with_payload(each, opened) for each in row.nodes))


def _with_payload(row: NodeRow, payloads: Mapping[str, str | None]) -> NodeRow:
    name = row.node.name
    return replace(row, node=replace(row.node, payload=payloads[name])) if name in payloads else row


async def readable_workflows(connection: TenantRead, scope: Scope, rows: Sequence[WorkflowRow]) -> list[WorkflowRow]:
    """Return workflows with the payloads of their nodes as the caller may see them."""
    reader = ValueReader(scope)
    sealed = [each.node for row in rows for each in row.nodes if each.is_sealed]
    await reader.load(connection, ((node.job, SealedColumn.PAYLOAD, node.payload) for node in sealed))
    return [
        replace(
            row,
            nodes=tuple(
                replace(
                    each,
                    node=replace(
                        each.node, payload=reader.json(each.node.job, SealedColumn.PAYLOAD, each.node.payload)
                    ),
                )
                if each.is_sealed
                else each
                for each in row.nodes
            ),
        )
        for row in rows
    ]


async def readable_nodes(connection: TenantRead, scope: Scope, nodes: Sequence[NodeNow]) -> list[NodeNow]:
    """Return the nodes of a run with results and error texts as the caller may see them."""
    reader = ValueReader(scope)
    await reader.load(
        connection,
        (
            (node.job, column, text)
            for node in nodes
            if node.is_sealed
            for column, text in ((SealedColumn.RESULT, node.kept_result), (SealedColumn.ERROR, node.error_msg))
        ),
    )
    return [
        replace(
            node,
            result=reader.json(node.job, SealedColumn.RESULT, node.result) if node.result != TRUNCATED else node.result,
            error_msg=reader.text(node.job, SealedColumn.ERROR, node.error_msg),
        )
        if node.is_sealed
        else node
        for node in nodes
    ]
