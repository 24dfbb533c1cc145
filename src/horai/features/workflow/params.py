"""The parameters of a run: its payload, described by a JSON Schema with the keywords that typed Python code produces.

A schema is checked when the workflow is written, so that a payload can be checked later without surprises: a keyword that
Horai does not check is refused, and so are patterns, whose cost depends on the text.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from typing import Any, cast

import msgspec

from horai.core.errors import FieldError, Invalid
from horai.core.payload_members import ASSETS
from horai.core.validation import Validation
from horai.text import Wrong

Schema = Mapping[str, Any]

SCHEMA_LIMIT = 32_768
"""The largest schema, in bytes of JSON."""
DEEPEST = 32
"""The most levels of a schema, and of a value that is checked."""
MOST_CHECKS = 100_000
"""The most values and alternatives that are compared for one payload; a schema of alternatives may have very many."""
MOST_FAULTS = 10

TYPES: Mapping[str, Callable[[Any], bool]] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": lambda value: isinstance(value, (int, float)) and not isinstance(value, bool),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
}
LIMITS: Mapping[str, tuple[Callable[[Any], Any], Callable[[Any, Any], bool]]] = {
    "minimum": (lambda value: value, lambda value, limit: value >= limit),
    "maximum": (lambda value: value, lambda value, limit: value <= limit),
    "exclusiveMinimum": (lambda value: value, lambda value, limit: value > limit),
    "exclusiveMaximum": (lambda value: value, lambda value, limit: value < limit),
    "minLength": (len, lambda length, limit: length >= limit),
    "maxLength": (len, lambda length, limit: length <= limit),
    "minItems": (len, lambda length, limit: length >= limit),
    "maxItems": (len, lambda length, limit: length <= limit),
}
_LIMITED = {"minLength": str, "maxLength": str, "minItems": list, "maxItems": list}
ONE_SCHEMA = ("items", "additionalProperties")
SCHEMAS = ("anyOf", "oneOf", "allOf", "prefixItems")
SCHEMAS_BY_NAME = ("properties", "$defs")
REFERENCE = "#/$defs/"
TEXTS = ("title", "description", "$schema", "format", "contentEncoding", "discriminator", "examples", "deprecated")
KNOWN = frozenset(
    {"type", "required", "enum", "const", "default", "$ref", *LIMITS, *ONE_SCHEMA, *SCHEMAS, *SCHEMAS_BY_NAME, *TEXTS}
)
_FORMATS: Mapping[str, Callable[[str], object]] = {"date": date.fromisoformat, "date-time": datetime.fromisoformat}


def checked_params(schema: object) -> Schema:
    """Return a valid schema. Raises `Invalid` with the place and the keyword that Horai does not check."""
    faults = Validation()
    if not isinstance(schema, Mapping):
        faults.add("params", Wrong.NOT_A_SCHEMA())
        faults.raise_if_any()
    found = cast("Schema", schema)
    if len(json.dumps(found, default=str)) > SCHEMA_LIMIT:
        faults.add("params", Wrong.LONGER_THAN_BYTES(most=SCHEMA_LIMIT))
    else:
        _check_schema(found, found, "params", faults, 0)
    faults.raise_if_any()
    return found


def _check_schema(root: Schema, schema: Any, place: str, faults: Validation, depth: int) -> None:
    if isinstance(schema, bool):
        return
    if not isinstance(schema, Mapping) or depth > DEEPEST:
        faults.add(place, Wrong.NOT_A_SCHEMA())
        return
    own = cast("Schema", schema)
    for keyword in own:
        if keyword not in KNOWN:
            faults.add(place, Wrong.SCHEMA_KEYWORD(keyword=str(keyword)[:40]))
    named: Any = own.get("type", [])
    if any(name not in TYPES for name in ([named] if isinstance(named, str) else named)):
        faults.add(place, Wrong.NOT_ONE_OF(value=str(named)[:40], allowed=", ".join(TYPES)))
    if (reference := own.get("$ref")) is not None and _referred(root, reference) is None:
        faults.add(place, Wrong.SCHEMA_REFERENCE(reference=str(reference)[:80]))
    for keyword in LIMITS:
        if keyword in own and not TYPES["number"](own[keyword]):
            faults.add(f"{place}.{keyword}", Wrong.NOT_A_SCHEMA())
    inner = [(keyword, own[keyword]) for keyword in ONE_SCHEMA if keyword in own]
    inner += [
        (f"{keyword}.{number}", each) for keyword in SCHEMAS for number, each in enumerate(own.get(keyword) or ())
    ]
    inner += [(f"{keyword}.{name}", each) for keyword in SCHEMAS_BY_NAME for name, each in _members(own, keyword)]
    for name, each in inner:
        _check_schema(root, each, f"{place}.{name}", faults, depth + 1)


def _members(schema: Schema, keyword: str) -> list[tuple[str, Any]]:
    found = schema.get(keyword)
    return list(cast("Schema", found).items()) if isinstance(found, Mapping) else []


def _referred(root: Schema, reference: Any) -> Any:
    name = str(reference).removeprefix(REFERENCE)
    return None if not str(reference).startswith(REFERENCE) else dict(_members(root, "$defs")).get(name)


def fitted(schema: Schema, payload: str | None) -> str | None:
    """Return the payload with the defaults of missing members. Raises `Invalid` with every wrong field.

    A default of a member of an inner object is not applied. Members that are there stay unchanged, as they were written.
    """
    value: Any = {} if payload is None else msgspec.json.decode(payload)
    defaults = _defaults(schema, schema)
    missing = {name: default for name, default in defaults.items() if isinstance(value, dict) and name not in value}
    faults = _PayloadFaults()
    _check({**value, **missing} if missing else value, schema, "payload", _PayloadCheck(schema, faults))
    if faults.found:
        raise Invalid.fields(faults.found[:MOST_FAULTS])
    if not missing:
        return payload
    members = {} if payload is None else msgspec.json.decode(payload, type=dict[str, msgspec.Raw])
    return msgspec.json.encode({**members, **missing}).decode()


def fitted_run(schema: Schema, payload: str | None) -> str | None:
    """Return the payload of a run as `fitted` does. Updates of assets that have started the run need no place in the schema."""
    try:
        raw = {} if payload is None else msgspec.json.decode(payload, type=dict[str, msgspec.Raw])
    except msgspec.ValidationError:  # not an object
        raw = {}
    if ASSETS not in raw or ASSETS in dict(_members(schema, "properties")):
        return fitted(schema, payload)
    updates = raw.pop(ASSETS)
    kept = fitted(schema, msgspec.json.encode(raw).decode())
    return msgspec.json.encode(
        {**msgspec.json.decode(kept or "{}", type=dict[str, msgspec.Raw]), ASSETS: updates}
    ).decode()


def _defaults(root: Schema, schema: Schema) -> dict[str, Any]:
    own = _resolved(root, schema)
    return {
        name: each["default"]
        for name, each in _members(own, "properties")
        if isinstance(each, Mapping) and "default" in cast("Schema", each)
    }


def _resolved(root: Schema, schema: Schema) -> Schema:
    for _ in range(DEEPEST):
        if "$ref" not in schema:
            break
        schema = cast("Schema", _referred(root, schema["$ref"]))
    return schema


class _PayloadFaults:
    """The faults of a payload; `add` takes the place and the sentence."""

    def __init__(self) -> None:
        self.found: list[FieldError] = []

    def add(self, place: str, message: Any) -> None:
        self.found.append(FieldError(place, message))


class _PayloadCheck:
    """One check: the schema that references point into, the faults, and the depth that was reached."""

    def __init__(self, root: Schema, faults: _PayloadFaults, depth: int = 0, left: list[int] | None = None) -> None:
        self.root = root
        self.faults = faults
        self.depth = depth
        self.left = [MOST_CHECKS] if left is None else left

    def below(self, faults: _PayloadFaults | None = None) -> "_PayloadCheck":
        return _PayloadCheck(self.root, faults or self.faults, self.depth + 1, self.left)


def _check(value: Any, schema: Any, place: str, check: _PayloadCheck) -> None:
    if schema is True:
        return
    check.left[0] -= 1
    if schema is False or check.depth > DEEPEST or check.left[0] < 0:
        check.faults.add(place, Wrong.NOT_ACCEPTED())
        return
    own = _resolved(check.root, schema)
    named: Any = own.get("type")
    types: Sequence[str] = [named] if isinstance(named, str) else named or list(TYPES)
    if not any(TYPES[name](value) for name in types):
        check.faults.add(place, Wrong.NOT_OF_TYPE(expected=" or ".join(types), given=_type_of(value)))
        return
    allowed: Any = own.get("enum", [own["const"]] if "const" in own else None)
    if allowed is not None and not any(_is_same(value, each) for each in allowed):
        check.faults.add(place, Wrong.NOT_ONE_OF(value=value, allowed=", ".join(map(str, allowed))))
    _check_limits(value, own, place, check)
    if any(not _fits(value, each, check) for each in own.get("allOf") or ()):
        check.faults.add(place, Wrong.NOT_ACCEPTED())
    for keyword in ("anyOf", "oneOf"):
        if keyword in own and not any(_fits(value, each, check) for each in own[keyword]):
            check.faults.add(place, Wrong.NOT_ACCEPTED())
    if isinstance(value, dict):
        _check_members(cast("dict[str, Any]", value), own, place, check)
    elif isinstance(value, list):
        _check_items(cast("list[Any]", value), own, place, check)


def _is_same(value: Any, other: Any) -> bool:
    return value == other and isinstance(value, bool) == isinstance(other, bool)


def _fits(value: Any, schema: Any, check: _PayloadCheck) -> bool:
    faults = _PayloadFaults()
    _check(value, schema, "", check.below(faults))
    return not faults.found


def _type_of(value: Any) -> str:
    return next((name for name, is_of in TYPES.items() if is_of(value)), "null")


def _check_limits(value: Any, schema: Schema, place: str, check: _PayloadCheck) -> None:
    for keyword, (measure, holds) in LIMITS.items():
        limit = schema.get(keyword)
        is_of = isinstance(value, _LIMITED[keyword]) if keyword in _LIMITED else TYPES["number"](value)
        if limit is not None and is_of and not holds(measure(value), limit):
            check.faults.add(place, Wrong.BEYOND(keyword=keyword, limit=limit))
    reads = _FORMATS.get(str(schema.get("format")))
    if reads is not None and isinstance(value, str):
        try:
            reads(value)
        except ValueError:
            check.faults.add(place, Wrong.NOT_OF_FORMAT(value=value[:40], format=schema["format"]))


def _check_members(value: dict[str, Any], schema: Schema, place: str, check: _PayloadCheck) -> None:
    for name in schema.get("required") or ():
        if name not in value:
            check.faults.add(f"{place}.{name}", Wrong.MISSING())
    known = dict(_members(schema, "properties"))
    for name, each in value.items():
        if name in known:
            _check(each, known[name], f"{place}.{name}", check.below())
        elif (others := schema.get("additionalProperties", True)) is False:
            check.faults.add(f"{place}.{name[:40]}", Wrong.UNKNOWN_MEMBER(names=", ".join(known)))
        else:
            _check(each, others, f"{place}.{name}", check.below())


def _check_items(value: list[Any], schema: Schema, place: str, check: _PayloadCheck) -> None:
    first: list[Any] = list(schema.get("prefixItems") or ())
    for number, each in enumerate(value):
        rule = first[number] if number < len(first) else schema.get("items", True)
        _check(each, rule, f"{place}.{number}", check.below())
