"""Routes of heartbeats: external jobs report, and a rule tells when one does not."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response

from horai.api.answer import answer
from horai.api.body import Body, body_of
from horai.api.context import ScopeDep, VersionDep, takes
from horai.api.cursors import decode_cursor, page_cursor, without_nul
from horai.api.paging import PageQuery
from horai.api.replica_reads import may_lag
from horai.api.route import RoleRoute, needs
from horai.core.errors import Invalid
from horai.core.job import SECRET_NAME
from horai.core.roles import AccessRole
from horai.features.alerts import service_silences
from horai.features.alerts.store import HeartbeatRow
from horai.features.alerts.wire import HeartbeatIn, HeartbeatList, HeartbeatOut
from horai.text import mismatch
from horai.time.durations import format_duration
from horai.wire.encode import Encoded

router = APIRouter(prefix="/api/v1/heartbeats", tags=["alerts"], route_class=RoleRoute)


def _encode(row: HeartbeatRow) -> Encoded:
    return HeartbeatOut.encode(row, every=format_duration(row.every), grace=format_duration(row.grace))


@router.get("", responses={200: {"model": HeartbeatList}})
@needs(AccessRole.VIEWER)
@may_lag
async def get_heartbeats(scope: ScopeDep, query: Annotated[PageQuery, Query()]) -> Response:
    """List heartbeats by name, each with the time after which it is missing."""
    after = "" if query.cursor is None else without_nul(decode_cursor(query.cursor))
    rows = await service_silences.list_heartbeats(scope, after, query.limit)
    following = page_cursor(rows[-1].name) if len(rows) == query.limit else None
    return answer(HeartbeatList.encode(items=[_encode(row) for row in rows], next_cursor=following))


@router.put(
    "/{name}", responses={200: {"model": HeartbeatOut}, 201: {"model": HeartbeatOut}}, openapi_extra=takes(HeartbeatIn)
)
@needs(AccessRole.ADMIN)
async def put_heartbeat(
    scope: ScopeDep,
    name: str,
    body: Annotated[Body[HeartbeatIn], Depends(body_of(HeartbeatIn))],
    if_version: VersionDep,
) -> Response:
    """Create a heartbeat or change its times. The first report is expected within `every` and `grace` from now."""
    if not SECRET_NAME.fullmatch(name):
        raise Invalid.field("name", mismatch(name, SECRET_NAME))
    given = body.shape
    row, is_new = await service_silences.put_heartbeat(scope, name, given.every, given.grace, if_version)
    return answer(_encode(row), 201 if is_new else 200, {"ETag": f'"{row.version}"'})


@router.post("/{name}", responses={200: {"model": HeartbeatOut}})
@needs(AccessRole.OPERATOR, AccessRole.WORKER)
async def beat_heartbeat(scope: ScopeDep, name: str) -> Response:
    """Report that the external job is alive or has finished."""
    return answer(_encode(await service_silences.beat(scope, name)))


@router.delete("/{name}", status_code=204)
@needs(AccessRole.ADMIN)
async def delete_heartbeat(scope: ScopeDep, name: str) -> Response:
    """Delete a heartbeat."""
    await service_silences.delete_heartbeat(scope, name)
    return Response(status_code=204)
