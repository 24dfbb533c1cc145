"""The route of every module: it asks for a role before it reads anything else, and names the role in the OpenAPI."""

from collections.abc import Callable
from typing import Any, TypeVar

from fastapi import Request, Response
from fastapi.routing import APIRoute

from horai.api.authentication import Authenticator, Caller, credentials_of
from horai.api.denied_writes import DeniedWrites
from horai.api.idempotency import DIRECT, WRITES, Handler, RepeatSafe
from horai.api.outcome_tokens import caller_by_token, token_text_of
from horai.api.replica_reads import LAG_MARK, lags, routed
from horai.api.request_turns import METER, RequestMeter, RequestTurns
from horai.core.actor import Actor, ActorKind
from horai.core.errors import Forbidden, HoraiError, Unauthenticated
from horai.core.roles import AccessRole

Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])
_ROLES = "__horai_roles__"
_OR_TOKEN = "__horai_or_token__"  # noqa: S105 - a name
TOKEN_MARK = "x-outcome-token"  # noqa: S105 - a name
PUBLIC: tuple[AccessRole, ...] = ()
"""For `needs`: everyone may call the route, also without a key."""
ANY_KEY: tuple[AccessRole, ...] = (AccessRole.VIEWER, AccessRole.WORKER, AccessRole.PLATFORM_ADMIN)


def needs(*roles: AccessRole, or_token: bool = False) -> Callable[[Endpoint], Endpoint]:
    """Name the roles that may call a route; roles that include one of them may as well. Without a role, everyone may.

    `or_token`: the route also serves the target of an attempt, with an outcome token instead of a key.
    """

    def mark(endpoint: Endpoint) -> Endpoint:
        setattr(endpoint, _ROLES, roles)
        setattr(endpoint, _OR_TOKEN, or_token)
        return endpoint

    return mark


def _operation_id(route: APIRoute) -> str:
    """Return the name of an operation in the OpenAPI: that of its function."""
    return route.name


def directly(handler: Handler) -> Callable[[Endpoint], Endpoint]:
    """Name the function that serves a route instead of FastAPI (direct_routes.py). It reads what the endpoint takes."""

    def mark(endpoint: Endpoint) -> Endpoint:
        setattr(endpoint, DIRECT, handler)
        return endpoint

    return mark


class RoleRoute(RepeatSafe):
    """A route that serves the roles of `needs`. A route without `needs` fails when its module is imported."""

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        roles: tuple[AccessRole, ...] | None = getattr(endpoint, _ROLES, None)
        if roles is None:
            raise TypeError(f"the route {path} says with no `needs` which roles it serves")
        self.roles = roles
        self.may_lag = lags(endpoint)
        self.takes_token: bool = getattr(endpoint, _OR_TOKEN, False)
        token = {TOKEN_MARK: True} if self.takes_token else {}
        lagging = {LAG_MARK: True} if self.may_lag else {}
        shown = {**token, **lagging, "x-role": [*map(str, roles)] or ["public"]}
        options["openapi_extra"] = {**(options.get("openapi_extra") or {}), **shown}
        options["generate_unique_id_function"] = _operation_id
        super().__init__(path, endpoint, **options)

    def get_route_handler(self) -> Handler:
        """Wrap the handler: the caller is known and has the role before the body or an Idempotency-Key is read."""
        handle = super().get_route_handler()
        if not self.roles:
            return handle

        async def answer(request: Request) -> Response:
            caller = request.state.caller = await self._caller(request)
            turns: RequestTurns = request.app.state.turns
            await turns.enter(caller.tenant_id, request.scope.get(METER) or RequestMeter())
            return await routed(request, handle, may_lag=self.may_lag)

        return answer

    async def _caller(self, request: Request) -> Caller:
        """Return the caller, who has one of the roles. A denied write is recorded."""
        authenticator: Authenticator = request.app.state.authenticator
        caller: Caller | None = None
        try:
            if self.takes_token and (token := token_text_of(request)) is not None:
                return await caller_by_token(request, token)
            caller = await authenticator.caller_of(credentials_of(request))
            caller.require(self.roles)
        except (Unauthenticated, Forbidden) as denied:
            if request.method in WRITES:
                await self._record(request, caller, denied)
            raise
        return caller

    async def _record(self, request: Request, caller: Caller | None, denied: HoraiError) -> None:
        denied_writes: DeniedWrites = request.app.state.denied_writes
        address = request.client.host if request.client else ""
        unknown = Actor(ActorKind.KEY, "", "", "", address, request.state.request_id)
        tenant, actor = (None, unknown) if caller is None else (caller.tenant_id, caller.actor)
        await denied_writes.note(tenant, actor, f"{request.method} {self.path_format}", denied.status)
