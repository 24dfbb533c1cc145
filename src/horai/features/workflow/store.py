"""Workflow definitions: one function per statement of features/workflow/store.sql."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import asyncpg
import msgspec

from horai.core.digits import number_in
from horai.core.job import JobStatus, read_retry, retry_document
from horai.core.validation import Validation
from horai.db.catalog import sql
from horai.db.pool import AnyRead, TenantRead, TenantWrite
from horai.features.workflow.child_settings import ChildSettings
from horai.features.workflow.definition import WorkflowNode
from horai.features.workflow.map_settings import read_map
from horai.features.workflow.sensor_settings import read_sensor
from horai.features.workflow.trigger_rules import RULE_NAMES


class _StoredNode(msgspec.Struct):
    name: str
    job: str
    job_id: int
    after: list[str] = []
    payload: msgspec.Raw = msgspec.Raw(b"null")
    sealed: bool = False
    rule: str = msgspec.field(default="allSuccess", name="triggerRule")
    retry: dict[str, Any] | None = None
    map: dict[str, Any] | None = None
    produces: list[str] = []
    sensor: dict[str, Any] | None = None
    child: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class NodeRow:
    """A stored node; `node.job` is the name of its job. `is_sealed`: the job is encrypted, and its payload sealed."""

    node: WorkflowNode
    job_id: int
    is_sealed: bool = False


@dataclass(frozen=True, slots=True)
class WorkflowRow:
    """A stored workflow; its schedule is that of the job `job_id`."""

    id: int
    tenant_id: int
    name: str
    job_id: int
    nodes: tuple[NodeRow, ...]
    version: int
    created_at: datetime
    updated_at: datetime
    deleted_at: datetime | None = None
    params: str | None = None
    """The JSON Schema of the payload of a run, as JSON text; None for any payload."""


def _workflow(row: asyncpg.Record) -> WorkflowRow:
    stored = msgspec.json.decode(row["nodes"], type=list[_StoredNode])
    return WorkflowRow(
        row["id"],
        row["tenant_id"],
        row["name"],
        row["job_id"],
        tuple(NodeRow(_node(each), each.job_id, each.sealed) for each in stored),
        row["version"],
        row["created_at"],
        row["updated_at"],
        row["deleted_at"],
        row["params"],
    )


def _node(stored: _StoredNode) -> WorkflowNode:
    retry = None if stored.retry is None else read_retry(stored.retry, Validation())
    mapped = None if stored.map is None else read_map(stored.map, Validation(), "map")
    return WorkflowNode(
        stored.name,
        stored.job,
        tuple(stored.after),
        _text(stored.payload),
        RULE_NAMES[stored.rule],
        retry,
        mapped,
        tuple(stored.produces),
        None if stored.sensor is None else read_sensor(stored.sensor, Validation(), "sensor"),
        None if stored.child is None else ChildSettings(stored.child.get("params")),
    )


def _text(raw: msgspec.Raw) -> str | None:
    text = bytes(raw).decode()
    return None if text == "null" else text


def _nodes_text(nodes: Sequence[NodeRow]) -> str:
    """Return the nodes as JSON text; payloads stay unchanged."""
    stored: list[Mapping[str, Any]] = [
        {
            "name": row.node.name,
            "job": row.node.job,
            "job_id": row.job_id,
            "after": row.node.after,
            "payload": None if row.node.payload is None else msgspec.Raw(row.node.payload.encode()),
            "sealed": row.is_sealed,
            **({"triggerRule": row.node.rule.rest_name} if row.node.rule else {}),
            **({"retry": retry_document(row.node.retry)} if row.node.retry else {}),
            **({"map": row.node.map.document} if row.node.map else {}),
            **({"produces": row.node.produces} if row.node.produces else {}),
            **({"sensor": row.node.sensor.document} if row.node.sensor else {}),
            **({"child": row.node.child.document} if row.node.child is not None else {}),
        }
        for row in nodes
    ]
    return msgspec.json.encode(stored).decode()


async def insert_workflow(
    connection: TenantWrite, tenant_id: int, name: str, job_id: int, nodes: Sequence[NodeRow], params: str | None
) -> int | None:
    """Insert a workflow and return its id; None if the name is taken."""
    return await connection.fetchval(sql("insert_workflow"), tenant_id, name, job_id, _nodes_text(nodes), params)


async def find_workflow(connection: TenantRead, tenant_id: int, reference: str) -> WorkflowRow | None:
    """Return a workflow by its id (all digits) or its name."""
    if reference.isascii() and reference.isdigit():
        if len(reference) > 18:
            return None
        row = await connection.fetchrow(sql("workflow_by_id"), tenant_id, int(reference))
    else:
        row = await connection.fetchrow(sql("workflow_by_name"), tenant_id, reference)
    return _workflow(row) if row else None


async def workflow_of_job(connection: AnyRead, job_id: int) -> WorkflowRow | None:
    """Return the workflow whose runs the instances of a job start, even if it is deleted."""
    row = await connection.fetchrow(sql("workflow_of_job"), job_id)
    return _workflow(row) if row else None


async def lock_workflow(connection: TenantWrite, workflow_id: int) -> WorkflowRow | None:
    """Lock a workflow for a change and return it; None if it is deleted."""
    row = await connection.fetchrow(sql("lock_workflow"), workflow_id)
    return _workflow(row) if row else None


async def update_workflow(
    connection: TenantWrite, workflow_id: int, nodes: Sequence[NodeRow], params: str | None
) -> WorkflowRow:
    """Replace the nodes and the schema of the parameters, and increase the version."""
    row = await connection.fetchrow(sql("update_workflow"), workflow_id, _nodes_text(nodes), params)
    assert row is not None  # noqa: S101 — the caller has locked the row
    return _workflow(row)


async def delete_workflow(connection: TenantWrite, workflow_id: int) -> None:
    """Mark a workflow as deleted; the row stays, because its runs refer to it."""
    await connection.execute(sql("delete_workflow"), workflow_id)


@dataclass(frozen=True, slots=True)
class WorkflowFilter:
    """The filters of a list of workflows; None means no condition. Names and titles are searched for `name_contains`."""

    name_contains: str | None = None
    owner: str | None = None
    tag: str | None = None
    status: JobStatus | None = None

    @property
    def values(self) -> tuple[Any, ...]:
        """Return the values as the statement takes them."""
        return self.name_contains, self.owner, self.tag, None if self.status is None else int(self.status)


ANY_WORKFLOW = WorkflowFilter()


async def list_workflows(
    connection: TenantRead, tenant_id: int, after_id: int, limit: int, only: WorkflowFilter = ANY_WORKFLOW
) -> list[WorkflowRow]:
    """Return a page of the workflows that match, in order of id."""
    rows = await connection.fetch(sql("list_workflows"), tenant_id, after_id, limit, *only.values)
    return [_workflow(row) for row in rows]


@dataclass(frozen=True, slots=True)
class NodeJob:
    """A job to use as a node; `handler` is empty for HTTP."""

    id: int
    name: str
    handler: str
    is_encrypted: bool = False
    is_searched: bool = False


async def share_node_jobs(connection: TenantWrite, tenant_id: int, references: Collection[str]) -> dict[str, NodeJob]:
    """Lock the named jobs until commit; return them by the reference (id or name) that was given."""
    named = set(references)
    ids = [number for each in named if (number := number_in(each)) is not None]
    rows = await connection.fetch(sql("share_node_jobs"), tenant_id, ids, sorted(named))
    found = [
        NodeJob(row["id"], row["name"], row["handler"] or "", row["encrypted"], bool(row["search_paths"]))
        for row in rows
    ]
    return {each: job for job in found for each in (job.name, str(job.id)) if each in named}


async def set_jobs(connection: TenantWrite, workflow_id: int, job_ids: Collection[int]) -> None:
    """Replace the set of jobs that are nodes of the workflow."""
    await connection.execute(sql("leave_workflow"), workflow_id, list(job_ids))
    await connection.execute(sql("join_workflow"), workflow_id, sorted(job_ids))


async def workflows_with(connection: TenantRead, job_id: int) -> dict[str, bool]:
    """Return the workflows that a job is a node of, at most 10, and whether each is a form of compositions; those come last."""
    return {row["name"]: row["is_form"] for row in await connection.fetch(sql("workflows_with"), job_id)}


async def workflows_below(connection: TenantRead, job_ids: Collection[int], depth: int) -> list[tuple[int, int]]:
    """Return the jobs of workflows at these jobs and below them, each with its level, at most `depth` levels."""
    rows = await connection.fetch(sql("workflows_below"), list(job_ids), depth)
    return [(row["job_id"], row["level"]) for row in rows]
