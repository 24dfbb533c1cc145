"""The number of jobs. The route is not below `/jobs`, where `count` may be the name of a job."""

from typing import Annotated

from fastapi import APIRouter, Query, Response

from horai.api.answer import answer
from horai.api.context import ScopeDep
from horai.api.replica_reads import may_lag
from horai.api.route import RoleRoute, needs
from horai.api.routes.jobs import JobCountQuery
from horai.core.roles import AccessRole
from horai.db.job_lists import count_jobs
from horai.wire.counts import CountOut

router = APIRouter(prefix="/api/v1", tags=["jobs"], route_class=RoleRoute)


@router.get("/job-count", responses={200: {"model": CountOut}})
@needs(AccessRole.VIEWER)
@may_lag
async def get_job_count(scope: ScopeDep, query: Annotated[JobCountQuery, Query()]) -> Response:
    """Count the jobs that match, with the filters of the list.

    The count reads the newest 100,000 jobs. If there are others, `more` is true and at least `count` jobs match.
    """
    async with scope.read() as connection:
        counted = await count_jobs(connection, scope.tenant_id, query.only)
    return answer(CountOut.encode(counted))
