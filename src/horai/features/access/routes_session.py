"""Routes of the console's session: sign in with a key, read who is signed in, sign out."""

from dataclasses import replace
from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response

from horai.api.answer import answer
from horai.api.authentication import COOKIE, Authenticator, Caller, credentials_of
from horai.api.body import Body, body_of
from horai.api.context import CallerDep, ContextDep, takes
from horai.api.route import ANY_KEY, RoleRoute, needs
from horai.features.access import service
from horai.features.access.wire import SessionIn, SessionOut
from horai.wire.encode import Encoded

router = APIRouter(prefix="/api/v1/session", tags=["access"], route_class=RoleRoute)


@router.post("", status_code=201, responses={201: {"model": SessionOut}}, openapi_extra=takes(SessionIn))
@needs()
async def sign_in(
    request: Request, context: ContextDep, body: Annotated[Body[SessionIn], Depends(body_of(SessionIn))]
) -> Response:
    """Sign in to the console with a key: the answer sets a cookie that stands for the key for 12 hours."""
    authenticator: Authenticator = request.app.state.authenticator
    caller = await authenticator.caller_of(replace(credentials_of(request), key=body.shape.key, session=None))
    session = await service.open_session(context.pool, caller.actor.id)
    signed_in = answer(_encode(caller), 201)
    length = int(service.SESSION.total_seconds())
    signed_in.set_cookie(COOKIE, session, length, path="/", secure=True, httponly=True, samesite="strict")
    return signed_in


@router.get("", responses={200: {"model": SessionOut}})
@needs(*ANY_KEY)
async def get_session(caller: CallerDep) -> Response:
    """Read who calls: the key, its tenant and its role."""
    return answer(_encode(caller), headers={"Cache-Control": "no-store"})


@router.delete("", status_code=204)
@needs()
async def sign_out(request: Request, context: ContextDep) -> Response:
    """Sign out: the session ends on every node."""
    if (session := request.cookies.get(COOKIE)) is not None:
        await service.end_session(context.pool, session)
    signed_out = Response(status_code=204)
    signed_out.delete_cookie(COOKIE, path="/", secure=True, httponly=True, samesite="strict")
    return signed_out


def _encode(caller: Caller) -> Encoded:
    is_key = not caller.is_keyless
    return SessionOut.encode(
        keyless=caller.is_keyless,
        key_id=caller.actor.id if is_key else None,
        name=caller.actor.name if is_key else None,
        role=caller.role,
        tenant=caller.tenant,
    )
