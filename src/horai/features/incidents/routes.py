"""Routes of incidents, for the platform."""

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
from horai.features.incidents import service
from horai.features.incidents.service import IncidentHistory
from horai.features.incidents.wire import IncidentDetail, IncidentIn, IncidentList, IncidentNoteIn
from horai.wire.jobs import Noted

router = APIRouter(prefix="/api/v1/incidents", tags=["governor"], route_class=RoleRoute)


class IncidentQuery(PageQuery):
    """The incidents to list: `open=true` only those that are open, `open=false` only those that are closed."""

    open: bool | None = None


def _shown(history: IncidentHistory, status: int = 200) -> Response:
    return answer(IncidentDetail.encode(history.row, timeline=history.timeline), status)


@router.get("", responses={200: {"model": IncidentList}})
@needs(AccessRole.PLATFORM_ADMIN)
@may_lag
async def get_incidents(scope: AccessScopeDep, query: Annotated[IncidentQuery, Query()]) -> Response:
    """List incidents, newest first."""
    rows = await service.list_incidents(scope, query.before, query.limit, query.open)
    following = page_cursor(str(rows[-1].id)) if len(rows) == query.limit else None
    return answer(IncidentList.encode(items=rows, next_cursor=following))


@router.post("", status_code=201, responses={201: {"model": IncidentDetail}}, openapi_extra=takes(IncidentIn))
@needs(AccessRole.PLATFORM_ADMIN)
async def create_incident(
    scope: AccessScopeDep, body: Annotated[Body[IncidentIn], Depends(body_of(IncidentIn))]
) -> Response:
    """Open an incident by hand."""
    given = body.shape
    return _shown(await service.open_by_hand(scope, given.severity, given.title, given.note), 201)


@router.get("/{incident}", responses={200: {"model": IncidentDetail}})
@needs(AccessRole.PLATFORM_ADMIN)
async def get_incident(scope: AccessScopeDep, incident: str) -> Response:
    """Read an incident with its timeline."""
    return _shown(await service.read_incident(scope, incident))


@router.post("/{incident}/notes", responses={200: {"model": IncidentDetail}}, openapi_extra=takes(IncidentNoteIn))
@needs(AccessRole.PLATFORM_ADMIN)
async def add_incident_note(
    scope: AccessScopeDep, incident: str, body: Annotated[Body[IncidentNoteIn], Depends(body_of(IncidentNoteIn))]
) -> Response:
    """Add a note to the timeline."""
    return _shown(await service.add_note(scope, incident, body.shape.note))


@router.post(
    "/{incident}/close", responses={200: {"model": IncidentDetail}}, openapi_extra=takes(Noted, required=False)
)
@needs(AccessRole.PLATFORM_ADMIN)
async def close_incident(
    scope: AccessScopeDep, incident: str, body: Annotated[Body[Noted], Depends(body_of(Noted))]
) -> Response:
    """Close an incident. A mode that is in force goes on."""
    return _shown(await service.close_by_hand(scope, incident, body.shape.note))
