"""The headers of a request, indexed once: the layers of the API ask for about ten of them by name."""

from typing import Any

from starlette.datastructures import Headers, State
from starlette.requests import Request
from starlette.types import Receive, Scope, Send

HEADERS = "horai.headers"


class IndexedHeaders(Headers):
    """Headers as Starlette has them: of a name that occurs twice, the first value counts."""

    def __init__(self, scope: Scope) -> None:
        raw: list[tuple[bytes, bytes]] = scope["headers"]
        super().__init__(raw=raw)
        self._first = {name.decode("latin-1"): value.decode("latin-1") for name, value in reversed(raw)}

    def __getitem__(self, key: str) -> str:
        return self._first[key.lower()]

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and key.lower() in self._first

    def get(self, key: str, /, default: Any = None) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride] - has overloads
        """Return the value of a header, or `default`."""
        return self._first.get(key.lower(), default)


class IndexedRequest(Request):
    """A request whose headers the guard has indexed, and whose state is made once."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        super().__init__(scope, receive, send)
        self._begun = State(scope["state"])

    @property
    def headers(self) -> Headers:
        """Return the headers."""
        return self.scope[HEADERS]

    @property
    def state(self) -> State:
        """Return the state, which the guard has begun."""
        return self._begun


def way_of(headers: Headers) -> str:
    """Return the way of a write: `console` for a browser, which sends this header itself, `cli`, or `api`."""
    if "sec-fetch-site" in headers:
        return "console"
    return "cli" if headers.get("user-agent", "").startswith("horai/") else "api"
