"""Routes of sinks."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response

from horai.api.answer import answer
from horai.api.body import Body, body_of
from horai.api.context import ScopeDep, VersionDep, takes
from horai.api.cursors import decode_cursor, page_cursor, without_nul
from horai.api.paging import PageQuery
from horai.api.replica_reads import may_lag
from horai.api.route import RoleRoute, needs
from horai.core.masking import shown_target
from horai.core.roles import AccessRole
from horai.features.outbox import service
from horai.features.outbox.service import SinkView
from horai.features.outbox.wire import SinkIn, SinkList, SinkOut, SinkReplayed, SinkReplayIn
from horai.wire.encode import Encoded
from horai.wire.jobs import Noted

router = APIRouter(prefix="/api/v1/sinks", tags=["sinks"], route_class=RoleRoute)


def _encode(view: SinkView) -> Encoded:
    row, place = view.row, shown_target(view.row.place)
    return SinkOut.encode(
        row,
        url=place.get("url"),
        headers=place.get("headers"),
        broker=place.get("broker"),
        subject=place.get("subject"),
        topic=place.get("topic"),
        behind=view.lag.events,
        lag_seconds=round(view.lag.age, 3),
    )


def _shown(view: SinkView, status: int = 200) -> Response:
    return answer(_encode(view), status, {"ETag": f'"{view.row.version}"'})


@router.get("", responses={200: {"model": SinkList}})
@needs(AccessRole.VIEWER)
@may_lag
async def get_sinks(scope: ScopeDep, query: Annotated[PageQuery, Query()]) -> Response:
    """List the sinks of the tenant by name."""
    after = "" if query.cursor is None else without_nul(decode_cursor(query.cursor))
    views = await service.list_sinks(scope, after, query.limit)
    following = page_cursor(views[-1].row.name) if len(views) == query.limit else None
    return answer(SinkList.encode(items=[_encode(view) for view in views], next_cursor=following))


@router.get("/{name}", responses={200: {"model": SinkOut}})
@needs(AccessRole.VIEWER)
async def get_sink(scope: ScopeDep, name: str) -> Response:
    """Read a sink."""
    return _shown(await service.read_sink(scope, name))


@router.put("/{name}", responses={200: {"model": SinkOut}, 201: {"model": SinkOut}}, openapi_extra=takes(SinkIn))
@needs(AccessRole.ADMIN)
async def put_sink(
    scope: ScopeDep, name: str, body: Annotated[Body[SinkIn], Depends(body_of(SinkIn))], if_version: VersionDep
) -> Response:
    """Create a sink, which gets the events from now on, or change one, which goes on where it was."""
    view, is_new = await service.put_sink(scope, name, body.given(), if_version)
    return _shown(view, 201 if is_new else 200)


@router.delete("/{name}", status_code=204)
@needs(AccessRole.ADMIN)
async def delete_sink(scope: ScopeDep, name: str) -> Response:
    """Delete a sink. Events that it has not got are not sent."""
    await service.delete_sink(scope, name)
    return Response(status_code=204)


@router.post("/{name}/pause", responses={200: {"model": SinkOut}}, openapi_extra=takes(Noted, required=False))
@needs(AccessRole.OPERATOR)
async def pause_sink(scope: ScopeDep, name: str, body: Annotated[Body[Noted], Depends(body_of(Noted))]) -> Response:
    """Send nothing to a sink until it is resumed. Events are kept for 7 days."""
    return _shown(await service.set_paused(scope, name, is_paused=True, note=body.shape.note))


@router.post("/{name}/resume", responses={200: {"model": SinkOut}}, openapi_extra=takes(Noted, required=False))
@needs(AccessRole.OPERATOR)
async def resume_sink(scope: ScopeDep, name: str, body: Annotated[Body[Noted], Depends(body_of(Noted))]) -> Response:
    """Send a paused or parked sink the events that it has not got, at once."""
    return _shown(await service.set_paused(scope, name, is_paused=False, note=body.shape.note))


@router.post("/{name}/replay", responses={200: {"model": SinkReplayed}}, openapi_extra=takes(SinkReplayIn))
@needs(AccessRole.OPERATOR)
async def replay_sink(
    scope: ScopeDep, name: str, body: Annotated[Body[SinkReplayIn], Depends(body_of(SinkReplayIn))]
) -> Response:
    """Send a sink all events since a time again, in order."""
    replayed = await service.replay_sink(scope, name, body.shape.since)
    return answer(SinkReplayed.encode(replayed=replayed))
