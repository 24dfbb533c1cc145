"""Typed payloads: what fits its type goes through unchanged, what does not is told by its place."""

import json
from dataclasses import InitVar, dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, NamedTuple, NotRequired, TypedDict, TypeVar
from uuid import UUID

import msgspec
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st
from payload_types import Colour, Line, Mail, Opaque, Order, Ticket, mail, nested

from horai.core.errors import Invalid, TooLarge
from horai.core.limits import NESTING_LIMIT, PAYLOAD_LIMIT
from horai.sdk.payloads import PayloadMismatch, Shape, shape_of

T = TypeVar("T")


class Point(TypedDict):
    x: int
    y: NotRequired[int]


class Pair(NamedTuple):
    left: int
    right: str = "r"


@dataclass
class Constrained:
    count: Annotated[int, pydantic.Field(ge=1)]


@dataclass
class Checked:
    count: int

    def __post_init__(self) -> None:
        if self.count < 1:
            raise ValueError("count is below one")


@dataclass
class Derived:
    count: int
    double: int = field(init=False)

    def __post_init__(self) -> None:
        self.double = 2 * self.count


@dataclass
class Seeded:
    count: int
    seed: InitVar[int] = 3

    def __post_init__(self, seed: int) -> None:
        self.count += seed


@pydantic.dataclasses.dataclass
class Validated:
    count: int

    @pydantic.field_validator("count")
    @classmethod
    def _even(cls, count: int) -> int:
        if count % 2:
            raise ValueError("is odd")
        return count


@dataclass
class Outer:
    inner: Validated


@dataclass
class Settings:
    """Can be made of nothing."""

    depth: int = 3
    names: list[str] = field(default_factory=list)


@dataclass
class Tree:
    value: int
    children: "list[Tree]" = field(default_factory=list)


@dataclass
class Box(Generic[T]):
    held: T


@dataclass
class Money:
    amount: int


@dataclass
class Gift:
    name: str


SAMPLES: list[tuple[Any, Any]] = [
    (Order, Order([Line("a", 1.5), Line("b", 2.0, 3)], datetime(2026, 1, 2, tzinfo=UTC), {"k": "v"}, Colour.blue)),
    (Line, Line("中文😀", 0.1)),
    (Ticket, Ticket(UUID(int=5), Decimal("10.10"), "year")),
    (Mail, mail("a@b.example", 2)),
    (Point, {"x": 1}),
    (Pair, Pair(1, "x")),
    (Derived, Derived(4)),
    (Validated, Validated(4)),
    (Outer, Outer(Validated(2))),
    (Constrained, Constrained(1)),
    (Tree, Tree(1, [Tree(2), Tree(3, [Tree(4)])])),
    (Box[int], Box(5)),
    (Money | Gift, Gift("book")),
    (list[Mail], [mail("x"), mail("y")]),
    (dict[str, list[Line]], {"a": [Line("a", 1.0)]}),
    (int | str | None, "text"),
    (int, 10**399),
    (bool, True),
    (tuple[int, ...], (1, 2)),
    (set[str], {"a"}),
    (date, date(2026, 1, 2)),
    (timedelta, timedelta(minutes=5)),
    (Colour, Colour.blue),
    (Path, Path("/srv/data")),
    (Literal["a", "b"], "b"),
    (Annotated[int, msgspec.Meta(ge=0)], 0),
]


@pytest.mark.parametrize(("annotation", "value"), SAMPLES, ids=lambda one: str(one)[:40])
def test_a_value_of_a_type_comes_back_as_it_was(annotation: Any, value: Any) -> None:
    shape = shape_of(annotation)

    text = shape.encode(value)

    assert text is not None
    assert shape.decode(text) == value
    assert type(shape.decode(text)) is type(value)
    assert shape.schema is not None
    assert json.loads(json.dumps(shape.schema)) == shape.schema


def test_a_dict_is_taken_where_it_fits_the_type() -> None:
    text = shape_of(Order).encode({"lines": [{"sku": "a", "price": 1.0}]})

    assert shape_of(Order).decode(text) == Order([Line("a", 1.0)])
    assert shape_of(Mail).decode(shape_of(Mail).encode({"send_to": "x"})) == mail("x")


def test_a_model_is_written_by_its_aliases_without_what_is_computed() -> None:
    assert shape_of(Mail).encode(mail("x")) == '{"sendTo":"x","copies":1}'
    schema = shape_of(Mail).schema
    assert schema is not None
    assert set(schema["properties"]) == {"sendTo", "copies"}


def test_the_schema_says_what_a_payload_must_look_like() -> None:
    schema = shape_of(Order).schema

    assert schema is not None
    assert schema["$ref"] == "#/$defs/Order"
    assert schema["$defs"]["Order"]["required"] == ["lines"]
    assert schema["$defs"]["Line"]["properties"]["count"] == {"type": "integer", "default": 1}


MISFITS: list[tuple[Any, Any, str]] = [
    (Order, {"lines": [{"sku": "a", "price": 1.0}, {"sku": "b", "price": "x"}]}, "payload.lines[1].price"),
    (Order, {}, "payload: Object missing required field `lines`"),
    (Order, Order([Line("a", float("nan"))]), "payload.lines[0].price: nan is not JSON"),
    (Order, Order([Line("a\x00", 1.0)]), "payload.lines[0].sku: a string contains a NUL character"),
    (Order, Order([Line("a\ud800", 1.0)]), "payload.lines[0].sku: a string contains a lone surrogate"),
    (Order, Order([object()]), "payload"),  # pyright: ignore[reportArgumentType]
    (Mail, {"sendTo": "x", "copies": 0}, "payload.copies"),
    (Mail, {"copies": 0}, "payload.sendTo"),
    (Mail, Mail.model_construct(send_to="x", copies=0), "payload.copies"),
    (Mail, Mail.model_construct(send_to="x\x00"), "payload.sendTo: a string contains a NUL character"),
    (Constrained, {"count": 0}, "payload.count"),
    (Outer, {"inner": {"count": 3}}, "payload.inner.count"),
    (Checked, {"count": 0}, "payload: count is below one"),
    (dict[str, int], {"a": "x"}, "payload[...]: Expected `int`, got `str`"),
    (dict[int, int], {"a": 1}, "payload: Expected `int`, got `str` as a name"),
    (float | None, float("inf"), "payload: inf is not JSON"),
    (Annotated[int, msgspec.Meta(ge=0)], -1, "payload: Expected `int` >= 0"),
    (Any, {"a": [1, {"b": float("nan")}]}, "payload.a[1].b: nan is not JSON"),
    (Any, {"a": "\ud800"}, "payload.a: a string contains a lone surrogate"),
    (Any, {"\x00": 1}, "payload: a string contains a NUL character"),
    (Any, {"a": object()}, "payload"),
    (Any, {(1, 2): 3}, "payload"),
    (Any, {"n": 10**400}, "payload.n: a number has more than 400 digits"),
]


@pytest.mark.parametrize(("annotation", "value", "told"), MISFITS, ids=[told for _, _, told in MISFITS])
def test_an_invalid_payload_is_refused_at_the_path_of_its_error(annotation: Any, value: Any, told: str) -> None:
    with pytest.raises(Invalid) as refused:
        shape_of(annotation).encode(value)

    assert refused.value.detail.startswith(told)
    assert refused.value.errors[0].field.startswith("payload")


def test_every_fault_of_a_model_is_told_at_once() -> None:
    with pytest.raises(Invalid) as refused:
        shape_of(Mail).encode({"copies": 0})

    assert [error.field for error in refused.value.errors] == ["payload.sendTo", "payload.copies"]


@pytest.mark.parametrize("levels", [NESTING_LIMIT + 1, 500, 100_000])
def test_a_payload_nested_too_deeply_is_refused(levels: int) -> None:
    assert shape_of(Any).encode(nested(NESTING_LIMIT)) == "[" * NESTING_LIMIT + "]" * NESTING_LIMIT
    with pytest.raises(Invalid, match="nested deeper"):
        shape_of(Any).encode(nested(levels))


def test_a_value_that_holds_itself_is_refused() -> None:
    loop: list[Any] = []
    loop.append(loop)

    with pytest.raises(Invalid, match="nested deeper"):
        shape_of(Any).encode(loop)


def test_a_payload_is_as_large_as_rest_takes_and_no_larger() -> None:
    shape = shape_of(str)
    fits = "x" * (PAYLOAD_LIMIT - 2)

    assert shape.decode(shape.encode(fits)) == fits
    with pytest.raises(TooLarge, match="payload is larger"):
        shape.encode(fits + "x")


def test_a_text_that_looks_like_an_escaped_nul_is_kept() -> None:
    shape = shape_of(Any)

    assert shape.decode(shape.encode({"a": "\\u0000", "b": None})) == {"a": "\\u0000", "b": None}


jsons = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(jsons)
def test_untyped_json_comes_back_or_is_refused(value: Any) -> None:
    try:
        text = shape_of(Any).encode(value)
    except Invalid:
        assert any(mark in repr(value) for mark in ("nan", "inf", "\\x00", "\\ud"))
        return
    assert shape_of(Any).decode(text) == value
    assert text is None or "\x00" not in json.dumps(json.loads(text), ensure_ascii=False)


def test_nothing_is_the_jobs_own_payload() -> None:
    for annotation in (Any, None, Order, Mail, int | None):
        assert shape_of(annotation).encode(None) is None


@pytest.mark.parametrize("text", [None, "null"])
def test_without_a_payload_a_type_is_made_of_nothing_where_it_can_be(text: str | None) -> None:
    assert shape_of(Any).decode(text) is None
    assert shape_of(Line | None).decode(text) is None
    shape: Shape[Settings] = shape_of(Settings)
    assert shape.decode(text) == Settings()
    assert shape.decode(text).names is not shape.decode(text).names
    for annotation in (Order, Mail, int):
        with pytest.raises(PayloadMismatch, match="payload: is missing"):
            shape_of(annotation).decode(text)


@pytest.mark.parametrize(
    ("annotation", "text", "told"),
    [
        (Order, '{"lines": [{"sku": 1}]}', "payload.lines[0].sku: Expected `str`, got `int`"),
        (Order, '{"lines": [], "colour": "secret"}', "payload.colour: Invalid enum value"),
        (Literal["a"], '"secret"', "payload: Invalid enum value"),
        (Mail, '{"copies": "secret"}', "payload.sendTo: Field required; payload.copies: Input should be a valid"),
        (int, "1e400", "payload: Number out of range"),
        (Any, '{"a": ', "payload: Input data was truncated"),
        (Mail, '{"a": ', "payload: Invalid JSON"),
    ],
)
def test_a_stored_payload_that_does_not_fit_is_told_by_its_place_and_never_repeated(
    annotation: Any, text: str, told: str
) -> None:
    with pytest.raises(PayloadMismatch) as refused:
        shape_of(annotation).decode(text)

    assert str(refused.value).startswith(told)
    assert "secret" not in str(refused.value)
    assert refused.value.__suppress_context__


def test_a_field_that_the_type_does_not_know_yet_is_passed_over() -> None:
    """A payload of the next version, read by a worker of this one."""
    assert shape_of(Line).decode('{"sku": "a", "price": 1, "new": true}') == Line("a", 1)


def test_a_validator_that_fails_otherwise_is_the_functions_failure() -> None:
    @dataclass
    class Broken:
        a: int

        def __post_init__(self) -> None:
            raise KeyError("a bug")

    with pytest.raises(KeyError):
        shape_of(Broken).decode('{"a": 1}')


@pytest.mark.parametrize("annotation", [Opaque, list[Opaque], list["Nowhere"]])  # noqa: F821 # pyright: ignore
def test_a_type_that_json_cannot_be_read_as_is_refused(annotation: Any) -> None:
    with pytest.raises(Invalid, match="cannot be read from JSON"):
        shape_of(annotation)


def test_a_type_without_a_describable_schema_says_nothing_about_itself() -> None:
    shape = shape_of(Literal["\x00"])

    assert shape.schema == {}
    assert shape.decode('"\\u0000"') == "\x00"
