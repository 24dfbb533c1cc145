"""Routes of group mappings, for the platform."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response

from horai.api.answer import answer
from horai.api.body import Body, body_of
from horai.api.context import AccessScopeDep, takes
from horai.api.cursors import page_cursor
from horai.api.paging import PageQuery
from horai.api.route import RoleRoute, needs
from horai.core.roles import AccessRole
from horai.features.oidc import groups
from horai.features.oidc.wire import GroupMappingIn, GroupMappingList, GroupMappingOut

router = APIRouter(prefix="/api/v1/groups", tags=["access"], route_class=RoleRoute)


@router.post("", status_code=201, responses={201: {"model": GroupMappingOut}}, openapi_extra=takes(GroupMappingIn))
@needs(AccessRole.PLATFORM_ADMIN)
async def create_group_mapping(
    scope: AccessScopeDep, body: Annotated[Body[GroupMappingIn], Depends(body_of(GroupMappingIn))]
) -> Response:
    """Give the users of a group a role in a tenant, or that of the platform."""
    given = body.shape
    made = await groups.create_mapping(scope, given.group, given.tenant, AccessRole(given.role))
    return answer(GroupMappingOut.encode(made), 201)


@router.get("", responses={200: {"model": GroupMappingList}})
@needs(AccessRole.PLATFORM_ADMIN)
async def get_group_mappings(scope: AccessScopeDep, query: Annotated[PageQuery, Query()]) -> Response:
    """List the roles of all groups, newest first."""
    rows = await groups.list_mappings(scope, query.before, query.limit)
    following = page_cursor(str(rows[-1].id)) if len(rows) == query.limit else None
    return answer(GroupMappingList.encode(items=rows, next_cursor=following))


@router.delete("/{mapping}", responses={200: {"model": GroupMappingOut}})
@needs(AccessRole.PLATFORM_ADMIN)
async def delete_group_mapping(scope: AccessScopeDep, mapping: str) -> Response:
    """Take the role from the group. Sessions that rest on it end within a second, on every node."""
    return answer(GroupMappingOut.encode(await groups.delete_mapping(scope, mapping)))
