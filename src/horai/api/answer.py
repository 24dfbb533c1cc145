"""JSON responses."""

from typing import Any

import msgspec
from fastapi import Response

NO_STORE = {"Cache-Control": "no-store"}


def answer(content: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """Return a JSON response that must not be cached."""
    return Response(msgspec.json.encode(content), status, {**NO_STORE, **(headers or {})}, "application/json")
