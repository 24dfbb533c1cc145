"""Routes of the console's session: sign in with a key, read who is signed in, switch the tenant, sign out."""

from dataclasses import replace
from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response

from horai.api.answer import answer
from horai.api.authentication import COOKIE, Authenticator, Caller, credentials_of
from horai.api.body import Body, body_of
from horai.api.context import CallerDep, ContextDep, takes
from horai.api.route import ANY_KEY, RoleRoute, needs
from horai.api.session_cookie import forget_session, set_session
from horai.core.actor import ActorKind
from horai.features.access import service
from horai.features.access.wire import SessionChange, SessionIn, SessionOut
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
    set_session(signed_in, session)
    return signed_in


@router.get("", responses={200: {"model": SessionOut}})
@needs(*ANY_KEY)
async def get_session(caller: CallerDep) -> Response:
    """Read who calls: the key or the user, the tenant and the role."""
    return answer(_encode(caller), headers={"Cache-Control": "no-store"})


@router.patch("", responses={200: {"model": SessionOut}}, openapi_extra=takes(SessionChange))
@needs(*ANY_KEY)
async def switch_tenant(
    request: Request,
    context: ContextDep,
    caller: CallerDep,
    body: Annotated[Body[SessionChange], Depends(body_of(SessionChange))],
) -> Response:
    """Switch to another tenant of the signed-in user; null is the platform. The session gets a new cookie."""
    old = request.cookies.get(COOKIE, "")
    moved = await service.switch_tenant(context.pool, caller, old, body.shape.tenant)
    switched = answer(_encode(moved.caller), headers={"Cache-Control": "no-store"})
    set_session(switched, moved.session, moved.seconds_left)
    return switched


@router.delete("", status_code=204)
@needs()
async def sign_out(request: Request, context: ContextDep) -> Response:
    """Sign out: the session ends on every node."""
    if (session := request.cookies.get(COOKIE)) is not None:
        await service.end_session(context.pool, session)
    signed_out = Response(status_code=204)
    forget_session(signed_out)
    return signed_out


def _encode(caller: Caller) -> Encoded:
    actor, kind = caller.actor, caller.actor.kind
    return SessionOut.encode(
        keyless=caller.is_keyless,
        key_id=actor.id if kind is ActorKind.KEY else None,
        user_id=actor.id if kind is ActorKind.USER else None,
        name=None if caller.is_keyless else actor.name,
        role=caller.role,
        tenant=caller.tenant,
        grants=list(caller.grants),
    )
