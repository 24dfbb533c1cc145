"""The headers of a request, indexed once: the layers of the API ask for about ten of them by name."""

from functools import cached_property
from typing import Any

from starlette.datastructures import Headers, State
from starlette.requests import Request
from starlette.types import Scope

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

    @cached_property
    def headers(self) -> Headers:  # pyright: ignore[reportIncompatibleVariableOverride] - a property there
        """Return the headers."""
        return self.scope[HEADERS]

    @cached_property
    def state(self) -> State:  # pyright: ignore[reportIncompatibleVariableOverride] - a property there
        """Return the state, which the guard has begun."""
        return State(self.scope["state"])
