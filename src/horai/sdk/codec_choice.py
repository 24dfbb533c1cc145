"""The library that reads a type: msgspec if both libraries give the type the same meaning, otherwise pydantic.

msgspec is an order of magnitude faster, but ignores constructs that it does not know: pydantic's constraints in
`Annotated`, validators of pydantic's dataclasses, fields that `__init__` does not take. This module finds those types
at any depth, without importing pydantic.
"""

import dataclasses
import typing
from collections.abc import Iterable
from typing import Annotated, Any, ClassVar, Literal, get_args, get_origin

import msgspec.inspect

_CONSTRAINTS = frozenset({"pydantic", "pydantic_core", "annotated_types"})
_HOOK = "__get_pydantic_core_schema__"
_FIELDS = ("__dataclass_fields__", "__struct_fields__", "__required_keys__", "__attrs_attrs__", "_fields")


def is_pydantics(annotation: object) -> bool:
    """Return whether only pydantic reads all of this type. Raises NameError if a part of it cannot be resolved."""
    waiting, seen = [annotation], list[object]()
    while waiting:
        part = waiting.pop()
        if any(part is known for known in seen):
            continue
        seen.append(part)
        if _is_marked(part) or (isinstance(part, type) and _is_pydantics_class(part)):
            return True
        waiting += _parts(part)
    return False


def _is_marked(part: object) -> bool:
    if get_origin(part) is not Annotated:
        return False
    marks: Iterable[object] = get_args(part)[1:]
    return any(type(mark).__module__.partition(".")[0] in _CONSTRAINTS or hasattr(mark, _HOOK) for mark in marks)


def _is_pydantics_class(part: type[Any]) -> bool:
    if hasattr(part, _HOOK) or hasattr(part, "__pydantic_validator__"):
        return True
    if hasattr(part, "__dataclass_fields__"):
        return any(not field.init for field in dataclasses.fields(part)) or _has_init_only(part)
    if _has_fields(part) or part is dataclasses.KW_ONLY:
        return False
    return isinstance(msgspec.inspect.type_info(part), msgspec.inspect.CustomType)


def _has_init_only(part: type[Any]) -> bool:
    hints = typing.get_type_hints(part, include_extras=True)
    return any(isinstance(hint, dataclasses.InitVar) for hint in hints.values())


def _has_fields(part: type[Any]) -> bool:
    return any(hasattr(part, name) for name in _FIELDS)


def _parts(part: object) -> list[Any]:
    """Return the types that a type is made of, one level down."""
    for name in ("__supertype__", "__value__"):  # NewType and the `type` statement
        if hasattr(part, name):
            return [getattr(part, name)]
    if isinstance(part, type) and _has_fields(part):
        hints = typing.get_type_hints(part, include_extras=True).values()
        return [hint for hint in hints if get_origin(hint) is not ClassVar]
    origin = get_origin(part)
    if origin is Annotated:
        return [get_args(part)[0]]
    if origin is None or origin is Literal:
        return []
    is_users = isinstance(origin, type) and (hasattr(origin, _HOOK) or _has_fields(origin))
    return [*get_args(part), *([origin] if is_users else [])]
