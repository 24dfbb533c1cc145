"""Routes for backfills."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response

from horai.api.answer import answer
from horai.api.body import Body, body_of
from horai.api.context import ScopeDep, takes
from horai.api.cursors import next_cursor
from horai.api.paging import PageQuery
from horai.api.replica_reads import may_lag
from horai.api.route import RoleRoute, needs
from horai.core.backfill_status import BackfillStatus
from horai.core.digits import number_in
from horai.core.roles import AccessRole
from horai.features.backfill import service as backfills
from horai.features.backfill.rules import checked
from horai.features.backfill.service import Survey, backfill_not_found
from horai.features.backfill.store import BackfillRow, list_backfills
from horai.features.backfill.wire import (
    BackfillIn,
    BackfillList,
    BackfillOut,
    BackfillPlanOut,
    BackfillStatusName,
    ProgressOut,
)
from horai.operations.scope import require_job
from horai.wire.encode import Encoded
from horai.wire.fields import Text
from horai.wire.jobs import Noted

router = APIRouter(prefix="/api/v1", tags=["backfills"], route_class=RoleRoute)

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
@needs(AccessRole.OPERATOR)
async def backfill_job(
    scope: ScopeDep, job: str, body: Annotated[Body[BackfillIn], Depends(body_of(BackfillIn))]
) -> Response:
    """Run past slots of a job; with `dryRun`, only count them."""
    wish = checked(body.given())
    if body.shape.dry_run:
        return answer(_encode_plan(await backfills.survey_backfill(scope, job, wish)))
    made = await backfills.start_backfill(scope, job, wish, None, body.shape.note)
    return answer(_encode_backfill(made), 202, {"Location": f"/api/v1/backfills/{made.id}"})


@router.get("/backfills", responses={200: {"model": BackfillList}})
@needs(AccessRole.VIEWER)
@may_lag
async def get_backfills(scope: ScopeDep, query: Annotated[BackfillQuery, Query()]) -> Response:
    """List backfills, newest first."""
    status = BackfillStatus[query.status] if query.status else None
    async with scope.read() as connection:
        job_id = None if query.job is None else (await require_job(connection, scope, query.job)).id
        rows = await list_backfills(connection, scope.tenant_id, (query.before, query.limit), job_id, status)
    items = [_encode_backfill(row) for row in rows]
    return answer(BackfillList.encode(items=items, next_cursor=next_cursor(rows, query.limit)))


@router.get("/backfills/{backfill}", responses={200: {"model": BackfillOut}})
@needs(AccessRole.VIEWER)
async def get_backfill(scope: ScopeDep, backfill: str) -> Response:
    """Read a backfill with its progress."""
    return answer(_encode_backfill(await backfills.read_backfill(scope, _id(backfill))))


@router.post(
    "/backfills/{backfill}/pause",
    responses={200: {"model": BackfillOut}},
    openapi_extra=takes(Noted, required=False),
)
@needs(AccessRole.OPERATOR)
async def pause_backfill(scope: ScopeDep, backfill: str, body: NoteBody) -> Response:
    """Pause a backfill: create no further slots. Slots that were created continue."""
    return answer(_encode_backfill(await backfills.pause_backfill(scope, _id(backfill), body.shape.note)))


@router.post(
    "/backfills/{backfill}/resume",
    responses={200: {"model": BackfillOut}},
    openapi_extra=takes(Noted, required=False),
)
@needs(AccessRole.OPERATOR)
async def resume_backfill(scope: ScopeDep, backfill: str, body: NoteBody) -> Response:
    """Resume a paused backfill where it stopped."""
    return answer(_encode_backfill(await backfills.resume_backfill(scope, _id(backfill), body.shape.note)))


@router.post(
    "/backfills/{backfill}/cancel",
    responses={200: {"model": BackfillOut}},
    openapi_extra=takes(Noted, required=False),
)
@needs(AccessRole.OPERATOR)
async def cancel_backfill(scope: ScopeDep, backfill: str, body: NoteBody) -> Response:
    """Cancel a backfill: create no further slots and cancel those that wait. Running instances finish."""
    return answer(_encode_backfill(await backfills.cancel_backfill(scope, _id(backfill), body.shape.note)))


def _id(text: str) -> int:
    if (number := number_in(text)) is None:
        raise backfill_not_found(text)
    return number


def _encode_backfill(row: BackfillRow) -> Encoded:
    progress = row.progress
    return BackfillOut.encode(
        row,
        progress=ProgressOut.encode(
            progress,
            percent=progress.percent(row.status),
            rate_per_second=None if progress.pace is None else round(progress.pace, 3),
            eta=progress.eta(row.status, row.now, row.rate),
        ),
    )


def _encode_plan(survey: Survey) -> Encoded:
    wish = survey.wish
    return BackfillPlanOut.encode(
        survey,
        dry_run=True,
        job=survey.job.name,
        job_id=survey.job.id,
        from_=wish.since,
        mode=wish.mode,
        rate=wish.rate,
        max_concurrency=wish.concurrency_of(survey.timing),
        skipped=survey.slots - survey.total,
    )
