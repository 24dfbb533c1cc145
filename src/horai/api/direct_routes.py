"""Routes of single writes that are served without FastAPI's search for a route and its dependencies.

Half of the time of a put was spent there. Such a route is declared like any other, with its role, its parameters and its
place in the OpenAPI; `directly` names the function that reads the request in FastAPI's place. Roles, turns and
Idempotency-Keys are the same code for both.
"""

from collections.abc import Iterable
from typing import Any

from fastapi import FastAPI
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from horai.api.idempotency import DIRECT, Handler
from horai.api.request_headers import IndexedRequest
from horai.api.route import RoleRoute


class DirectRoutes:
    """The ASGI layer that serves these routes, and passes on all other requests."""

    def __init__(self, app: ASGIApp, owner: FastAPI, routes: Iterable[BaseRoute]) -> None:
        self._app = app
        self._owner = owner
        self._routes = [
            (method, route, route.get_route_handler())
            for route in routes
            if isinstance(route, RoleRoute) and hasattr(route.endpoint, DIRECT)
            for method in route.methods or ()
        ]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request, or pass it on."""
        if scope["type"] == "http":
            method, path = scope["method"], scope["path"]
            for wanted, route, handle in self._routes:
                if wanted == method and (found := route.path_regex.match(path)) is not None:
                    await self._serve(scope, receive, send, route, found.groupdict(), handle)
                    return
        await self._app(scope, receive, send)

    async def _serve(
        self, scope: Scope, receive: Receive, send: Send, route: RoleRoute, params: dict[str, Any], handle: Handler
    ) -> None:
        scope.update({"app": self._owner, "route": route, "endpoint": route.endpoint, "path_params": params})
        answered = await handle(IndexedRequest(scope, receive, send))
        await answered(scope, receive, send)
