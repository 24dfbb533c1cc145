"""Routes of tenants, for the platform."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response

from horai.api.answer import answer
from horai.api.body import Body, body_of
from horai.api.context import AccessScopeDep, takes
from horai.api.cursors import decode_cursor, page_cursor, without_nul
from horai.api.paging import PageQuery
from horai.api.route import RoleRoute, needs
from horai.core.roles import AccessRole
from horai.features.access import service
from horai.features.access.wire import TenantIn, TenantList, TenantOut

router = APIRouter(prefix="/api/v1/tenants", tags=["access"], route_class=RoleRoute)


@router.post("", status_code=201, responses={201: {"model": TenantOut}}, openapi_extra=takes(TenantIn))
@needs(AccessRole.PLATFORM_ADMIN)
async def create_tenant(scope: AccessScopeDep, body: Annotated[Body[TenantIn], Depends(body_of(TenantIn))]) -> Response:
    """Create a tenant with its signing secret. Create its first key with `POST /api/v1/keys`."""
    made = await service.create_tenant(scope.pool, scope.actor, body.shape.name, scope.keyring)
    return answer(TenantOut.encode(made), 201, {"Location": f"/api/v1/tenants/{made.name}"})


@router.get("", responses={200: {"model": TenantList}})
@needs(AccessRole.PLATFORM_ADMIN)
async def get_tenants(scope: AccessScopeDep, query: Annotated[PageQuery, Query()]) -> Response:
    """List the tenants by name."""
    after = "" if query.cursor is None else without_nul(decode_cursor(query.cursor))
    rows = await service.list_tenants(scope.pool, after, query.limit)
    following = page_cursor(rows[-1].name) if len(rows) == query.limit else None
    return answer(TenantList.encode(items=rows, next_cursor=following))


@router.get("/{tenant}", responses={200: {"model": TenantOut}})
@needs(AccessRole.PLATFORM_ADMIN)
async def get_tenant(scope: AccessScopeDep, tenant: str) -> Response:
    """Read a tenant by name."""
    return answer(TenantOut.encode(await service.find_tenant(scope.pool, tenant)))
