"""Routes of silences: times in which matching alerts are not sent."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response

from horai.api.answer import answer
from horai.api.body import Body, body_of
from horai.api.context import takes
from horai.api.cursors import next_cursor
from horai.api.paging import PageQuery
from horai.api.replica_reads import may_lag
from horai.api.route import RoleRoute, needs
from horai.core.roles import AccessRole
from horai.features.alerts import service_silences
from horai.features.alerts.scope import AlertScopeDep
from horai.features.alerts.service_silences import SilenceWish
from horai.features.alerts.wire import SilenceIn, SilenceList, SilenceOut

router = APIRouter(prefix="/api/v1/alerts/silences", tags=["alerts"], route_class=RoleRoute)


class SilenceQuery(PageQuery):
    """The silences to list: `ended=true` also those that have ended."""

    ended: bool = False


@router.get("", responses={200: {"model": SilenceList}})
@needs(AccessRole.VIEWER, AccessRole.PLATFORM_ADMIN)
@may_lag
async def get_silences(scope: AlertScopeDep, query: Annotated[SilenceQuery, Query()]) -> Response:
    """List silences, newest first."""
    rows = await service_silences.list_silences(scope, query.before, query.limit, also_ended=query.ended)
    return answer(SilenceList.encode(items=rows, next_cursor=next_cursor(rows, query.limit)))


@router.post("", status_code=201, responses={201: {"model": SilenceOut}}, openapi_extra=takes(SilenceIn))
@needs(AccessRole.OPERATOR, AccessRole.PLATFORM_ADMIN)
async def create_silence(
    scope: AlertScopeDep, body: Annotated[Body[SilenceIn], Depends(body_of(SilenceIn))]
) -> Response:
    """Hold back alerts of a rule, a job or a tag until a time. Those that still fire then are sent."""
    wish = SilenceWish(**body.shape.model_dump())
    return answer(SilenceOut.encode(await service_silences.create_silence(scope, wish)), 201)


@router.delete("/{silence}", status_code=204)
@needs(AccessRole.OPERATOR, AccessRole.PLATFORM_ADMIN)
async def delete_silence(scope: AlertScopeDep, silence: str) -> Response:
    """End a silence and delete it. Alerts that still fire are sent now."""
    await service_silences.delete_silence(scope, silence)
    return Response(status_code=204)
