"""Types of payloads and results for tests, of every library that is known."""

import functools
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal
from uuid import UUID

import msgspec
import pydantic
from pydantic.alias_generators import to_camel


class Colour(Enum):
    red = "red"
    blue = "blue"


@dataclass(frozen=True, slots=True)
class Line:
    sku: str
    price: float
    count: int = 1


@dataclass
class Order:
    lines: list[Line]
    at: datetime | None = None
    notes: dict[str, str] = field(default_factory=dict)
    colour: Colour = Colour.red


class Ticket(msgspec.Struct, frozen=True):
    id: UUID
    price: Decimal
    kind: Literal["day", "year"] = "day"


class Mail(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(alias_generator=to_camel)

    send_to: str
    copies: Annotated[int, pydantic.Field(ge=1)] = 1

    @pydantic.computed_field
    @property
    def shown(self) -> str:
        return f"{self.send_to} × {self.copies}"


def mail(to: str, copies: int = 1) -> Mail:
    return Mail.model_validate({"sendTo": to, "copies": copies})


def nested(levels: int) -> list[Any]:
    return functools.reduce(lambda inner, _: [inner], range(levels - 1), [])


class Opaque:
    pass
