"""Reads that a standby may answer: routes marked `may_lag`, and the header that says so.

A standby answers only if it shows the caller's own writes. If it cannot answer, or answers with an error, the primary answers
the same request: a client sees no difference but the header. Each process knows the writes that it served. A browser tells
the others by a cookie, which lasts as long as a standby may lag; any client may ask for the primary by the header.
"""

import math
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

from fastapi import Request, Response

from horai.api.authentication import COOKIE, Caller
from horai.api.context import Context
from horai.api.idempotency import WRITES, Handler
from horai.db.replicas import ReadReplicas

HEADER = "Horai-Read"
PRIMARY = "primary"
WROTE = "__Host-horai-wrote"
"""The cookie of a browser that has just written."""
LAG_MARK = "x-may-lag"
SAYS = (
    "Sent if a read replica gave the answer: `replica; lag=0.812`. The answer shows every write that is older than the lag in "
    "seconds, and all earlier writes of the caller."
)
ASKS = "`primary` makes the primary answer. Without a read replica it has no effect."
_MAY_LAG = "__horai_may_lag__"

Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])


def may_lag(endpoint: Endpoint) -> Endpoint:
    """Let a standby answer the route: a list, or figures of the console. The route must not write."""
    setattr(endpoint, _MAY_LAG, True)
    return endpoint


def lags(endpoint: Callable[..., Any]) -> bool:
    """Return whether the route is marked `may_lag`."""
    return getattr(endpoint, _MAY_LAG, False)


def writer_of(caller: Caller) -> Hashable:
    """Return the key or the user whose writes a read must show. Requests without a key count as one caller."""
    return caller.actor.kind, caller.actor.id


def read_header(lag: float | None) -> dict[str, str]:
    """Return the header of an answer that a standby gave with this lag in seconds; none if the primary gave it."""
    return {} if lag is None else {HEADER: f"replica; lag={lag:.3f}"}


async def routed(request: Request, handle: Handler, *, may_lag: bool) -> Response:
    """Answer a request by a standby if the route, the caller and the state of the standbys allow it."""
    context: Context = request.app.state.context
    replicas = context.replicas
    if replicas is None:
        return await handle(request)
    if request.method in WRITES:
        return await _noted(request, handle, replicas)
    if not may_lag:
        return await handle(request)
    answered = await _by_standby(request, handle, replicas)
    replicas.answered["primary" if answered is None else "replica"] += 1
    return await handle(request) if answered is None else answered


async def _noted(request: Request, handle: Handler, replicas: ReadReplicas) -> Response:
    """Answer a write, and record it: also one that fails may have had an effect."""
    try:
        response = await handle(request)
    finally:
        replicas.note_write(writer_of(request.state.caller))
    if COOKIE in request.cookies:
        seconds = math.ceil(replicas.reach)
        response.set_cookie(WROTE, "1", seconds, path="/", secure=True, httponly=True, samesite="strict")
    return response


async def _by_standby(request: Request, handle: Handler, replicas: ReadReplicas) -> Response | None:
    """Return the answer of a standby; None if the primary must answer."""
    if WROTE in request.cookies or request.headers.get(HEADER) == PRIMARY:
        return None
    reader = replicas.reader(writer_of(request.state.caller))
    if reader is None:
        return None
    request.state.reader = reader
    try:
        response = await handle(request)
    except Exception:  # a standby that fails, and one that lacks a row: the primary decides
        return None
    finally:
        request.state.reader = None
    for name, value in read_header(reader.lag).items():
        response.headers[name] = value
    return response
