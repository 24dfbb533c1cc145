"""Request bodies: read within a size limit, parse strictly, validate, and report each error at its field."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast

import msgspec
from fastapi import Request
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails
from starlette.requests import ClientDisconnect

from horai.api.context import tenant_scope
from horai.api.shape_errors import misshapen
from horai.core.errors import FieldError, Invalid, TooLarge
from horai.core.jsontext import JsonError, parse_json
from horai.core.limits import BATCH_BODY_LIMIT, BODY_LIMIT
from horai.core.payload_text import payload_text
from horai.operations.scope import require_job
from horai.text import Hint, Refused, Wrong, told_by

Shape = TypeVar("Shape", bound=BaseModel)

NAME_SHOWN = 64
AT_ONCE = 64 * 1024
"""Bytes. A larger body is parsed in a thread, so that the loop still answers other requests and renews the lease."""
DRY_RUN = "dryRun"
"""The parameter of writes that may be tried: with `true`, the answer is what it would be, and nothing is changed."""
WHITESPACE = b" \t\r\n"
"""The whitespace of JSON. Python's own `strip` also removes a vertical tab, which JSON does not allow."""
MEMBER_LIMIT = 50_000
"""Most fields of a body, checked before validation: each unknown field costs one error object."""


@dataclass(frozen=True, slots=True)
class Body(Generic[Shape]):
    """A validated body and its bytes."""

    shape: Shape
    raw: bytes

    def given(self) -> dict[str, Any]:
        """Return the fields that the caller sent, by their public names, without the payload."""
        return self.shape.model_dump(by_alias=True, exclude_unset=True, exclude={"payload"})

    @property
    def has_payload(self) -> bool:
        """Return whether the body has a payload; null counts."""
        return "payload" in self.shape.model_fields_set

    def text_of(self, field: str) -> str | None:
        """Return the exact JSON text of one member, or None if it is null or absent."""
        if not self.shape.model_fields_set:
            return None
        members = msgspec.json.decode(self.raw, type=dict[str, msgspec.Raw])
        return payload_text(members.get(field), field)


def body_of(shape: type[Shape], limit: int = BODY_LIMIT) -> Callable[[Request], Awaitable[Body[Shape]]]:
    """Return a dependency that reads a body of this shape. An empty body counts as an empty object."""
    may_be_dry = "dry_run" in shape.model_fields

    async def read(request: Request) -> Body[Shape]:
        announced = _announced(request)
        if (announced is None and "transfer-encoding" in request.headers) or (announced or 0) > AT_ONCE:
            await _require_known_job(request)
        raw = await _read(request, announced or 0, limit)
        shaped = await _understood(request, shape, raw)
        is_dry = may_be_dry and getattr(shaped, "dry_run", False)
        request.state.body, request.state.is_dry_run = raw, is_dry or request.query_params.get(DRY_RUN) == "true"
        return Body(shaped, raw)

    return read


async def _understood(request: Request, shape: type[Shape], raw: bytes) -> Shape:
    if not raw.strip(WHITESPACE):
        return _shaped(shape, b"{}")
    _require_json(request)
    if len(raw) <= AT_ONCE:
        return _shaped(shape, raw)
    return await asyncio.to_thread(_shaped, shape, raw)


def _parsed(raw: bytes) -> Any:
    try:
        return parse_json(raw)
    except JsonError as error:
        raise Invalid(Refused.UNREADABLE(reason=told_by(error)), Hint.SEND_JSON()) from error


def _shaped(shape: type[Shape], raw: bytes) -> Shape:
    value = _parsed(raw)
    if len(raw) > MEMBER_LIMIT and _members(value) > MEMBER_LIMIT:  # each field takes several bytes
        raise Invalid(Refused.TOO_MANY_FIELDS(most=MEMBER_LIMIT), Hint.ALL_FIELDS())
    try:
        return shape.model_validate(value, by_alias=True, by_name=False)
    except ValidationError as error:
        raise invalid_shape(error.errors()) from error


def _members(value: Any) -> int:
    """Count the fields to validate. Members of a payload or an output do not count: they belong to the caller."""
    count = 0
    waiting: list[Any] = [value]
    while waiting and count <= MEMBER_LIMIT:
        item = waiting.pop()
        if isinstance(item, dict):
            members = cast("dict[str, Any]", item)
            count += len(members)
            waiting.extend(member for name, member in members.items() if name not in {"payload", "output"})
        elif isinstance(item, list):
            waiting.extend(cast("list[Any]", item))
    return count


def batch_body_of(shape: type[Shape]) -> Callable[[Request], Awaitable[Body[Shape]]]:
    """Return a dependency that reads a body of at most `BATCH_BODY_LIMIT` bytes."""
    return body_of(shape, BATCH_BODY_LIMIT)


async def _require_known_job(request: Request) -> None:
    """Refuse a large body for an unknown job before reading it. The route itself refuses a small one."""
    job = request.path_params.get("job")
    if job is not None:
        scope = tenant_scope(request)
        async with scope.read() as connection:
            await require_job(connection, scope, job)


def _announced(request: Request) -> int | None:
    length = request.headers.get("content-length", "")
    return int(length) if length.isdigit() else None


async def _read(request: Request, announced: int, limit: int) -> bytes:
    parts: list[bytes] = []
    size = announced
    if size <= limit:
        size, has_more = 0, True
        while has_more and size <= limit:
            message = await request.receive()
            if message["type"] == "http.disconnect":
                raise ClientDisconnect
            parts.append(message.get("body", b""))
            size, has_more = size + len(parts[-1]), message.get("more_body", False)
    if size > limit:
        raise TooLarge(Refused.BODY_TOO_LARGE(most=limit), Hint.SPLIT_REQUEST())
    return b"".join(parts)


def _require_json(request: Request) -> None:
    """Require JSON: for other types, browsers let a page of another site send the request without a preflight."""
    if request.headers.get("content-type", "").split(";")[0].strip().lower() != "application/json":
        raise Invalid.field("Content-Type", Wrong.NOT_APPLICATION_JSON(), Hint.SEND_CONTENT_TYPE())


def invalid_shape(found: list[ErrorDetails]) -> Invalid:
    """Translate pydantic's errors into ours: Horai's sentences at the public field names, 50 at most."""
    errors = [FieldError(_path(error), misshapen(error)) for error in found[:50]]
    unknown = [error for error in found if error["type"] == "extra_forbidden"]
    hint = Hint.CAMEL_CASE() if unknown else None
    return Invalid.fields(errors, hint)


def _path(error: ErrorDetails) -> str:
    """Return the field's dotted path. Long names are cut, so that a response does not grow with its request."""
    return ".".join(str(part)[:NAME_SHOWN] for part in error["loc"]) or "body"
