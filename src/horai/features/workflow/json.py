"""Workflows and their runs as public JSON. Payloads and results pass through unchanged and are never parsed."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from horai.api.json import cursor_after, job_json, page_cursor, raw
from horai.core.states import State
from horai.db.instance_queries import InstanceRow
from horai.features.workflow.rerun import RunView
from horai.features.workflow.rerun_store import NodeNow, RunRow
from horai.features.workflow.service import WorkflowRequest
from horai.features.workflow.store import NodeRow
from horai.features.workflow.views import WorkflowView

NOT_OF_A_WORKFLOW = frozenset({"target", "retry", "timeout", "at", "delay"})
_PENDING = {State.DEAD: "DEAD", State.CANCELLED: "CANCELLED"}


def workflow_json(view: WorkflowView) -> dict[str, Any]:
    """Return a workflow; its schedule fields come from its job."""
    row, job = view.workflow.row, view.workflow.job
    shown = {name: value for name, value in job_json(job).items() if name not in NOT_OF_A_WORKFLOW}
    return {
        **shown,
        "id": str(row.id),
        "jobId": str(row.job_id),
        "nodes": [_node_json(node) for node in row.nodes],
        "version": row.version,
        "createdAt": row.created_at,
        "updatedAt": max(row.updated_at, job.updated_at),
        "lastRun": None if view.last_run is None else _last_run_json(view.last_run),
        "nextFire": view.next_fire,
    }


def _last_run_json(run: RunRow) -> dict[str, Any]:
    return {
        "id": str(run.id),
        "state": run.state.name,
        "fireTime": run.fire_time,
        "createdAt": run.created_at,
        "finishedAt": run.finished_at,
        "durationMs": _took(run.created_at, run.finished_at),
    }


def _took(began: datetime | None, ended: datetime | None) -> int | None:
    """Return a duration in milliseconds; None until it has ended. Both instants come from the clock of the database."""
    return None if began is None or ended is None else max((ended - began) // timedelta(milliseconds=1), 0)


def _node_json(row: NodeRow) -> dict[str, Any]:
    node = row.node
    return {
        "name": node.name,
        "job": node.job,
        "jobId": str(row.job_id),
        "after": list(node.after),
        "payload": raw(node.payload),
    }


def workflow_page(found: Sequence[WorkflowView], limit: int) -> dict[str, Any]:
    """Return a page of workflows."""
    cursor = page_cursor(str(found[-1].workflow.row.id)) if len(found) == limit else None
    return {"items": [workflow_json(view) for view in found], "nextCursor": cursor}


def run_json(workflow: WorkflowRequest, row: RunRow) -> dict[str, Any]:
    """Return a run without its nodes."""
    return {
        "id": str(row.id),
        "workflow": workflow.row.name,
        "workflowId": str(workflow.row.id),
        "state": row.state.name,
        "fireTime": row.fire_time,
        "createdAt": row.created_at,
        "finishedAt": row.finished_at,
        "durationMs": _took(row.created_at, row.finished_at),
        "generation": row.generation,
        "version": row.version,
        "payload": raw(row.payload),
    }


def pending_json(workflow: WorkflowRequest, instance: InstanceRow) -> dict[str, Any]:
    """Return a run that its instance has not started yet, or will never start."""
    return {
        "id": str(instance.id),
        "workflow": workflow.row.name,
        "workflowId": str(workflow.row.id),
        "state": _PENDING.get(instance.state, "PENDING"),
        "fireTime": instance.fire_time,
        "createdAt": instance.created_at,
        "finishedAt": instance.finished_at,
        "durationMs": None,
        "generation": 0,
        "version": None,
        "payload": raw(instance.payload),
        "nodes": [],
    }


def view_json(view: RunView) -> dict[str, Any]:
    """Return a run with its nodes."""
    if view.row is not None:
        return {**run_json(view.workflow, view.row), "nodes": [_run_node_json(node) for node in view.nodes]}
    assert view.instance is not None  # noqa: S101 — a view has a row or an instance
    return pending_json(view.workflow, view.instance)


def _run_node_json(node: NodeNow) -> dict[str, Any]:
    return {
        "name": node.name,
        "job": node.job,
        "jobId": str(node.job_id),
        "after": list(node.after),
        "instanceId": str(node.instance_id),
        "generation": node.generation,
        "state": node.state.name,
        "reason": node.reason.name if node.reason else None,
        "attempt": node.attempt,
        "errorCode": node.error_code,
        "errorMsg": node.error_msg,
        "startedAt": node.claimed_at,
        "finishedAt": node.finished_at,
        "durationMs": _took(node.claimed_at, node.finished_at),
        "result": raw(node.result),
    }


def run_page(workflow: WorkflowRequest, rows: Sequence[RunRow], limit: int) -> dict[str, Any]:
    """Return a page of runs."""
    cursor = cursor_after(rows[-1].fire_time, rows[-1].id) if len(rows) == limit else None
    return {"items": [run_json(workflow, row) for row in rows], "nextCursor": cursor}
