"""Routes of the caller's own tenant."""

from fastapi import APIRouter, Response
from fastapi.responses import StreamingResponse

from horai.api.context import ScopeDep
from horai.api.route import RoleRoute, needs
from horai.core.roles import AccessRole
from horai.features.tenants import service
from horai.features.tenants.export import export_lines
from horai.features.tenants.routes import shown
from horai.features.tenants.wire import TenantDetail

router = APIRouter(prefix="/api/v1", tags=["tenants"], route_class=RoleRoute)

LINES = "application/x-ndjson"
EXPORTED = {
    "description": "One object per line, with its `kind`; the last line has the kind `end` and the number of each kind.",
    "content": {LINES: {"schema": {"type": "string"}}},
}


@router.get("/tenant", responses={200: {"model": TenantDetail}})
@needs(AccessRole.VIEWER)
async def get_own_tenant(scope: ScopeDep) -> Response:
    """Read your tenant: its status, its quotas and their use."""
    return shown(await service.read_tenant(scope, scope.tenant))


@router.get("/export", response_class=Response, responses={200: EXPORTED})
@needs(AccessRole.ADMIN)
async def export_tenant(scope: ScopeDep) -> Response:
    """Stream all data of your tenant as JSON lines: definitions, instances, history, dead letters and the audit log.

    Values that may be secret are `***`.
    """
    return StreamingResponse(export_lines(scope), media_type=LINES, headers={"Cache-Control": "no-store"})
