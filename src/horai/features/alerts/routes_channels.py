"""Routes of alert channels. No response has a URL, a secret or a password."""

from collections.abc import Mapping
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response

from horai.api.answer import answer
from horai.api.body import Body, body_of
from horai.api.context import ContextDep, VersionDep, takes
from horai.api.cursors import decode_cursor, page_cursor, without_nul
from horai.api.paging import PageQuery
from horai.api.replica_reads import may_lag
from horai.api.route import RoleRoute, needs
from horai.core.roles import AccessRole
from horai.features.alerts import service
from horai.features.alerts.channel_test import call_channel
from horai.features.alerts.channels import OF_KIND, shown_config
from horai.features.alerts.routes_firing import encode_delivery
from horai.features.alerts.scope import AlertScopeDep
from horai.features.alerts.store import ChannelRow
from horai.features.alerts.wire import ChannelFields, ChannelIn, ChannelList, ChannelOut, DeliveryOut
from horai.wire.encode import Encoded

router = APIRouter(prefix="/api/v1/alerts/channels", tags=["alerts"], route_class=RoleRoute)


def _encode(row: ChannelRow) -> Encoded:
    shown = shown_config(row.config)
    values = {("from_" if name == "from" else name): shown.get(name) for name in OF_KIND}
    return ChannelOut.encode(row, **values)


def _shown(row: ChannelRow, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return answer(_encode(row), status, {"ETag": f'"{row.version}"', **(headers or {})})


@router.get("", responses={200: {"model": ChannelList}})
@needs(AccessRole.VIEWER, AccessRole.PLATFORM_ADMIN)
@may_lag
async def get_channels(scope: AlertScopeDep, query: Annotated[PageQuery, Query()]) -> Response:
    """List the channels of the tenant by name; for the platform, those of no tenant."""
    after = "" if query.cursor is None else without_nul(decode_cursor(query.cursor))
    rows = await service.list_channels(scope, after, query.limit)
    following = page_cursor(rows[-1].name) if len(rows) == query.limit else None
    return answer(ChannelList.encode(items=[_encode(row) for row in rows], next_cursor=following))


@router.post("", status_code=201, responses={201: {"model": ChannelOut}}, openapi_extra=takes(ChannelIn))
@needs(AccessRole.ADMIN, AccessRole.PLATFORM_ADMIN)
async def create_channel(
    scope: AlertScopeDep, body: Annotated[Body[ChannelIn], Depends(body_of(ChannelIn))]
) -> Response:
    """Create a channel. Nothing is sent until a rule uses it, or a test call."""
    given = body.shape.model_dump(by_alias=True)
    made = await service.create_channel(scope, body.shape.name, given)
    return _shown(made, 201, {"Location": f"/api/v1/alerts/channels/{made.name}"})


@router.get("/{name}", responses={200: {"model": ChannelOut}})
@needs(AccessRole.VIEWER, AccessRole.PLATFORM_ADMIN)
async def get_channel(scope: AlertScopeDep, name: str) -> Response:
    """Read a channel."""
    return _shown(await service.read_channel(scope, name))


@router.put("/{name}", responses={200: {"model": ChannelOut}}, openapi_extra=takes(ChannelFields))
@needs(AccessRole.ADMIN, AccessRole.PLATFORM_ADMIN)
async def put_channel(
    scope: AlertScopeDep,
    name: str,
    body: Annotated[Body[ChannelFields], Depends(body_of(ChannelFields))],
    if_version: VersionDep,
) -> Response:
    """Replace all fields of a channel. `***` keeps a stored value while the host stays."""
    return _shown(await service.replace_channel(scope, name, body.shape.model_dump(by_alias=True), if_version))


@router.delete("/{name}", status_code=204)
@needs(AccessRole.ADMIN, AccessRole.PLATFORM_ADMIN)
async def delete_channel(scope: AlertScopeDep, name: str, if_version: VersionDep) -> Response:
    """Delete a channel. It is refused while a rule uses it."""
    await service.delete_channel(scope, name, if_version)
    return Response(status_code=204)


@router.post("/{name}/test", responses={200: {"model": DeliveryOut}})
@needs(AccessRole.OPERATOR, AccessRole.PLATFORM_ADMIN)
async def test_channel(scope: AlertScopeDep, context: ContextDep, name: str) -> Response:
    """Send a test message once, and return the real result: DELIVERED, or FAILED with the error."""
    return answer(encode_delivery(await call_channel(context, scope, name)))
