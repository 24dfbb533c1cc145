"""Routes of alert rules."""

from collections.abc import Mapping
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response

from horai.api.answer import answer
from horai.api.body import Body, body_of
from horai.api.context import CallerDep, VersionDep, takes
from horai.api.cursors import decode_cursor, page_cursor, without_nul
from horai.api.paging import PageQuery
from horai.api.replica_reads import may_lag
from horai.api.route import RoleRoute, needs
from horai.core.roles import AccessRole
from horai.features.alerts import service
from horai.features.alerts.rules import OF_KIND
from horai.features.alerts.scope import AlertScopeDep
from horai.features.alerts.store import RuleRow
from horai.features.alerts.wire import RuleFields, RuleIn, RuleList, RuleOut
from horai.time.durations import format_duration
from horai.wire.encode import Encoded

router = APIRouter(prefix="/api/v1/alerts/rules", tags=["alerts"], route_class=RoleRoute)


def _encode(row: RuleRow) -> Encoded:
    values = {("burn_rate" if name == "burnRate" else name): row.definition.get(name) for name in OF_KIND}
    waits = {"group_wait": format_duration(row.group_wait), "repeat_every": format_duration(row.repeat_every)}
    return RuleOut.encode(row, **values, **waits)


def _shown(row: RuleRow, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return answer(_encode(row), status, {"ETag": f'"{row.version}"', **(headers or {})})


@router.get("", responses={200: {"model": RuleList}})
@needs(AccessRole.VIEWER, AccessRole.PLATFORM_ADMIN)
@may_lag
async def get_rules(scope: AlertScopeDep, query: Annotated[PageQuery, Query()]) -> Response:
    """List the rules of the tenant by name; for the platform, those of no tenant."""
    after = "" if query.cursor is None else without_nul(decode_cursor(query.cursor))
    rows = await service.list_rules(scope, after, query.limit)
    following = page_cursor(rows[-1].name) if len(rows) == query.limit else None
    return answer(RuleList.encode(items=[_encode(row) for row in rows], next_cursor=following))


@router.post("", status_code=201, responses={201: {"model": RuleOut}}, openapi_extra=takes(RuleIn))
@needs(AccessRole.ADMIN, AccessRole.PLATFORM_ADMIN)
async def create_rule(
    scope: AlertScopeDep, caller: CallerDep, body: Annotated[Body[RuleIn], Depends(body_of(RuleIn))]
) -> Response:
    """Create a rule. It reports what happens from now on."""
    given = body.shape.model_dump(by_alias=True)
    made = await service.create_rule(scope, body.shape.name, given, is_platform=caller.is_platform)
    return _shown(made, 201, {"Location": f"/api/v1/alerts/rules/{made.name}"})


@router.get("/{name}", responses={200: {"model": RuleOut}})
@needs(AccessRole.VIEWER, AccessRole.PLATFORM_ADMIN)
async def get_rule(scope: AlertScopeDep, name: str) -> Response:
    """Read a rule."""
    return _shown(await service.read_rule(scope, name))


@router.put("/{name}", responses={200: {"model": RuleOut}}, openapi_extra=takes(RuleFields))
@needs(AccessRole.ADMIN, AccessRole.PLATFORM_ADMIN)
async def put_rule(
    scope: AlertScopeDep,
    caller: CallerDep,
    name: str,
    body: Annotated[Body[RuleFields], Depends(body_of(RuleFields))],
    if_version: VersionDep,
) -> Response:
    """Replace all fields of a rule. If it watches something else from now on, its alerts are dropped."""
    given = body.shape.model_dump(by_alias=True)
    return _shown(await service.replace_rule(scope, name, given, if_version, is_platform=caller.is_platform))


@router.delete("/{name}", status_code=204)
@needs(AccessRole.ADMIN, AccessRole.PLATFORM_ADMIN)
async def delete_rule(scope: AlertScopeDep, name: str, if_version: VersionDep) -> Response:
    """Delete a rule with its alerts. The delivery log stays."""
    await service.delete_rule(scope, name, if_version)
    return Response(status_code=204)
