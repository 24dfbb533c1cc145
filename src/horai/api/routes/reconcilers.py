"""Reconcilers."""

import base64
from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Response
from pydantic import ConfigDict, Field

from horai.accept import reconcilers
from horai.accept.reconcilers import ReconcilerWish
from horai.accept.reconciles import counts_of
from horai.accept.requests import Once
from horai.api.body import Body, body_of
from horai.api.context import IdempotencyKey, ScopeDep, once_of, takes
from horai.api.present import answer, instance_json, job_cursor
from horai.core.errors import IdempotencyKeyRequired
from horai.core.reconcilers import shown_source
from horai.core.settings import PAGE_DEFAULT, PAGE_LIMIT
from horai.db.reconcilers import ReconcilerRow, Report, examples_of
from horai.wire.fields import Model
from horai.wire.instances import InstanceAnswer
from horai.wire.reconcilers import ReconcilerIn, ReconcilerList, ReconcilerOut, ReportList

router = APIRouter(prefix="/api/v1/reconcilers", tags=["reconcilers"])

LAST = 2**63 - 1


class PageQuery(Model):
    """How a list is paged."""

    model_config = ConfigDict(strict=False, populate_by_name=False)

    limit: Annotated[int, Field(ge=1, le=PAGE_LIMIT)] = PAGE_DEFAULT
    cursor: str | None = None

    @property
    def before(self) -> int:
        """The id that the page lies behind."""
        return LAST if self.cursor is None else job_cursor(self.cursor)


@router.post("", status_code=201, responses={201: {"model": ReconcilerOut}}, openapi_extra=takes(ReconcilerIn))
async def create_reconciler(
    scope: ScopeDep,
    body: Annotated[Body[ReconcilerIn], Depends(body_of(ReconcilerIn))],
    idempotency_key: IdempotencyKey = None,
) -> Response:
    """Create a reconciler: it compares a source of the business with the instances of a job, and creates what is missing."""
    given = body.given()
    source = {name: value for name, value in given["source"].items() if value is not None}
    wish = ReconcilerWish(given["name"], given["job"], source, given)
    made = await reconcilers.create_reconciler(scope, wish, once_of(idempotency_key, body.raw))
    return answer(reconciler_json(made), 201, {"Location": f"/api/v1/reconcilers/{made.id}"})


@router.get("", responses={200: {"model": ReconcilerList}})
async def get_reconcilers(scope: ScopeDep, query: Annotated[PageQuery, Query()]) -> Response:
    """List reconcilers, newest first."""
    rows = await reconcilers.list_reconcilers(scope, query.before, query.limit)
    cursor = _cursor([row.id for row in rows], query.limit)
    return answer({"items": [reconciler_json(row) for row in rows], "nextCursor": cursor})


@router.get("/{reconciler}", responses={200: {"model": ReconcilerOut}})
async def get_reconciler(scope: ScopeDep, reconciler: str) -> Response:
    """Read a reconciler by id or name."""
    return answer(reconciler_json(await reconcilers.read_reconciler(scope, reconciler)))


@router.delete("/{reconciler}", status_code=204)
async def delete_reconciler(scope: ScopeDep, reconciler: str) -> Response:
    """Remove a reconciler; what it has created stays."""
    await reconcilers.delete_reconciler(scope, reconciler)
    return Response(status_code=204)


@router.post("/{reconciler}/run", status_code=202, responses={202: {"model": InstanceAnswer}})
async def run_reconciler(scope: ScopeDep, reconciler: str, idempotency_key: IdempotencyKey = None) -> Response:
    """Compare now, once per `Idempotency-Key`; the instance is the comparison, and its result the report."""
    if idempotency_key is None:
        raise IdempotencyKeyRequired(
            "A run needs the header Idempotency-Key.",
            "Send one key per intent, such as a UUID; a repeated request then answers with the first instance.",
        )
    row = await reconcilers.run_reconciler(scope, reconciler, Once(idempotency_key, b""))
    return answer({"instance": instance_json(row)}, 202, {"Location": f"/api/v1/instances/{row.id}"})


@router.get("/{reconciler}/reports", responses={200: {"model": ReportList}})
async def get_reports(scope: ScopeDep, reconciler: str, query: Annotated[PageQuery, Query()]) -> Response:
    """List what the comparisons came to, newest first."""
    rows = await reconcilers.list_reports(scope, reconciler, query.before, query.limit)
    cursor = _cursor([row.id for row in rows], query.limit)
    return answer({"items": [report_json(row) for row in rows], "nextCursor": cursor})


def _cursor(ids: Sequence[int], limit: int) -> str | None:
    """Where the next page begins; None on the last."""
    if len(ids) < limit:
        return None
    return base64.urlsafe_b64encode(str(ids[-1]).encode()).decode().rstrip("=")


def reconciler_json(row: ReconcilerRow) -> dict[str, Any]:
    """A reconciler as it is, without its secrets."""
    return {
        "id": str(row.id),
        "name": row.name,
        "job": row.target,
        "jobId": str(row.target_id),
        "runJobId": str(row.job_id),
        "status": row.status.name,
        "every": row.document.get("every"),
        "cron": row.document.get("cron"),
        "timezone": row.document.get("timezone"),
        "source": shown_source(row.source),
        "createdAt": row.created_at,
    }


def report_json(report: Report) -> dict[str, Any]:
    """What a comparison came to."""
    return {
        "id": str(report.id),
        "instanceId": str(report.instance_id),
        "startedAt": report.started_at,
        "finishedAt": report.finished_at,
        **counts_of(report),
        "error": report.error,
        "examples": examples_of(report.tally, report.surplus_keys),
    }
