"""Routes of tenants, for the platform."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response

from horai.api.answer import answer
from horai.api.body import Body, body_of
from horai.api.context import AccessScopeDep, VersionDep, takes
from horai.api.cursors import decode_cursor, page_cursor, without_nul
from horai.api.paging import PageQuery
from horai.api.replica_reads import may_lag
from horai.api.route import RoleRoute, needs
from horai.core.roles import AccessRole
from horai.features.tenants import service
from horai.features.tenants.service import TenantChange, TenantSettings
from horai.features.tenants.wire import (
    QuotasOut,
    TenantDetail,
    TenantIn,
    TenantList,
    TenantOut,
    TenantPatch,
    UsageOut,
)
from horai.wire.jobs import Noted

router = APIRouter(prefix="/api/v1/tenants", tags=["tenants"], route_class=RoleRoute)


def shown(settings: TenantSettings, status: int = 200) -> Response:
    """Return a tenant with its quotas, their use and its retention, and its version as the ETag."""
    quotas, usage = QuotasOut.encode(settings.quotas), UsageOut.encode(settings.usage)
    keep = settings.keep.document()
    detail = TenantDetail.encode(
        settings.row,
        quotas=quotas,
        usage=usage,
        keep_history=keep["keepHistory"],
        keep_dead_letters=keep["keepDeadLetters"],
    )
    return answer(detail, status, {"ETag": f'"{settings.row.version}"'})


@router.post("", status_code=201, responses={201: {"model": TenantOut}}, openapi_extra=takes(TenantIn))
@needs(AccessRole.PLATFORM_ADMIN)
async def create_tenant(scope: AccessScopeDep, body: Annotated[Body[TenantIn], Depends(body_of(TenantIn))]) -> Response:
    """Create a tenant with its signing secret. Create its first key with `POST /api/v1/keys`."""
    made = await service.create_tenant(scope, body.shape.name)
    return answer(TenantOut.encode(made), 201, {"Location": f"/api/v1/tenants/{made.name}"})


@router.get("", responses={200: {"model": TenantList}})
@needs(AccessRole.PLATFORM_ADMIN)
@may_lag
async def get_tenants(scope: AccessScopeDep, query: Annotated[PageQuery, Query()]) -> Response:
    """List the tenants by name."""
    after = "" if query.cursor is None else without_nul(decode_cursor(query.cursor))
    rows = await service.list_tenants(scope, after, query.limit)
    following = page_cursor(rows[-1].name) if len(rows) == query.limit else None
    return answer(TenantList.encode(items=rows, next_cursor=following))


@router.get("/{tenant}", responses={200: {"model": TenantDetail}})
@needs(AccessRole.PLATFORM_ADMIN)
async def get_tenant(scope: AccessScopeDep, tenant: str) -> Response:
    """Read a tenant by name, with its quotas and their use."""
    return shown(await service.read_tenant(scope, tenant))


@router.patch("/{tenant}", responses={200: {"model": TenantDetail}}, openapi_extra=takes(TenantPatch))
@needs(AccessRole.PLATFORM_ADMIN)
async def patch_tenant(
    scope: AccessScopeDep,
    tenant: str,
    body: Annotated[Body[TenantPatch], Depends(body_of(TenantPatch))],
    if_version: VersionDep,
) -> Response:
    """Change the weight, the quotas and the retention of a tenant.

    Instances and jobs beyond a smaller quota stay; new ones wait. Rows beyond a shorter retention are deleted.
    """
    given = body.given()
    keep = {field: given[field] for field in ("keepHistory", "keepDeadLetters") if field in given}
    change = TenantChange(given.get("weight"), given.get("quotas") or {}, keep, if_version)
    return shown(await service.change_tenant(scope, tenant, change))


@router.post("/{tenant}/pause", responses={200: {"model": TenantDetail}}, openapi_extra=takes(Noted, required=False))
@needs(AccessRole.PLATFORM_ADMIN)
async def pause_tenant(
    scope: AccessScopeDep, tenant: str, body: Annotated[Body[Noted], Depends(body_of(Noted))]
) -> Response:
    """Hold all dispatch of a tenant. Running instances finish; its keys and its writes go on working.

    The note is kept in the audit log.
    """
    return shown(await service.pause_tenant(scope, tenant, body.shape.note))


@router.post("/{tenant}/resume", responses={200: {"model": TenantDetail}}, openapi_extra=takes(Noted, required=False))
@needs(AccessRole.PLATFORM_ADMIN)
async def resume_tenant(
    scope: AccessScopeDep, tenant: str, body: Annotated[Body[Noted], Depends(body_of(Noted))]
) -> Response:
    """Let the instances of a tenant start again."""
    return shown(await service.resume_tenant(scope, tenant, body.shape.note))


@router.delete("/{tenant}", status_code=202, responses={202: {"model": TenantDetail}})
@needs(AccessRole.PLATFORM_ADMIN)
async def delete_tenant(scope: AccessScopeDep, tenant: str, confirm: str | None = None) -> Response:
    """Delete a paused tenant with all of its data, for good. `confirm` repeats its name. The audit log stays.

    Its keys are revoked at once. Its status is `deleting` until the data is gone; then its name is free.
    """
    return shown(await service.delete_tenant(scope, tenant, confirm), 202)
