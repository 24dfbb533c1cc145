"""Idempotency-Key on every route that writes: the first request takes effect, a repeat gets the same response."""

import hashlib
from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request, Response
from fastapi.routing import APIRoute

from horai.api.problems import problem
from horai.core.errors import HoraiError
from horai.db.idempotency import KeptAnswer
from horai.operations.idempotency import Keyed, RepeatedRequest
from horai.operations.request_keys import Once, check_request_key

HEADER = "Idempotency-Key"
REPLAYED = "Idempotency-Replayed"
WRITES = frozenset({"PUT", "POST", "PATCH", "DELETE"})
KEPT_HEADERS = ("content-type", "cache-control", "etag", "location")
LONGEST_VERB = 300
DIRECT = "__horai_direct__"
"""The attribute of an endpoint that a function serves instead of FastAPI."""

Handler = Callable[[Request], Coroutine[Any, Any, Response]]


class OnceShown(Response):
    """A response with a secret, which is not kept with an Idempotency-Key: a repeat gets `repeat` instead."""

    def __init__(self, first: Response, repeat: Response) -> None:
        super().__init__(bytes(first.body), first.status_code, dict(first.headers))
        self.repeat = repeat


class RepeatSafe(APIRoute):
    """A route whose writes accept a key. Routes that declare the header (create, trigger) handle the key themselves."""

    def get_route_handler(self) -> Handler:
        """Wrap the handler of a write."""
        handle: Handler = getattr(self.endpoint, DIRECT, None) or super().get_route_handler()
        takes_it = any(header.alias == HEADER for header in self.dependant.header_params)
        if takes_it or not WRITES.intersection(self.methods or ()):
            return handle

        async def answer(request: Request) -> Response:
            key = request.headers.get(HEADER)
            return await handle(request) if key is None else await _once(request, key, handle)

        return answer


async def _once(request: Request, key: str, handle: Handler) -> Response:
    check_request_key(key)
    keyed = request.state.keyed = Keyed(_verb(request), lambda: _sent(request, key))
    try:
        async with keyed:
            answered = await _answered(request, handle)
            await keyed.keep(_kept(answered))
            return answered
    except RepeatedRequest as repeated:
        first = repeated.answer
        return Response(first.body, first.status, {**first.headers, REPLAYED: "true"})


async def _answered(request: Request, handle: Handler) -> Response:
    """Return the response to store. An error is stored only if it took effect; others the client may fix and resend."""
    try:
        return await handle(request)
    except HoraiError as error:
        if not error.took_effect:
            raise
        return problem(error)


def _kept(answered: Response) -> KeptAnswer:
    answered = answered.repeat if isinstance(answered, OnceShown) else answered
    headers = {name: answered.headers[name] for name in KEPT_HEADERS if name in answered.headers}
    return KeptAnswer(answered.status_code, headers, bytes(answered.body))


def _verb(request: Request) -> str:
    """Return the method and the path as sent. The same key on another path is another key."""
    path = request.scope["raw_path"].decode("latin-1")
    text = f"{request.method} {path}"
    return text if len(text) <= LONGEST_VERB else f"{text[:100]} sha256={hashlib.sha256(text.encode()).hexdigest()}"


def _sent(request: Request, key: str) -> Once | None:
    """Return the key with the query and, if the route reads one, the body. Return None for a dry run."""
    if getattr(request.state, "is_dry_run", False):
        return None
    return Once(key, request.scope["query_string"] + b"\n" + getattr(request.state, "body", b""))
