"""Routes of the sign-in with an identity provider. A browser comes here by navigation, without a key."""

import time
from typing import Annotated
from urllib.parse import urlencode, urlsplit

from fastapi import APIRouter, FastAPI, Query, Request, Response
from starlette.responses import RedirectResponse

from horai.api.answer import answer
from horai.api.denied_writes import DeniedWrites
from horai.api.failed_attempts import FailedAttempts
from horai.api.problems import problem_response
from horai.api.route import RoleRoute, needs
from horai.api.session_cookie import set_session
from horai.core.actor import Actor, ActorKind
from horai.core.errors import (
    Forbidden,
    HoraiError,
    Invalid,
    NotFound,
    ProviderUnavailable,
    RetryLimited,
    Unauthenticated,
)
from horai.core.settings import ServerAccess
from horai.features.oidc.rules import is_own_page
from horai.features.oidc.service import CALLBACK, PENDING, ProviderAnswer, SignIn
from horai.features.oidc.wire import SignInOptionsOut
from horai.text import Hint, Refused, Wrong

router = APIRouter(prefix="/api/v1/session", tags=["access"], route_class=RoleRoute)

BROWSER = "__Host-horai-sign-in"
MOST_BEGUN = 100
"""Sign-ins that one address may begin in a minute: each stores a row."""
LONGEST = 4_096
NO_STORE = {"Cache-Control": "no-store"}
Parameter = Annotated[str | None, Query(max_length=LONGEST)]


def prepare(app: FastAPI) -> None:
    """Add the sign-in of the server's provider, if it has one."""
    access: ServerAccess = app.state.access
    app.state.sign_in = None
    if access.oidc is not None and access.public_url is not None:
        app.state.sign_in = SignIn(app.state.context.pool, access.oidc, access.public_url)
    app.state.begun_sign_ins = FailedAttempts(MOST_BEGUN)


@router.get("/options", responses={200: {"model": SignInOptionsOut}})
@needs()
async def get_sign_in_options(request: Request) -> Response:
    """Read how users can sign in."""
    access: ServerAccess = request.app.state.access
    host = None if access.oidc is None else urlsplit(access.oidc.issuer).hostname
    return answer(SignInOptionsOut.encode(provider=host), headers=NO_STORE)


@router.get("/oidc", status_code=303, response_class=RedirectResponse)
@needs()
async def begin_sign_in(
    request: Request, return_to: Annotated[str, Query(alias="returnTo", max_length=LONGEST)] = "/"
) -> Response:
    """Begin a sign-in: the browser is sent to the identity provider, and comes back to the page `returnTo`."""
    if not is_own_page(return_to):
        raise Invalid.field("returnTo", Wrong.NOT_OUR_PAGE())
    try:
        _count_begun(request)
        begun = await _sign_in(request).begin(return_to)
    except (NotFound, RetryLimited, ProviderUnavailable) as error:
        return _turned_away(request, error)
    sent = RedirectResponse(begun.address, 303, NO_STORE)
    length = int(PENDING.total_seconds())
    # Lax: the provider's page sends the browser back, and a strict cookie would stay behind.
    sent.set_cookie(BROWSER, begun.browser, length, path="/", secure=True, httponly=True, samesite="lax")
    return sent


@router.get("/oidc/callback", status_code=303, response_class=RedirectResponse)
@needs()
async def finish_sign_in(
    request: Request,
    state: Parameter = None,
    code: Parameter = None,
    error: Parameter = None,
    iss: Parameter = None,
) -> Response:
    """Finish a sign-in with the answer of the identity provider, and open a session of the user for 12 hours."""
    given = ProviderAnswer(request.cookies.get(BROWSER), state, code, error, iss)
    address = request.client.host if request.client else ""
    try:
        finished = await _sign_in(request).finish(given, address, request.state.request_id)
    except (Unauthenticated, Forbidden, NotFound, ProviderUnavailable) as refused:
        await _record(request, address, refused)
        return _turned_away(request, refused)
    signed_in = RedirectResponse(finished.return_to, 303, NO_STORE)
    set_session(signed_in, finished.session)
    signed_in.delete_cookie(BROWSER, path="/", secure=True, httponly=True, samesite="lax")
    return signed_in


def _sign_in(request: Request) -> SignIn:
    sign_in: SignIn | None = request.app.state.sign_in
    if sign_in is None:
        raise NotFound(Refused.NO_PROVIDER(), Hint.SIGN_IN_BY_KEY())
    return sign_in


def _count_begun(request: Request) -> None:
    begun: FailedAttempts = request.app.state.begun_sign_ins
    address, now = request.client.host if request.client else "", time.monotonic()
    if (wait := begun.wait(address, now)) is not None:
        raise RetryLimited(Refused.TOO_MANY_SIGN_INS(), Hint.SIGN_IN_AGAIN(), extra={"retryAfter": str(wait)})
    begun.note(address, now)


async def _record(request: Request, address: str, refused: HoraiError) -> None:
    denied_writes: DeniedWrites = request.app.state.denied_writes
    unknown = Actor(ActorKind.USER, "", "", "", address, request.state.request_id)
    await denied_writes.note(None, unknown, f"GET {CALLBACK}", refused.status)


def _turned_away(request: Request, refused: HoraiError) -> Response:
    """Answer a browser with the sign-in page, which names the problem by its code, and other clients with the problem."""
    if "text/html" not in request.headers.get("accept", ""):
        told: Response = problem_response(request, refused)
    else:
        code = getattr(refused.detail, "code", refused.code)
        told = RedirectResponse(f"/?{urlencode({'signIn': code})}", 303)
    told.headers["Cache-Control"] = "no-store"
    return told
