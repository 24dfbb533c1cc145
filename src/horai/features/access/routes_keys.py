"""Routes of keys."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response

from horai.api.answer import answer
from horai.api.body import Body, body_of
from horai.api.context import AccessScopeDep, CallerDep, takes
from horai.api.cursors import page_cursor
from horai.api.idempotency import OnceShown
from horai.api.paging import PageQuery
from horai.api.problems import problem
from horai.api.route import RoleRoute, needs
from horai.core.errors import Duplicate
from horai.core.roles import AccessRole
from horai.features.access import service
from horai.features.access.service import KeyWish
from horai.features.access.wire import KeyIn, KeyList, KeyOut, NewKeyOut
from horai.text import Hint, Refused

router = APIRouter(prefix="/api/v1/keys", tags=["access"], route_class=RoleRoute)


@router.post("", status_code=201, responses={201: {"model": NewKeyOut}}, openapi_extra=takes(KeyIn))
@needs(AccessRole.ADMIN, AccessRole.PLATFORM_ADMIN)
async def create_key(
    scope: AccessScopeDep, caller: CallerDep, body: Annotated[Body[KeyIn], Depends(body_of(KeyIn))]
) -> Response:
    """Create a key. Its text is in this answer only. After the first key, the server serves no request without one."""
    given = body.shape
    wish = KeyWish(AccessRole(given.role), given.tenant, given.name, given.networks or (), given.expires_at)
    shown = await service.create_key(scope, caller, wish)
    key = shown.row.id
    created = answer(NewKeyOut.encode(shown.row, key=shown.text), 201, {"Location": f"/api/v1/keys/{key}"})
    again = Duplicate(Refused.KEY_SHOWN_ONCE(key=key), Hint.REVOKE_AND_CREATE(key=key), extra={"keyId": key})
    return OnceShown(created, problem(again))


@router.get("", responses={200: {"model": KeyList}})
@needs(AccessRole.ADMIN, AccessRole.PLATFORM_ADMIN)
async def get_keys(scope: AccessScopeDep, caller: CallerDep, query: Annotated[PageQuery, Query()]) -> Response:
    """List the keys of the tenant, newest first; for the platform, those of every tenant. No key's text is shown."""
    rows = await service.list_keys(scope, caller, query.before, query.limit)
    following = page_cursor(str(rows[-1].number)) if len(rows) == query.limit else None
    return answer(KeyList.encode(items=rows, next_cursor=following))


@router.delete("/{key}", responses={200: {"model": KeyOut}})
@needs(AccessRole.ADMIN, AccessRole.PLATFORM_ADMIN)
async def revoke_key(scope: AccessScopeDep, caller: CallerDep, key: str) -> Response:
    """Revoke a key. Every node refuses it within a second. The server stays closed without keys."""
    return answer(KeyOut.encode(await service.revoke_key(scope, caller, key)))
