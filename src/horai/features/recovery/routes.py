"""The route of recovery, for the platform."""

from typing import Annotated

from fastapi import APIRouter, Depends, Response

from horai.api.answer import answer
from horai.api.body import Body, body_of
from horai.api.context import AccessScopeDep, takes
from horai.api.route import RoleRoute, needs
from horai.core.roles import AccessRole
from horai.features.recovery import service
from horai.features.recovery.wire import RecoverIn, RecoverOut

router = APIRouter(prefix="/api/v1/recover", tags=["governor"], route_class=RoleRoute)


@router.post("", responses={200: {"model": RecoverOut}}, openapi_extra=takes(RecoverIn))
@needs(AccessRole.PLATFORM_ADMIN)
async def recover(scope: AccessScopeDep, body: Annotated[Body[RecoverIn], Depends(body_of(RecoverIn))]) -> Response:
    """Recover the cluster after an incident: resume shards, replay 15 minutes of events, and requeue up to 5,000 dead letters.

    It takes effect once for an incident; a repeated request returns the first result.
    """
    row = await service.recover(scope, body.shape.incident)
    return answer(RecoverOut.encode(row, status="RECOVERY_COMPLETED", incident=row.incident_id))
