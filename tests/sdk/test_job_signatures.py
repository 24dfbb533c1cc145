"""The arguments that a function is given by its signature, and the conversion of its result."""

import functools
from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from payload_types import Colour, Line, Opaque, Order, Ticket, mail, nested

from horai.core.errors import Invalid
from horai.core.limits import RESULT_LIMIT
from horai.sdk.declaration import Options, declaration_of
from horai.sdk.instance import Instance
from horai.sdk.payloads import (
    Form,
    PayloadMismatch,
    ResultInvalid,
    encode_result,
    result_shape_of,
    shape_of,
    signature_of,
)


def nothing() -> None: ...


def bare(instance): ...  # pyright: ignore


def whole(instance: Instance) -> None: ...  # pyright: ignore[reportMissingTypeArgument, reportUnknownParameterType]


async def typed(instance: Instance[Order]) -> Line: ...  # pyright: ignore[reportReturnType]


async def order(order: Order) -> "list[Line]": ...  # pyright: ignore[reportReturnType]


def quoted(order: "Order") -> "Nowhere": ...  # noqa: F821 # pyright: ignore


def anything(payload: Any) -> None: ...


def optional(order: Order | None = None) -> None: ...


def fallback(line: Line = Line("none", 0.0)) -> Opaque: ...  # noqa: B008 # pyright: ignore[reportReturnType]


class Caller:
    async def method(self, order: Order) -> None: ...

    async def __call__(self, order: "Order") -> None: ...


def decorated(function: Any) -> Any:
    @functools.wraps(function)
    async def wrapper(*arguments: Any) -> Any:
        return await function(*arguments)

    return wrapper


@pytest.mark.parametrize(
    ("function", "form", "is_typed", "is_async"),
    [
        (nothing, Form.nothing, False, False),
        (bare, Form.instance, False, False),
        (whole, Form.instance, False, False),
        (typed, Form.instance, True, True),
        (order, Form.payload, True, True),
        (quoted, Form.payload, True, False),
        (anything, Form.payload, False, False),
        (optional, Form.payload, True, False),
        (Caller().method, Form.payload, True, True),
        (Caller(), Form.payload, True, True),
        (decorated(typed), Form.instance, True, True),
        (functools.partial(order), Form.payload, True, True),
        (lambda: None, Form.nothing, False, False),
    ],
)
def test_a_function_says_by_its_signature_what_it_is_given(
    function: Any, form: Form, is_typed: bool, is_async: bool
) -> None:
    signature = signature_of(function)

    assert (signature.form, signature.shape.schema is not None, signature.is_async) == (form, is_typed, is_async)


def test_a_parameters_default_stands_for_no_payload() -> None:
    assert signature_of(optional).shape.decode(None) is None
    assert signature_of(fallback).shape.decode(None) == Line("none", 0.0)
    assert signature_of(fallback).shape.decode('{"sku": "a", "price": 1.5}') == Line("a", 1.5)


def generator(instance: Any) -> Any:
    yield instance


async def stream(instance: Any) -> Any:
    yield instance


def late(order: Order, instance: Instance[Any]) -> None: ...


def starred(*arguments: Any) -> None: ...


def keyworded(*, instance: Instance[Any]) -> None: ...


def twice(instance: Instance[Order], amount: int) -> None: ...


def open_ended(order: Order, **more: Any) -> None: ...


def lost(order: "Nowhere") -> None: ...  # noqa: F821 # pyright: ignore


def opaque(thing: Opaque) -> None: ...


@pytest.mark.parametrize(
    ("function", "told"),
    [
        (generator, "generator: is a generator"),
        (stream, "stream: is a generator"),
        (late, "late: takes (order: "),
        (starred, "starred: takes (*arguments: Any)"),
        (keyworded, "keyworded: takes (instance: "),
        (twice, "twice: takes (instance: "),
        (open_ended, "open_ended: takes (order: "),
        (lost, "lost: the annotation of 'order' cannot be resolved"),
        (opaque, "payload: Opaque cannot be read from JSON"),
        (Caller, "Caller: is not a function"),
        (5, "int: is not a function"),
    ],
)
def test_a_function_that_cannot_be_a_jobs_is_refused_with_the_reason(function: Any, told: str) -> None:
    with pytest.raises(Invalid) as refused:
        signature_of(function)

    assert refused.value.detail.startswith(told)
    assert refused.value.hint


def test_a_refused_declaration_names_its_job_once() -> None:
    with pytest.raises(Invalid, match=r"^The job 'starred': takes \(\*arguments: Any\)"):
        declaration_of(starred, Options())


def test_a_result_is_read_as_its_annotation_says_where_it_says_something() -> None:
    assert result_shape_of(typed).decode('{"sku": "a", "price": 1}') == Line("a", 1)
    assert result_shape_of(order).decode('[{"sku": "a", "price": 1}]') == [Line("a", 1)]
    for function in (nothing, quoted, fallback, bare):
        assert result_shape_of(function).decode('{"a": 1}') == {"a": 1}
    with pytest.raises(PayloadMismatch, match="result: Expected `object`"):
        result_shape_of(typed).decode("5")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, None),
        (0, "0"),
        ("", '""'),
        (Line("a", 1.5), '{"sku":"a","price":1.5,"count":1}'),
        (mail("x"), '{"sendTo":"x","copies":1,"shown":"x × 1"}'),
        ({"all": [mail("x", 2)]}, '{"all":[{"sendTo":"x","copies":2,"shown":"x × 2"}]}'),
        (Ticket(UUID(int=1), Decimal(1)), '{"id":"00000000-0000-0000-0000-000000000001","price":"1","kind":"day"}'),
        ([datetime(2026, 1, 2, tzinfo=UTC), Path("/x"), Colour.red], '["2026-01-02T00:00:00Z","/x","red"]'),
        ("x" * (RESULT_LIMIT - 2), f'"{"x" * (RESULT_LIMIT - 2)}"'),
    ],
)
def test_a_result_becomes_json_text(value: Any, text: str | None) -> None:
    assert encode_result(value) == text


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("x" * (RESULT_LIMIT - 1), "its result is larger than 65536 bytes"),
        (float("nan"), "result is not JSON: nan is not JSON"),
        ({"a": ["\x00"]}, "result.a[0] is not JSON: a string contains a NUL character"),
        ("\ud800", "result is not JSON: a string contains a lone surrogate"),
        (object(), "result is not JSON: "),
        (nested(65), f"result{'[0]' * 64} is not JSON: is nested deeper than 64 levels"),
        (nested(100_000), "result is not JSON: is nested deeper than 64 levels"),
        ({"a": Opaque()}, "result is not JSON: "),
    ],
)
def test_a_result_that_is_no_json_or_too_large_is_refused(value: Any, told: str) -> None:
    with pytest.raises(ResultInvalid) as refused:
        encode_result(value)

    assert str(refused.value).startswith(told)


def test_a_mapping_of_any_kind_is_described_by_its_values() -> None:
    assert shape_of(Mapping[str, int]).schema == {"type": "object", "additionalProperties": {"type": "integer"}}
