"""A small client of the REST API: urllib, no proxies, no redirects, bytes in and bytes out.

Responses stay bytes until a command decodes them: `--json` prints them unchanged.
"""

import http.client
import json
import os
import urllib.error
import urllib.request
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from email.message import Message
from typing import IO, Any
from urllib.parse import quote, urlencode, urlsplit

import msgspec

from horai import __version__
from horai.cli.credentials import stored_key
from horai.cli.errors import BadUsage, CommandFailed, NotThere
from horai.cli.hints import hint_of
from horai.db.database_location import secret

TIMEOUT = 30.0
LONGEST_PAGE = 500
PART = 64 * 1024
"""Bytes of a streamed response that are read at once."""


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A handler that follows no redirects: the API key is only for the server it was given for."""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Message, newurl: str
    ) -> None:
        return None


class _Page(msgspec.Struct):
    items: list[msgspec.Raw]
    next_cursor: str | None = msgspec.field(name="nextCursor", default=None)


@dataclass(frozen=True, slots=True)
class RestClient:
    """A client of one server, with an API key if there is one."""

    server: str
    api_key: str | None = None

    def call(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, headers: Mapping[str, str] | None = None
    ) -> bytes:
        """Send a request and return the body of a successful response. Raises `CommandFailed` otherwise."""
        with self._opened(method, path, body, headers) as response:
            return response.read()

    def stream(self, path: str, query: Mapping[str, str | int | None], write: Callable[[bytes], object]) -> None:
        """Pass the body of a response to `write` as it arrives. Raises `CommandFailed` if it does not arrive whole."""
        with self._opened("GET", path + _query(query)) as response:
            while part := response.read(PART):
                write(part)

    @contextmanager
    def _opened(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, headers: Mapping[str, str] | None = None
    ) -> Generator[IO[bytes]]:
        data = None if body is None else msgspec.json.encode(body)
        named = {"Accept": "application/json", "User-Agent": f"horai/{__version__}", **(headers or {})}
        if data is not None:
            named["Content-Type"] = "application/json"
        if self.api_key is not None:
            named["Authorization"] = f"Bearer {self.api_key}"
        request = urllib.request.Request(self.server + path, data, named, method=method)  # noqa: S310 - checked in client_of
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), _NoRedirect)
        try:
            with opener.open(request, timeout=TIMEOUT) as response:
                yield response
        except urllib.error.HTTPError as error:
            with error:  # its connection ends here
                raise _refused(self.server, error.code, error.read()) from error
        except (OSError, http.client.HTTPException) as error:
            raise _unreachable(self.server, error) from error

    def page(self, path: str, query: Mapping[str, str | int | None], everything: bool) -> bytes:
        """Return the first page of a list, or with `everything` all of its pages as one."""
        limit = query.get("limit") or (LONGEST_PAGE if everything else None)
        answer = self.call("GET", path + _query({**query, "limit": limit}))
        if not everything:
            return answer
        page = _page_of(self.server, answer)
        items = page.items
        while page.next_cursor is not None:
            following = {**query, "limit": limit, "cursor": page.next_cursor}
            page = _page_of(self.server, self.call("GET", path + _query(following)))
            items += page.items
        return msgspec.json.encode({"items": items, "nextCursor": None})


def checked_address(server: str) -> str:
    """Return the address of a server without a slash at its end. Raises `BadUsage` if it is none."""
    try:
        parts = urlsplit(server)
        is_address = parts.scheme in {"http", "https"} and bool(parts.hostname) and (parts.port or 0) >= 0
    except ValueError:
        is_address = False
    if not is_address or not server.isascii() or not server.isprintable() or " " in server or "?" in server:
        raise BadUsage(f"{server!r} is not the address of a server.", "Write one such as http://127.0.0.1:8470.")
    return server.rstrip("/")


def client_of(server: str, api_key: str | None) -> RestClient:
    """Return the client that the flags, the environment and `horai login` describe."""
    address = checked_address(server)
    key = api_key or secret("HORAI_API_KEY", os.environ) or stored_key(address)
    if key is not None and not (key.isascii() and key.isprintable()):
        raise BadUsage(
            "The API key has characters that are not printable ASCII.", "Check HORAI_API_KEY or HORAI_API_KEY_FILE."
        )
    return RestClient(address, key)


def path_of(*parts: str) -> str:
    """Return a path under /api/v1 with each part quoted."""
    return "/".join(["/api/v1", *(quote(part, safe="", errors="surrogateescape") for part in parts)])


def _query(given: Mapping[str, str | int | None]) -> str:
    named = {name: value for name, value in given.items() if value is not None}
    return f"?{urlencode(named, errors='surrogateescape')}" if named else ""


def _page_of(server: str, answer: bytes) -> _Page:
    try:
        return msgspec.json.decode(answer, type=_Page)
    except msgspec.DecodeError as error:
        raise _foreign(server, "no list") from error


def _refused(server: str, status: int, body: bytes) -> CommandFailed:
    try:
        problem = json.loads(body)
        detail, hint = str(problem["detail"]), hint_of(problem)
        errors = [f"{error['field']}: {error['message']}" for error in problem.get("errors") or ()]
    except (ValueError, KeyError, TypeError, AttributeError):
        return _foreign(server, f"status {status}")
    failure = NotThere if status == 404 else CommandFailed
    also = [error for error in errors if error not in detail]
    return failure(detail, hint, also, {**problem, "hint": hint} if hint else problem)


def _foreign(server: str, what: str) -> CommandFailed:
    return CommandFailed(f"{server} answered with {what}: it is not a Horai server.", "Check --server or HORAI_SERVER.")


def _unreachable(server: str, error: Exception) -> CommandFailed:
    reason = error.reason if isinstance(error, urllib.error.URLError) else error
    if isinstance(reason, TimeoutError):
        return CommandFailed(
            f"{server} did not answer within {TIMEOUT:g} s.",
            "The request may have taken effect: check before you repeat it.",
        )
    if isinstance(reason, ConnectionRefusedError):
        return CommandFailed(f"no server answers at {server}", "start one with `horai up`, or set HORAI_SERVER")
    words = (reason.strerror if isinstance(reason, OSError) else None) or repr(reason)
    return CommandFailed(f"no server answers at {server}: {words}", "start one with `horai up`, or set HORAI_SERVER")
