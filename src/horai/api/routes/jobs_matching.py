"""Bulk routes: run or delete all jobs that match a filter."""

from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response

from horai.api.answer import answer
from horai.api.body import Body, body_of
from horai.api.context import ScopeDep, takes
from horai.api.cursors import job_cursor, page_cursor
from horai.api.idempotency import HEADER
from horai.api.rates import spread_of
from horai.api.route import RoleRoute, needs
from horai.api.sentence_json import sentence_fields
from horai.core.errors import IdempotencyKeyRequired, Invalid
from horai.core.roles import AccessRole
from horai.db.job_lists import JobFilter
from horai.operations import jobs_matching
from horai.operations.jobs_matching import JobBulkSummary, JobWish
from horai.text import Hint, Refused
from horai.wire.jobs import DeleteManyIn, JobBulkAnswer, MatchingJobs, SkippedJobOut, TriggerManyIn

router = APIRouter(prefix="/api/v1/jobs", tags=["jobs"], route_class=RoleRoute)


@router.post("/trigger", responses={200: {"model": JobBulkAnswer}}, openapi_extra=takes(TriggerManyIn))
@needs(AccessRole.OPERATOR)
async def trigger_jobs(
    request: Request, scope: ScopeDep, body: Annotated[Body[TriggerManyIn], Depends(body_of(TriggerManyIn))]
) -> Response:
    """Run all jobs that match once, at most `limit`, oldest first, in one transaction per `Idempotency-Key`, which is required.

    The next request continues at `nextCursor`, with a key of its own. Instances of paused jobs wait.
    """
    wish = _wish(request, body.shape, Refused.RUNS_EVERY_JOB)
    spread = spread_of(body.shape.rate, body.shape.start_at)
    payload = body.text_of("payload")
    done = await jobs_matching.trigger_matching(scope, wish, payload, spread, dry_run=body.shape.dry_run)
    return _answer(done, dry_run=body.shape.dry_run)


@router.post("/delete", responses={200: {"model": JobBulkAnswer}}, openapi_extra=takes(DeleteManyIn))
@needs(AccessRole.ADMIN)
async def delete_jobs(
    request: Request, scope: ScopeDep, body: Annotated[Body[DeleteManyIn], Depends(body_of(DeleteManyIn))]
) -> Response:
    """Delete all jobs that match, at most `limit`, oldest first, in one transaction per `Idempotency-Key`, which is required.

    A job that a workflow or a reconciler needs is skipped. The next request continues at `nextCursor`, with a key of its own.
    """
    wish = _wish(request, body.shape, Refused.DELETES_EVERY_JOB)
    done = await jobs_matching.delete_matching(scope, wish, dry_run=body.shape.dry_run)
    return _answer(done, dry_run=body.shape.dry_run)


def jobs_meant(asked: MatchingJobs) -> JobFilter:
    """Return the jobs of a bulk request, in any status."""
    return JobFilter(asked.names, asked.tag, None, asked.queue, asked.refresh, asked.name_contains, asked.owner)


def _wish(request: Request, asked: DeleteManyIn, says: Refused) -> JobWish:
    only = jobs_meant(asked)
    if only == JobFilter():
        raise Invalid(says(), Hint.NARROW_JOBS())
    if not asked.dry_run and HEADER not in request.headers:
        raise IdempotencyKeyRequired(Refused.BULK_KEY_REQUIRED(), Hint.SEND_A_KEY(first="answer"))
    return JobWish(only, asked.limit, job_cursor(asked.cursor))


def _answer(done: JobBulkSummary, *, dry_run: bool) -> Response:
    reasons = [
        SkippedJobOut.encode(job=each.job, **sentence_fields("reason", each.refusal.detail)) for each in done.reasons
    ]
    cursor = None if done.reached is None else page_cursor(str(done.reached))
    return answer(JobBulkAnswer.encode(done, reasons=reasons, next_cursor=cursor, dry_run=dry_run))
