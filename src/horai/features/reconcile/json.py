"""Reconcilers and their reports as public JSON, without their secrets."""

from collections.abc import Sequence
from typing import Any

from horai.api.json import page_cursor
from horai.features.reconcile.compare import counts_of
from horai.features.reconcile.definition import shown_source
from horai.features.reconcile.service import Overview
from horai.features.reconcile.store import Report, examples_of

NOT_OF_A_SUMMARY = frozenset({"instanceId", "leftAlone", "faulty", "examples"})


def reconciler_json(overview: Overview) -> dict[str, Any]:
    """Return a reconciler with its last report."""
    row = overview.row
    return {
        "id": str(row.id),
        "name": row.name,
        "job": row.target,
        "jobId": str(row.target_id),
        "runJobId": str(row.job_id),
        "status": row.status.name,
        "note": row.note,
        "every": row.document.get("every"),
        "cron": row.document.get("cron"),
        "timezone": row.document.get("timezone"),
        "source": shown_source(row.source),
        "declaredBy": row.declared_by,
        "nextFire": overview.next_fire,
        "lastReport": None if overview.last is None else _summary(overview.last),
        "version": row.version,
        "createdAt": row.created_at,
        "updatedAt": row.updated_at,
    }


def _summary(report: Report) -> dict[str, Any]:
    return {name: value for name, value in report_json(report).items() if name not in NOT_OF_A_SUMMARY}


def report_json(report: Report) -> dict[str, Any]:
    """Return the report of a comparison."""
    return {
        "id": str(report.id),
        "instanceId": str(report.instance_id),
        "startedAt": report.started_at,
        "finishedAt": report.finished_at,
        **counts_of(report),
        "error": report.error,
        "examples": examples_of(report.tally, report.surplus_keys),
    }


def reconciler_page(found: Sequence[Overview], limit: int) -> dict[str, Any]:
    """Return a page of reconcilers."""
    cursor = page_cursor(str(found[-1].row.id)) if len(found) == limit else None
    return {"items": [reconciler_json(overview) for overview in found], "nextCursor": cursor}


def report_page(reports: Sequence[Report], limit: int) -> dict[str, Any]:
    """Return a page of reports."""
    cursor = page_cursor(str(reports[-1].id)) if len(reports) == limit else None
    return {"items": [report_json(report) for report in reports], "nextCursor": cursor}
