"""Jobs."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Query, Response
from pydantic import ConfigDict, Field

from horai.api.answer import answer
from horai.api.body import Body, body_of
from horai.api.context import DryRunDep, IdempotencyKey, ScopeDep, VersionDep, once_of, takes
from horai.api.cursors import decode_cursor, job_cursor, page_cursor, without_nul
from horai.api.job_json import job_json
from horai.api.paging import PageQuery
from horai.api.replica_reads import may_lag
from horai.api.route import RoleRoute, needs
from horai.api.routes.jobs_matching import jobs_meant
from horai.core.errors import Invalid
from horai.core.job import JobStatus
from horai.core.roles import AccessRole
from horai.db import instance_lists
from horai.db.job_lists import JobFilter, JobOrder, list_jobs
from horai.db.jobs import JobRow
from horai.db.pool import TenantRead
from horai.operations import jobs, pause_matching
from horai.operations.dry_run import perhaps
from horai.operations.job_rows import JobDocument
from horai.operations.jobs import JobChange
from horai.operations.readable_values import readable_job, readable_jobs
from horai.operations.scope import Scope, require_job
from horai.operations.upcoming import next_fire_times
from horai.text import Hint, Refused
from horai.wire.fields import Model, Text
from horai.wire.jobs import GlimpseOut, JobIn, JobList, JobOut, JobPatch, JobSweepAnswer, JobSweepIn, Noted, StatusName

router = APIRouter(prefix="/api/v1/jobs", tags=["jobs"], route_class=RoleRoute)

MOST_RECENT = 100
ORDERS = {
    "oldest": JobOrder.oldest,
    "newest": JobOrder.newest,
    "name": JobOrder.name_up,
    "nameReversed": JobOrder.name_down,
}


class JobCountQuery(Model):
    """A filter for jobs. `refresh`: true for refresh jobs only, false for all others.

    `nameContains` looks into names and titles.
    """

    model_config = ConfigDict(strict=False, populate_by_name=False)

    name: Text | None = None
    tag: Text | None = None
    status: StatusName | None = None
    queue: Text | None = None
    refresh: bool | None = None
    name_contains: Annotated[Text, Field(min_length=1, max_length=200)] | None = None
    owner: Text | None = None

    @property
    def only(self) -> JobFilter:
        """Return the filter as the store takes it."""
        names = None if self.name is None else [self.name]
        status = JobStatus[self.status] if self.status else None
        return JobFilter(names, self.tag, status, self.queue, self.refresh, self.name_contains, self.owner)


class JobQuery(PageQuery, JobCountQuery):
    """The filter, order and page of a list of jobs."""

    recent: Annotated[int, Field(ge=0, le=MOST_RECENT)] | None = None
    order: Literal["oldest", "newest", "name", "nameReversed"] = "oldest"


async def _shown(scope: Scope, job: JobRow) -> Response:
    return answer(job_json(await _readable(scope, job)), 200, {"ETag": f'"{job.version}"'})


async def _readable(scope: Scope, job: JobRow) -> JobRow:
    """Return the job as the caller may see it."""
    if not job.is_encrypted:
        return job
    async with scope.read() as connection:
        return await readable_job(connection, scope, job)


@router.post("", status_code=201, responses={201: {"model": JobOut}}, openapi_extra=takes(JobIn))
@needs(AccessRole.ADMIN)
async def create_job(
    scope: ScopeDep, body: Annotated[Body[JobIn], Depends(body_of(JobIn))], idempotency_key: IdempotencyKey = None
) -> Response:
    """Create a job. `{"name": "coupon_job", "cron": "0 */5 * * * ?"}` is enough."""
    written = JobDocument(_document(body), body.text_of("payload"))
    job = await jobs.create_job(scope, written, once_of(idempotency_key, body.raw))
    shown = job_json(await _readable(scope, job))
    return answer(shown, 201, {"ETag": f'"{job.version}"', "Location": f"/api/v1/jobs/{job.id}"})


def _document(body: Body[JobIn]) -> dict[str, Any]:
    return {name: value for name, value in body.given().items() if value is not None}


@router.get("", responses={200: {"model": JobList}})
@needs(AccessRole.VIEWER)
@may_lag
async def get_jobs(scope: ScopeDep, query: Annotated[JobQuery, Query()]) -> Response:
    """List jobs, oldest first or in another `order`. With `recent`, each has its last instances and its next fire time."""
    order = ORDERS[query.order]
    after = _position(query.cursor, order)
    async with scope.read() as connection:
        rows = await list_jobs(connection, scope.tenant_id, after, query.limit, query.only, order)
        news = await _news_of(connection, rows, query.recent)
        rows = await readable_jobs(connection, scope, rows)
    items = [{**job_json(row), **more} for row, more in zip(rows, news, strict=True)]
    cursor = page_cursor(str(order.after(rows[-1]))) if len(rows) == query.limit else None
    return answer(JobList.encode(items=items, next_cursor=cursor))


def _position(cursor: str | None, order: JobOrder) -> int | str:
    """Return the position after which a page begins. Raises `Invalid` for a cursor of another kind of order."""
    if cursor is None:
        return order.value[1]
    return without_nul(decode_cursor(cursor)) if order.is_by_name else job_cursor(cursor)


async def _news_of(connection: TenantRead, rows: Sequence[JobRow], count: int | None) -> list[dict[str, Any]]:
    """Return the fields that `recent` adds to each job, none without it."""
    if count is None:
        return [{} for _ in rows]
    ids = [row.id for row in rows]
    recent = await instance_lists.recent_of_jobs(connection, ids, count)
    coming, waiting = await next_fire_times(connection, rows), await instance_lists.waiting_of_jobs(connection, ids)
    return [
        {
            "recent": [GlimpseOut.encode(one) for one in recent.get(row.id, ())],
            "nextFire": min((known[row.id] for known in (coming, waiting) if row.id in known), default=None),
        }
        for row in rows
    ]


@router.get("/{job}", responses={200: {"model": JobOut}})
@needs(AccessRole.VIEWER)
async def get_job(scope: ScopeDep, job: str) -> Response:
    """Read a job by id or name."""
    async with scope.read() as connection:
        found = await require_job(connection, scope, job)
    return await _shown(scope, found)


@router.patch("/{job}", responses={200: {"model": JobOut}}, openapi_extra=takes(JobPatch))
@needs(AccessRole.ADMIN)
async def patch_job(
    scope: ScopeDep,
    job: str,
    body: Annotated[Body[JobPatch], Depends(body_of(JobPatch))],
    if_version: VersionDep,
    dry_run: DryRunDep = False,
) -> Response:
    """Change a job. Waiting instances follow its new queue and priority; their times stay."""
    change = JobChange(body.given(), body.text_of("payload"), body.has_payload, if_version)
    async with perhaps(scope, is_dry=dry_run) as trial:
        return await _shown(trial, await jobs.change_job(trial, job, change))


@router.delete("/{job}", status_code=204)
@needs(AccessRole.ADMIN)
async def delete_job(scope: ScopeDep, job: str, if_version: VersionDep) -> Response:
    """Remove a job. Waiting instances are cancelled, running ones finish, and the history stays."""
    await jobs.delete_job(scope, job, if_version)
    return Response(status_code=204)


@router.post("/pause", responses={200: {"model": JobSweepAnswer}}, openapi_extra=takes(JobSweepIn))
@needs(AccessRole.OPERATOR)
async def pause_jobs(scope: ScopeDep, body: Annotated[Body[JobSweepIn], Depends(body_of(JobSweepIn))]) -> Response:
    """Pause all active jobs that match, at most `limit`, oldest first. Repeat the request while `more` is true."""
    return await _changed(scope, pause_matching.pausing(body.shape.note), body.shape)


@router.post("/resume", responses={200: {"model": JobSweepAnswer}}, openapi_extra=takes(JobSweepIn))
@needs(AccessRole.OPERATOR)
async def resume_jobs(scope: ScopeDep, body: Annotated[Body[JobSweepIn], Depends(body_of(JobSweepIn))]) -> Response:
    """Resume all paused jobs that match, at most `limit`, oldest first. Repeat the request while `more` is true."""
    return await _changed(scope, pause_matching.resuming(body.shape.note), body.shape)


async def _changed(scope: Scope, verb: pause_matching.Verb, wish: JobSweepIn) -> Response:
    only = jobs_meant(wish)
    if only == JobFilter():
        raise Invalid(Refused.CHANGES_EVERY_JOB(), Hint.NARROW_JOBS())
    done = await pause_matching.change_matching(scope, verb, only, wish.limit, dry_run=wish.dry_run)
    return answer(JobSweepAnswer.encode(done, dry_run=wish.dry_run))


@router.post("/{job}/pause", responses={200: {"model": JobOut}}, openapi_extra=takes(Noted, required=False))
@needs(AccessRole.OPERATOR)
async def pause_job(scope: ScopeDep, job: str, body: Annotated[Body[Noted], Depends(body_of(Noted))]) -> Response:
    """Pause a job: no new slots fire, and waiting instances stay waiting."""
    return await _shown(scope, await jobs.pause_job(scope, job, body.shape.note))


@router.post("/{job}/resume", responses={200: {"model": JobOut}}, openapi_extra=takes(Noted, required=False))
@needs(AccessRole.OPERATOR)
async def resume_job(scope: ScopeDep, job: str, body: Annotated[Body[Noted], Depends(body_of(Noted))]) -> Response:
    """Resume a paused job."""
    return await _shown(scope, await jobs.resume_job(scope, job, body.shape.note))
