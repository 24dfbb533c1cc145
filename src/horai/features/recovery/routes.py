"""The route of recovery, for the platform."""

from typing import Annotated, cast

from fastapi import APIRouter, Depends, Response

from horai.api.answer import answer
from horai.api.body import Body, body_of
from horai.api.context import AccessScopeDep, Context, ContextDep, takes
from horai.api.route import RoleRoute, needs
from horai.core.roles import AccessRole
from horai.db.pool import Lender, TenantPool, TenantWrite
from horai.features.recovery import service
from horai.features.recovery.service import ScopeOf
from horai.features.recovery.wire import RecoverIn, RecoverOut
from horai.operations.scope import PlatformScope, Scope

router = APIRouter(prefix="/api/v1/recover", tags=["governor"], route_class=RoleRoute)


def _scopes(context: Context, scope: PlatformScope) -> ScopeOf:
    """Return how the scope of a tenant is made. A request with an Idempotency-Key has one transaction, also for tenants."""
    lender = scope.pool if isinstance(scope.pool, Lender) else None

    def scope_of(tenant_id: int, tenant: str) -> Scope:
        pool = TenantPool(context.pool, tenant_id) if lender is None else cast("Lender[TenantWrite]", lender)
        return Scope(pool, scope.wakeups, tenant_id, tenant, scope.actor, context.hooks, keyring=context.keyring)

    return scope_of


@router.post("", responses={200: {"model": RecoverOut}}, openapi_extra=takes(RecoverIn))
@needs(AccessRole.PLATFORM_ADMIN)
async def recover(
    scope: AccessScopeDep, context: ContextDep, body: Annotated[Body[RecoverIn], Depends(body_of(RecoverIn))]
) -> Response:
    """Recover the cluster after an incident: resume shards, replay 15 minutes of events, and requeue up to 5,000 dead letters.

    It takes effect once for an incident; a repeated request returns the first result.
    """
    row = await service.recover(scope, _scopes(context, scope), body.shape.incident)
    return answer(RecoverOut.encode(row, status="RECOVERY_COMPLETED", incident=row.incident_id))
