"""Errors as RFC 9457 problems. Only this module translates them."""

from collections.abc import Callable
from typing import Any

import asyncpg
import msgspec
import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.routing import Match

from horai.api.body import invalid_shape
from horai.api.sentence_json import encode_sentence, sentence_fields
from horai.core.errors import FieldError, HoraiError, Invalid, NotFound, Unauthenticated
from horai.db.pool import GONE, RETRIED, unavailable
from horai.text import Hint, Refused
from horai.text.phrase import Phrase
from horai.wire.encode import Encoded
from horai.wire.health import FieldProblem

log = structlog.get_logger(__name__)

MEDIA_TYPE = "application/problem+json"
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
FULL: tuple[type[Exception], ...] = (
    asyncpg.DiskFullError,
    asyncpg.OutOfMemoryError,
    asyncpg.InsufficientResourcesError,
    asyncpg.ReadOnlySQLTransactionError,
    asyncpg.LockNotAvailableError,
    asyncpg.QueryCanceledError,
    asyncpg.PostgresIOError,
    *RETRIED,
)
"""Errors of a database that answers but cannot write now."""


def problem(error: HoraiError) -> JSONResponse:
    """Return the problem response for an error. It is a dict because errors add members of their own."""
    extra = dict(error.extra)
    retry_after = extra.pop("retryAfter", None)
    content: dict[str, Any] = {
        "type": f"urn:horai:problem:{error.code}",
        "title": error.title,
        "status": error.status,
        "code": error.code,
        **_sentence_json("detail", error.detail),
        **extra,
    }
    if error.hint:
        content |= _sentence_json("hint", error.hint)
    if error.errors:
        content["errors"] = [encode_field_error(fault) for fault in error.errors]
    headers = {"Retry-After": retry_after} if retry_after else {}
    if isinstance(error, Unauthenticated):
        headers["WWW-Authenticate"] = "Bearer"
    return JSONResponse(_printable(content), error.status, headers, MEDIA_TYPE)


def _sentence_json(name: str, text: str) -> dict[str, Any]:
    return {name: text, f"{name}Said": encode_sentence(text)} if isinstance(text, Phrase) else {name: text}


def encode_field_error(fault: FieldError) -> Encoded:
    """Return the error of one field."""
    place = {} if fault.position is None else {"position": fault.position}
    return FieldProblem.encode(fault, **sentence_fields("message", fault.message), **place)


def _printable(value: Any) -> Any:
    """Replace characters that UTF-8 cannot encode, so that hostile text never fails the response."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, dict):
        return {name: _printable(member) for name, member in value.items()}  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, msgspec.Struct):
        return _printable(msgspec.to_builtins(value))
    if isinstance(value, list):
        return [_printable(member) for member in value]  # pyright: ignore[reportUnknownVariableType]
    return value


def translate(error: Exception) -> HoraiError:
    """Return the `HoraiError` for any error."""
    match error:
        case HoraiError():
            return error
        case RequestValidationError():
            return invalid_shape([_named_alone(found) for found in error.errors()])
        case HTTPException(status_code=404):
            return NotFound(Refused.NOTHING_HERE(), Hint.ALL_ADDRESSES())
        case HTTPException():
            return _http_error(error)
        case asyncpg.DataError() | asyncpg.UntranslatableCharacterError() | asyncpg.ProgramLimitExceededError():
            return Invalid(Refused.UNSTORABLE(), Hint.CHECK_VALUES())
        case _ if isinstance(error, (*GONE, *FULL)):
            return unavailable(error)
        case _:
            return HoraiError(Refused.INTERNAL(), Hint.TRY_AGAIN())


def _named_alone(found: Any) -> Any:
    """Strip the location (`query`, `path`, `header`) from a parameter's name."""
    return {**found, "loc": tuple(found["loc"])[1:] or found["loc"]}


def _http_error(error: HTTPException) -> HoraiError:
    ours = HoraiError(str(error.detail))
    ours.status = error.status_code
    ours.code = f"SCH_{error.status_code}"
    ours.title = str(error.detail)
    return ours


def problem_response(request: Request, error: Exception) -> JSONResponse:
    """Return the problem response for any error, and log it if its status is 500 or 503."""
    ours = translate(error)
    if ours.status == 500:
        log.error("request failed", path=request.url.path, method=request.method, exc_info=error)
    elif ours.status == 503:
        log.warning("request refused", path=request.url.path, error=repr(error))
    answered = problem(ours)
    if ours.status == 405:
        answered.headers["Allow"] = ", ".join(_allowed(request))
    return answered


def _allowed(request: Request) -> list[str]:
    """Return the methods of this path. Each route knows only its own methods, so ask every route for each method."""
    asked = [(method, {**request.scope, "method": method}) for method in METHODS]
    routes = request.app.router.routes
    return [method for method, scope in asked if any(route.matches(scope)[0] is Match.FULL for route in routes)]


def install(app: FastAPI) -> None:
    """Register handlers that turn known errors into problems. The guard does the same for all other errors."""

    async def answer(request: Request, error: Exception) -> JSONResponse:
        return problem_response(request, error)

    handled: tuple[type[Exception], ...] = (
        HoraiError,
        RequestValidationError,
        HTTPException,
        asyncpg.PostgresError,
        *GONE,
    )
    add: Callable[[type[Exception], Any], None] = app.add_exception_handler
    for kind in handled:
        add(kind, answer)
