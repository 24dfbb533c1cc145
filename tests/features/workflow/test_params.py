"""The parameters of a run: schemas that are checked when they are written, payloads that are checked when a run starts."""

import json
from dataclasses import dataclass
from typing import Any, Literal

import msgspec
import pytest

from horai.core.errors import Invalid
from horai.features.workflow.params import DEEPEST, checked_params, fitted


class Line(msgspec.Struct):
    sku: str
    count: int = 1


class Order(msgspec.Struct, forbid_unknown_fields=True):
    day: str
    region: Literal["eu", "us"] = "eu"
    lines: list[Line] = []
    limit: float | None = None


SCHEMA = msgspec.json.schema(Order)


def faults(schema: Any, payload: Any) -> dict[str, str]:
    with pytest.raises(Invalid) as refused:
        fitted(schema, json.dumps(payload))
    return {fault.field: str(fault.message) for fault in refused.value.errors}


def test_defaults_are_added_and_given_members_stay_as_they_were_written() -> None:
    checked_params(SCHEMA)

    assert fitted(SCHEMA, '{"day": "2026-11-15", "limit": 1e2}') == (
        '{"day":"2026-11-15","limit":1e2,"region":"eu","lines":[]}'
    )
    whole = '{"day": "x", "region": "us", "lines": [], "limit": null}'
    assert fitted(SCHEMA, whole) is whole


def test_every_wrong_field_is_named() -> None:
    given = {"region": "cn", "lines": [{"sku": 1}, {"sku": "a", "count": "b"}], "limit": "high", "more": 1}

    assert faults(SCHEMA, given) == {
        "payload.day": "is missing",
        "payload.region": "'cn' is not one of eu, us",
        "payload.lines.0.sku": "must be string, not integer",
        "payload.lines.1.count": "must be integer, not string",
        "payload.limit": "does not fit the schema of the parameters",
        "payload.more": "is not a parameter; there are: day, region, lines, limit",
    }
    assert faults(SCHEMA, [1]) == {"payload": "must be object, not array"}
    with pytest.raises(Invalid, match=r"payload\.day: is missing"):
        fitted(SCHEMA, None)


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ({"type": "integer", "minimum": 1, "maximum": 3}, 2, 4),
        ({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}, 0.5, 1),
        ({"type": "string", "minLength": 1, "maxLength": 2}, "a", "abc"),
        ({"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 2}, ["a"], []),
        ({"prefixItems": [{"type": "string"}], "items": False}, ["a"], ["a", 1]),
        ({"const": 1}, 1, True),
        ({"enum": [1, "a"]}, "a", "b"),
        ({"oneOf": [{"type": "string"}, {"type": "null"}]}, None, 1),
        ({"allOf": [{"type": "string"}, {"minLength": 2}]}, "ab", "a"),
        ({"type": "string", "format": "date"}, "2026-11-15", "15.11.2026"),
        ({"type": "string", "format": "date-time"}, "2026-11-15T00:00:00Z", "noon"),
        ({"type": ["string", "null"]}, None, 1),
        ({"additionalProperties": {"type": "integer"}}, {"a": 1}, {"a": "b"}),
        (
            {"$ref": "#/$defs/Tree", "$defs": {"Tree": {"type": "array", "items": {"$ref": "#/$defs/Tree"}}}},
            [[[]]],
            [[1]],
        ),
    ],
)
def test_a_value_that_does_not_fit_is_refused(schema: dict[str, Any], good: Any, bad: Any) -> None:
    checked_params(schema)

    assert fitted(schema, json.dumps(good)) == json.dumps(good)
    assert faults(schema, bad)


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ([], "params: is not a JSON Schema"),
        ({"properties": {"a": 1}}, "params.properties.a: is not a JSON Schema"),
        ({"pattern": "(a+)+$"}, "params: has the keyword 'pattern', which Horai does not check"),
        ({"properties": {"a": {"not": {}}}}, "params.properties.a: has the keyword 'not'"),
        ({"type": "date"}, "params: 'date' is not one of object, array"),
        ({"$ref": "http://example.com/schema"}, "is not a member of \\$defs"),
        ({"minimum": "1"}, "params.minimum: is not a JSON Schema"),
        ({"description": "x" * 40_000}, "params: is longer than 32768 bytes"),
    ],
)
def test_a_schema_that_horai_cannot_check_is_refused(schema: Any, message: str) -> None:
    with pytest.raises(Invalid, match=message):
        checked_params(schema)


def test_a_hostile_schema_or_payload_ends_the_check_soon() -> None:
    loop: dict[str, Any] = {"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/A"}}}
    deep: Any = []
    for _ in range(DEEPEST + 5):
        deep = [deep]
    branch: Any = {"type": "array", "items": {"$ref": "#/$defs/T"}}
    tree: Any = {"$ref": "#/$defs/T", "$defs": {"T": {"anyOf": [branch] * 6}}}
    wrong: Any = 1
    for _ in range(20):
        wrong = [wrong]

    assert fitted(loop, "1") == "1"
    assert faults({"$ref": "#/$defs/T", "$defs": {"T": {"items": {"$ref": "#/$defs/T"}}}}, deep)
    assert faults(tree, wrong)


@dataclass
class Nothing:
    """A type without members."""


def test_a_type_without_members_accepts_an_empty_payload() -> None:
    schema = msgspec.json.schema(Nothing)

    assert fitted(checked_params(schema), None) is None
