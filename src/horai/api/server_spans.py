"""The spans of API requests: the outermost layer of the application, which exists only if traces are on."""

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from horai.operations.traces import Traces, serving

PREFIX = "/api/"
"""Files of the console, probes and metrics have no spans."""


class ServerSpans:
    """Serves each request of the API in a span."""

    def __init__(self, app: ASGIApp, traces: Traces) -> None:
        self._app = app
        self._traces = traces

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and record it when it is answered."""
        if scope["type"] != "http" or not scope["path"].startswith(PREFIX):
            await self._app(scope, receive, send)
            return
        sent = [value.decode("latin-1") for name, value in scope["headers"] if name == b"traceparent"]
        span, method, status = self._traces.serve(sent), scope["method"], 0
        token = serving.set(span)

        async def send_noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, send_noted)
        finally:
            serving.reset(token)
            route = getattr(scope.get("route"), "path_format", None)
            self._traces.served(span, method, route, status or 500)
