"""Routes for backfills."""

import base64
from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Response

from horai.api.body import Body, body_of
from horai.api.context import ScopeDep, takes
from horai.api.idempotency import RepeatSafe
from horai.api.json import answer, job_cursor
from horai.api.paging import PageQuery
from horai.core.backfill_status import BackfillStatus
from horai.db.pool import acquire
from horai.features.backfill import service as backfills
from horai.features.backfill.rules import checked
from horai.features.backfill.service import Survey, backfill_not_found
from horai.features.backfill.store import BackfillRow, list_backfills
from horai.features.backfill.wire import BackfillIn, BackfillList, BackfillOut, BackfillPlanOut, BackfillStatusName
from horai.operations.scope import require_job
from horai.wire.fields import Text
from horai.wire.jobs import Noted

router = APIRouter(prefix="/api/v1", tags=["backfills"], route_class=RepeatSafe)

LAST = 2**63 - 1
NoteBody = Annotated[Body[Noted], Depends(body_of(Noted))]


class BackfillQuery(PageQuery):
    """Filters and paging of a list of backfills."""

    job: Text | None = None
    status: BackfillStatusName | None = None


@router.post(
    "/jobs/{job}/backfill",
    status_code=202,
    responses={202: {"model": BackfillOut}, 200: {"model": BackfillPlanOut, "description": "A dry run"}},
    openapi_extra=takes(BackfillIn),
)
async def backfill_job(
    scope: ScopeDep, job: str, body: Annotated[Body[BackfillIn], Depends(body_of(BackfillIn))]
) -> Response:
    """Run past slots of a job; with `dryRun`, only count them."""
    wish = checked(body.given())
    if body.shape.dry_run:
        return answer(plan_json(await backfills.survey_backfill(scope, job, wish)))
    made = await backfills.start_backfill(scope, job, wish, None, body.shape.note)
    return answer(backfill_json(made), 202, {"Location": f"/api/v1/backfills/{made.id}"})


@router.get("/backfills", responses={200: {"model": BackfillList}})
async def get_backfills(scope: ScopeDep, query: Annotated[BackfillQuery, Query()]) -> Response:
    """List backfills, newest first."""
    status = BackfillStatus[query.status] if query.status else None
    before = job_cursor(query.cursor) if query.cursor is not None else LAST
    async with acquire(scope.pool) as connection:
        job_id = None if query.job is None else (await require_job(connection, scope, query.job)).id
        rows = await list_backfills(connection, scope.tenant_id, (before, query.limit), job_id, status)
    return answer(_page(rows, query.limit))


@router.get("/backfills/{backfill}", responses={200: {"model": BackfillOut}})
async def get_backfill(scope: ScopeDep, backfill: str) -> Response:
    """Read a backfill with its progress."""
    return answer(backfill_json(await backfills.read_backfill(scope, _id(backfill))))


@router.post(
    "/backfills/{backfill}/pause",
    responses={200: {"model": BackfillOut}},
    openapi_extra=takes(Noted, required=False),
)
async def pause_backfill(scope: ScopeDep, backfill: str, body: NoteBody) -> Response:
    """Pause a backfill: create no further slots. Slots that were created continue."""
    return answer(backfill_json(await backfills.pause_backfill(scope, _id(backfill), body.shape.note)))


@router.post(
    "/backfills/{backfill}/resume",
    responses={200: {"model": BackfillOut}},
    openapi_extra=takes(Noted, required=False),
)
async def resume_backfill(scope: ScopeDep, backfill: str, body: NoteBody) -> Response:
    """Resume a paused backfill where it stopped."""
    return answer(backfill_json(await backfills.resume_backfill(scope, _id(backfill), body.shape.note)))


@router.post(
    "/backfills/{backfill}/cancel",
    responses={200: {"model": BackfillOut}},
    openapi_extra=takes(Noted, required=False),
)
async def cancel_backfill(scope: ScopeDep, backfill: str, body: NoteBody) -> Response:
    """Cancel a backfill: create no further slots and cancel those that wait. Running instances finish."""
    return answer(backfill_json(await backfills.cancel_backfill(scope, _id(backfill), body.shape.note)))


def _id(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        raise backfill_not_found(text)
    return int(text)


def _page(rows: Sequence[BackfillRow], limit: int) -> dict[str, Any]:
    is_full = len(rows) == limit
    cursor = base64.urlsafe_b64encode(str(rows[-1].id).encode()).decode().rstrip("=") if is_full else None
    return {"items": [backfill_json(row) for row in rows], "nextCursor": cursor}


def backfill_json(row: BackfillRow) -> dict[str, Any]:
    """Return a backfill as JSON."""
    progress, pace = row.progress, row.progress.pace
    return {
        "id": str(row.id),
        "job": row.job,
        "jobId": str(row.job_id),
        "from": row.since,
        "to": row.until,
        "mode": row.mode.name,
        "rate": str(row.rate) if row.rate else None,
        "maxConcurrency": row.max_concurrency,
        "status": row.status.name,
        "note": row.note,
        "progress": {
            "slots": progress.slots,
            "total": progress.total,
            "made": progress.made,
            "skipped": progress.skipped,
            "running": progress.running,
            "succeeded": progress.succeeded,
            "failed": progress.failed,
            "cancelled": progress.cancelled,
            "percent": progress.percent(row.status),
            "ratePerSecond": None if pace is None else round(pace, 3),
            "eta": progress.eta(row.status, row.now, row.rate),
        },
        "createdAt": row.created_at,
        "updatedAt": row.updated_at,
        "finishedAt": row.finished_at,
    }


def plan_json(survey: Survey) -> dict[str, Any]:
    """Return the answer to a dry run as JSON."""
    wish = survey.wish
    return {
        "dryRun": True,
        "job": survey.job.name,
        "jobId": str(survey.job.id),
        "from": wish.since,
        "to": survey.until,
        "mode": wish.mode.name,
        "rate": str(wish.rate) if wish.rate else None,
        "maxConcurrency": wish.concurrency_of(survey.timing),
        "slots": survey.slots,
        "total": survey.total,
        "skipped": survey.slots - survey.total,
        "first": survey.first,
        "last": survey.last,
    }
