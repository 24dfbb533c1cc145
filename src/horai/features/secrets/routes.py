"""Routes of named secrets. No response has a value."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response

from horai.api.answer import answer
from horai.api.body import Body, body_of
from horai.api.context import ScopeDep, takes
from horai.api.cursors import decode_cursor, page_cursor, without_nul
from horai.api.paging import PageQuery
from horai.api.route import RoleRoute, needs
from horai.core.roles import AccessRole
from horai.features.secrets import service
from horai.features.secrets.wire import SecretIn, SecretList, SecretOut, SecretValueIn

router = APIRouter(prefix="/api/v1/secrets", tags=["secrets"], route_class=RoleRoute)


@router.get("", responses={200: {"model": SecretList}})
@needs(AccessRole.ADMIN)
async def get_secrets(scope: ScopeDep, query: Annotated[PageQuery, Query()]) -> Response:
    """List the named secrets of the tenant by name, without their values."""
    after = "" if query.cursor is None else without_nul(decode_cursor(query.cursor))
    rows = await service.list_secrets(scope, after, query.limit)
    following = page_cursor(rows[-1].name) if len(rows) == query.limit else None
    return answer(SecretList.encode(items=rows, next_cursor=following))


@router.post("", status_code=201, responses={201: {"model": SecretOut}}, openapi_extra=takes(SecretIn))
@needs(AccessRole.ADMIN)
async def create_secret(scope: ScopeDep, body: Annotated[Body[SecretIn], Depends(body_of(SecretIn))]) -> Response:
    """Create a named secret. Its value is encrypted and never shown again."""
    made = await service.create_secret(scope, body.shape.name, body.shape.value)
    return answer(SecretOut.encode(made), 201, {"Location": f"/api/v1/secrets/{made.name}"})


@router.put(
    "/{name}",
    responses={200: {"model": SecretOut}, 201: {"model": SecretOut}},
    openapi_extra=takes(SecretValueIn),
)
@needs(AccessRole.ADMIN)
async def put_secret(
    scope: ScopeDep, name: str, body: Annotated[Body[SecretValueIn], Depends(body_of(SecretValueIn))]
) -> Response:
    """Create a named secret or replace its value. Calls send the new value within a second."""
    row, is_new = await service.put_secret(scope, name, body.shape.value)
    return answer(SecretOut.encode(row), 201 if is_new else 200)


@router.delete("/{name}", status_code=204)
@needs(AccessRole.ADMIN)
async def delete_secret(scope: ScopeDep, name: str) -> Response:
    """Delete a named secret. It is refused while a job sends the secret."""
    await service.delete_secret(scope, name)
    return Response(status_code=204)
