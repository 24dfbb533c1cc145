"""Routes of reports of drills, for the platform."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response

from horai.api.answer import answer
from horai.api.body import Body, body_of
from horai.api.context import AccessScopeDep, takes
from horai.api.cursors import page_cursor
from horai.api.paging import PageQuery
from horai.api.replica_reads import may_lag
from horai.api.route import RoleRoute, needs
from horai.core.roles import AccessRole
from horai.db.drill_reports import FiledReport
from horai.features.drills import service
from horai.features.drills.wire import DrillDetail, DrillKind, DrillList, DrillReport

router = APIRouter(prefix="/api/v1/drills", tags=["governor"], route_class=RoleRoute)


class DrillQuery(PageQuery):
    """The reports to list: `kind` only those of one kind."""

    kind: DrillKind | None = None


def _shown(filed: FiledReport, status: int = 200) -> Response:
    return answer(DrillDetail.encode(filed.summary, report=filed.report), status)


@router.get("", responses={200: {"model": DrillList}})
@needs(AccessRole.PLATFORM_ADMIN)
@may_lag
async def get_drills(scope: AccessScopeDep, query: Annotated[DrillQuery, Query()]) -> Response:
    """List reports of drills, the newest filed first."""
    rows = await service.list_reports(scope, query.before, query.limit, query.kind)
    following = page_cursor(str(rows[-1].id)) if len(rows) == query.limit else None
    return answer(DrillList.encode(items=rows, next_cursor=following))


@router.post(
    "",
    status_code=201,
    responses={200: {"model": DrillDetail}, 201: {"model": DrillDetail}},
    openapi_extra=takes(DrillReport),
)
@needs(AccessRole.PLATFORM_ADMIN)
async def file_drill(
    scope: AccessScopeDep, body: Annotated[Body[DrillReport], Depends(body_of(DrillReport))]
) -> Response:
    """File the report of a drill. A report that is filed already is answered with 200. The newest 1,000 are kept."""
    filed, is_new = await service.file_report(scope, body.shape)
    return _shown(filed, 201 if is_new else 200)


@router.get("/{drill}", responses={200: {"model": DrillDetail}})
@needs(AccessRole.PLATFORM_ADMIN)
@may_lag
async def get_drill(scope: AccessScopeDep, drill: str) -> Response:
    """Read the report of a drill."""
    return _shown(await service.read_report(scope, drill))
