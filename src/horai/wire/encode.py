"""Encode rows as the responses that models describe: a model is the only list of a response's fields.

`encoder(Model)` returns a function that makes one response from a source and keyword arguments:

- The value of a field is its argument, or the attribute of the source with the name of the field or of its `From`.
  Without either, the call raises `AttributeError`. An argument that is not a field raises `TypeError`.
- A field with a default is optional: it is left out unless an argument or its `From` provides it.
- The annotation converts the value: a type with `As` by its function, a `Literal` of strings from an enum member to its
  name, a model by its own encoder. None, other values, responses and dicts pass unchanged. Nothing is validated.
"""

from collections.abc import Callable
from functools import cache
from operator import attrgetter, itemgetter
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias, Union, get_args, get_origin

from msgspec import UNSET, Struct, defstruct
from pydantic import BaseModel
from pydantic.fields import FieldInfo


class Encoded(Struct):
    """A response. `msgspec.json.encode` writes it as an object: public names, in the order of the model."""


_ENCODED: tuple[type, ...] = (Encoded, dict)
Convert: TypeAlias = Callable[[Any], Any]


class From(NamedTuple):
    """Mark a field whose value has another name in the source. Dots lead to the attribute of an attribute."""

    attribute: str


class As(NamedTuple):
    """Mark a type whose values, other than None, `convert` makes public."""

    convert: Convert


class _Plan(NamedTuple):
    """The steps of a call with certain arguments. `arrange` is None if the attributes are the fields in order."""

    read: Convert
    arrange: Convert | None
    conversions: tuple[tuple[int, Convert], ...]


@cache
def encoder(model: type[BaseModel]) -> Callable[..., Encoded]:
    """Return the function that encodes responses of this model."""
    aliases = {name: field.alias or name for name, field in model.model_fields.items()}
    make = defstruct(model.__name__, [(name, Any, UNSET) for name in aliases], bases=(Encoded,), rename=aliases)
    plans: dict[tuple[str, ...], _Plan] = {}

    def encode(source: object = None, /, **given: Any) -> Any:
        if (names := tuple(given)) not in plans:
            plans[names] = _plan_of(model, names)
        read, arrange, conversions = plans[names]
        values = [*(read(source) if arrange is None else arrange((*read(source), *given.values(), UNSET)))]
        for index, convert in conversions:
            if (value := values[index]) is not None:
                values[index] = convert(value)
        return make(*values)

    return encode


def _plan_of(model: type[BaseModel], given: tuple[str, ...]) -> _Plan:
    fields = model.model_fields
    if unknown := [name for name in given if name not in fields]:
        raise TypeError(f"{model.__name__} has no field {', '.join(unknown)}")
    attributes = {name: _attribute_of(name, field) for name, field in fields.items() if name not in given}
    read = [name for name, attribute in attributes.items() if attribute]
    found = [*read, *given]
    order = [found.index(name) if name in found else -1 for name in fields]  # at -1 is UNSET, which is left out
    converts = [_conversion_of(field.annotation, field.metadata) for field in fields.values()]
    return _Plan(
        _get_all(attrgetter, [attributes[name] for name in read]),
        None if found == [*fields][: len(read)] else _get_all(itemgetter, order),
        tuple((index, convert) for index, convert in enumerate(converts) if convert and order[index] >= 0),
    )


def _attribute_of(name: str, field: FieldInfo) -> str | None:
    own = name if field.is_required() else None
    return next((each.attribute for each in field.metadata if isinstance(each, From)), own)


def _get_all(getter: Callable[..., Convert], keys: list[Any]) -> Convert:
    """Return a function that gets several values, for one key or none as well."""
    getters = [getter(key) for key in keys]
    return getter(*keys) if len(keys) > 1 else lambda source: [get(source) for get in getters]


def _conversion_of(annotation: Any, metadata: Any = ()) -> Convert | None:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if marks := [each.convert for each in metadata if isinstance(each, As)]:
        return marks[0]
    if origin is Annotated:
        return _conversion_of(arguments[0], arguments[1:])
    if origin is Literal:
        return _name_of if all(isinstance(value, str) for value in arguments) else None
    if origin is list:
        convert = _conversion_of(arguments[0])
        if convert and NoneType in get_args(arguments[0]):
            return lambda values: [None if value is None else convert(value) for value in values]
        return convert and (lambda values: [convert(value) for value in values])
    if origin in {Union, UnionType}:
        kinds = [_conversion_of(kind) for kind in arguments if kind is not NoneType]
        if len(kinds) > 1 and any(kinds):
            raise TypeError(f"{annotation} has no single conversion")
        return kinds[0]
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return lambda value: value if isinstance(value, _ENCODED) else encoder(annotation)(value)
    return None


def _name_of(member: Any) -> str:
    return member if isinstance(member, str) else member._name_  # `name` is a property, and slower
