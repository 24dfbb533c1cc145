"""The headers of a request, indexed once: the layers of the API ask for about ten of them by name."""

from typing import Any

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import Scope

HEADERS = "horai.headers"


class IndexedHeaders(Headers):
    """Headers as Starlette has them: of a name that occurs twice, the first value counts."""

    def __init__(self, scope: Scope) -> None:
        super().__init__(raw=scope["headers"])
        self._first = dict(reversed(scope["headers"]))

    def __getitem__(self, key: str) -> str:
        return self._first[key.lower().encode("latin-1")].decode("latin-1")

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and key.lower().encode("latin-1") in self._first

    def get(self, key: str, /, default: Any = None) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride] - has overloads
        """Return the value of a header, or `default`."""
        value = self._first.get(key.lower().encode("latin-1"))
        return default if value is None else value.decode("latin-1")


class IndexedRequest(Request):
    """A request whose headers the guard has indexed."""

    @property
    def headers(self) -> Headers:
        """Return the headers."""
        return self.scope[HEADERS]
