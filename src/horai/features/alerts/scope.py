"""The owner of alerts: the tenant of the caller, or the platform for a caller without a tenant."""

from typing import Annotated

from fastapi import Depends, Request

from horai.api.authentication import Caller
from horai.api.context import access_scope_of, scope_of
from horai.operations.scope import AnyScope, PlatformScope

PLATFORM = 0
"""The owner of what belongs to no tenant."""


async def alert_scope_of(request: Request) -> AnyScope:
    """Return the scope of the caller's tenant, behind row-level security; that of the platform without a tenant."""
    caller: Caller = request.state.caller
    return await access_scope_of(request) if caller.tenant_id is None else await scope_of(request)


def owner_of(scope: AnyScope) -> int:
    """Return the tenant whose rows the scope reads and writes; `PLATFORM` for those of none."""
    return PLATFORM if isinstance(scope, PlatformScope) else scope.tenant_id


def tenant_of(scope: AnyScope) -> int | None:
    """Return the tenant of the scope for the audit log."""
    return None if isinstance(scope, PlatformScope) else scope.tenant_id


AlertScopeDep = Annotated[AnyScope, Depends(alert_scope_of)]
