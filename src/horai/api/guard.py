"""The outermost layer of the API: it refuses requests of foreign web pages and adds headers to every response.

A web page in the user's browser must not be able to call the server: it may serve without a key, or the browser may have
a session. So the guard refuses a host name that is not the server's (hosts.py) and a foreign origin.
"""

import os
import re
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocket

from horai.api.hosts import HostRules
from horai.api.problems import problem, problem_response
from horai.api.request_headers import HEADERS, IndexedHeaders
from horai.core.errors import Forbidden, HoraiError, Malformed
from horai.text import Hint, Refused

_REQUEST_ID = re.compile(r"[A-Za-z0-9_.\-]{1,128}")
_READING = frozenset({"GET", "HEAD"})
_OWN_SITE = frozenset({"same-origin", "none"})
"""Values of `Sec-Fetch-Site` with which a browser sends a page's own requests and those that a user typed."""
_SECURITY = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
    (b"content-security-policy", b"default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'"),
)
"""Headers of every response that does not have them."""


class Guard:
    """The outermost ASGI application."""

    def __init__(self, app: ASGIApp, hosts: HostRules) -> None:
        self._app = app
        self._hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] == "websocket":
            await self._pass_socket(scope, receive, send)
            return
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = scope[HEADERS] = IndexedHeaders(scope)
        self._hosts.resolve_client(scope, headers)
        request_id = _mark(scope, headers)
        mark = (b"x-request-id", request_id.encode("ascii"))
        has_started = False

        async def send_marked(message: Message) -> None:
            nonlocal has_started
            has_started = True
            if message["type"] == "http.response.start":
                sent = dict(message["headers"])
                missing = [header for header in _SECURITY if header[0] not in sent]
                message["headers"] = [*message["headers"], mark, *missing]
            await send(message)

        refusal = refused(scope["method"], headers, self._hosts)
        if refusal is not None:
            await problem(refusal)(scope, receive, send_marked)
            return
        try:
            await self._app(scope, receive, send_marked)
        except ClientDisconnect:
            return  # the protocol has counted it, and no client is left to answer
        except Exception as error:
            if has_started:
                raise
            await problem_response(Request(scope), error)(scope, receive, send_marked)
        finally:
            scope.get("state", {}).clear()  # it holds the body, and objects of a request form cycles, collected late

    async def _pass_socket(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the handshake of a WebSocket on, or refuse it. Browsers send the origin of the page with it."""
        headers = Headers(scope=scope)
        self._hosts.resolve_client(scope, headers)
        _mark(scope, headers)
        refusal = refused("GET", headers, self._hosts)
        if refusal is None:
            await self._app(scope, receive, send)
        else:
            await WebSocket(scope, receive, send).send_denial_response(problem(refusal))


def _mark(scope: Scope, headers: Headers) -> str:
    """Give the request an id: its own, or a new one."""
    given = headers.get("x-request-id", "")
    request_id = given if given and _REQUEST_ID.fullmatch(given) else os.urandom(8).hex()
    scope.setdefault("state", {})["request_id"] = request_id
    return request_id


def _host_of(origin: str) -> str | None:
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return None


def refused(method: str, headers: Headers, hosts: HostRules) -> HoraiError | None:
    """Return the error to refuse a request with, or None."""
    if len(headers.getlist("host")) > 1:
        return Malformed(Refused.TWO_HOSTS(), Hint.CHECK_CLIENT())
    host = headers.get("host", "")
    if not hosts.is_ours(host):
        hint = Hint.SET_PUBLIC_URL() if hosts.is_beyond_loopback else Hint.USE_LOOPBACK()
        return Forbidden(Refused.NOT_OUR_HOST(host=host[:100]), hint)
    origin = headers.get("origin")
    if origin is not None and _host_of(origin) != host.lower():
        return Forbidden(Refused.OTHER_ORIGIN(origin=origin[:100]), Hint.OTHER_ORIGINS())
    site = headers.get("sec-fetch-site", "none")
    if method not in _READING and site not in _OWN_SITE:
        return Forbidden(Refused.CROSS_SITE(site=site[:100]), Hint.OTHER_ORIGINS())
    return None
