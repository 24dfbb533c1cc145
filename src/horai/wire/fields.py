"""Field types of the public JSON: instants with an offset, ids as strings, text without NUL and lone surrogates."""

import re
from datetime import UTC, datetime
from typing import Annotated, Any

import msgspec
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from horai.wire.encode import As, Encoded, encoder

_RFC3339 = re.compile(r"\d{4}-\d{2}-\d{2}[Tt ]\d{2}:\d{2}:\d{2}(\.\d{1,9})?([Zz]|[+-]\d{2}:\d{2})")
_EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)
_LATEST = datetime(9000, 1, 1, tzinfo=UTC)


def _instant(value: Any) -> datetime:
    if not isinstance(value, str) or not _RFC3339.fullmatch(value):
        raise PydanticCustomError(
            "instant",
            "is not an instant with an offset, such as 2026-11-15T09:00:00+08:00 or 2026-11-15T01:00:00Z",
        )
    instant = datetime.fromisoformat(value.upper())
    if not _EARLIEST <= instant < _LATEST:
        raise PydanticCustomError("years", "is not between the years 1970 and 9000")
    return instant.astimezone(UTC)


def _plain(value: str) -> str:
    if "\x00" in value or re.search("[\ud800-\udfff]", value):
        raise PydanticCustomError("plain", "contains a NUL character or a lone surrogate")
    return value


def raw_json(text: str) -> msgspec.Raw:
    """Return JSON text for output without parsing it."""
    return msgspec.Raw(text.encode())


Instant = Annotated[datetime, BeforeValidator(_instant, json_schema_input_type=datetime)]
"""RFC 3339, always with an offset."""

Text = Annotated[str, AfterValidator(_plain)]
Key = Annotated[str, AfterValidator(_plain), Field(min_length=1, max_length=512)]
Note = Annotated[str, AfterValidator(_plain), Field(max_length=2_000)]
RateText = Annotated[Text | int, Field(json_schema_extra={"examples": ["100/s", "30/m", "1000/h", 5]})]
"""A start rate: a number per second, or a number per s, m or h."""
Id = Annotated[str, Field(pattern=r"^\d{1,18}$"), As(str)]
Written = Annotated[str, As(str)]
"""The text of an object, such as a rate."""
Json = Annotated[Any, As(raw_json)]
"""Stored JSON text, such as a payload: it is sent as it is."""
JsonObject = Annotated[dict[str, Any], As(raw_json)]


class Model(BaseModel):
    """A public model: camelCase names, strict types, unknown fields refused."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="forbid", strict=True, frozen=True)

    @classmethod
    def encode(cls, source: object = None, /, **given: Any) -> Encoded:
        """Return a response with the attributes of `source` and the given fields; see `encoder`."""
        return encoder(cls)(source, **given)


class DiscardIn(Model):
    """`POST /api/v1/dlq/{letter}/discard` and `POST /api/v1/parked-events/{event}/discard`."""

    reason: Note | None = None
