"""Routes of holds by hand: pause and resume all dispatch, freeze and unfreeze low priority and backfills.

A caller of the platform holds the work of all tenants, any other caller that of its own tenant.
"""

from typing import Annotated

from fastapi import APIRouter, Depends, Response

from horai.api.answer import answer
from horai.api.authentication import Caller
from horai.api.body import Body, body_of
from horai.api.context import AccessScopeDep, CallerDep, takes
from horai.api.route import RoleRoute, needs
from horai.core.roles import AccessRole
from horai.features.governor import service
from horai.features.governor.routes import duration_of
from horai.features.governor.views import encode_governor
from horai.features.governor.wire import FreezeIn, GovernorOut, UnfreezeIn
from horai.operations.scope import PlatformScope
from horai.wire.jobs import Noted

router = APIRouter(prefix="/api/v1/scheduler", tags=["governor"], route_class=RoleRoute)


async def _shown(scope: PlatformScope, caller: Caller) -> Response:
    return answer(await encode_governor(scope, caller, await service.read_governor(scope)))


def _own_tenant(caller: Caller) -> int | None:
    return None if caller.is_platform else caller.tenant_id


@router.post("/pause", responses={200: {"model": GovernorOut}}, openapi_extra=takes(Noted, required=False))
@needs(AccessRole.OPERATOR, AccessRole.PLATFORM_ADMIN)
async def pause_dispatch(
    scope: AccessScopeDep, caller: CallerDep, body: Annotated[Body[Noted], Depends(body_of(Noted))]
) -> Response:
    """Hold all dispatch of the tenant; for the platform, of all tenants. Running instances finish, due ones wait."""
    tenant = None if caller.is_platform else caller.tenant
    await service.set_pause(scope, tenant, body.shape.note, is_paused=True)
    return await _shown(scope, caller)


@router.post("/resume", responses={200: {"model": GovernorOut}}, openapi_extra=takes(Noted, required=False))
@needs(AccessRole.OPERATOR, AccessRole.PLATFORM_ADMIN)
async def resume_dispatch(
    scope: AccessScopeDep, caller: CallerDep, body: Annotated[Body[Noted], Depends(body_of(Noted))]
) -> Response:
    """Release what `pause` holds. Paused queues, and tenants that the platform has paused, stay paused."""
    tenant = None if caller.is_platform else caller.tenant
    await service.set_pause(scope, tenant, body.shape.note, is_paused=False)
    return await _shown(scope, caller)


@router.post("/freeze", responses={200: {"model": GovernorOut}}, openapi_extra=takes(FreezeIn))
@needs(AccessRole.OPERATOR, AccessRole.PLATFORM_ADMIN)
async def freeze_work(
    scope: AccessScopeDep, caller: CallerDep, body: Annotated[Body[FreezeIn], Depends(body_of(FreezeIn))]
) -> Response:
    """Hold low-priority work, or refuse new backfills, until it is unfrozen or the time is over."""
    given = body.shape
    lasts = duration_of("expiresIn", given.expires_in)
    await service.freeze(scope, _own_tenant(caller), given.what, given.note, lasts)
    return await _shown(scope, caller)


@router.post("/unfreeze", responses={200: {"model": GovernorOut}}, openapi_extra=takes(UnfreezeIn))
@needs(AccessRole.OPERATOR, AccessRole.PLATFORM_ADMIN)
async def unfreeze_work(
    scope: AccessScopeDep, caller: CallerDep, body: Annotated[Body[UnfreezeIn], Depends(body_of(UnfreezeIn))]
) -> Response:
    """Release what `freeze` holds."""
    await service.unfreeze(scope, _own_tenant(caller), body.shape.what, body.shape.note)
    return await _shown(scope, caller)
