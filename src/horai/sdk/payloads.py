"""The signature of a function: its form, the shape of its payload, and its result as JSON text."""

import inspect
import typing
from collections.abc import Callable, Mapping
from enum import Enum, auto
from functools import partial
from inspect import Parameter
from types import NoneType, SimpleNamespace
from typing import Any, NamedTuple, TypeVar, get_args, get_origin

import msgspec

from horai.core.errors import Invalid
from horai.core.outcome import RESULT_LIMIT
from horai.sdk.codec_choice import is_pydantics
from horai.sdk.codecs import UNTYPED, Misfit, PayloadMismatch, Shape, codec_of_msgspec, codec_of_pydantic, json_text
from horai.sdk.instance import Instance

__all__ = [
    "Form",
    "PayloadMismatch",
    "ResultInvalid",
    "Shape",
    "Signature",
    "encode_result",
    "result_shape_of",
    "shape_of",
    "signature_of",
]

_ANYTHING = (Any, None, NoneType, object, Parameter.empty)
_POSITIONAL = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
_TAKES = "A function takes nothing, the instance, or its payload: def f(), def f(instance), def f(order: Order)."


class ResultInvalid(ValueError):
    """The returned value cannot be stored as a result."""


class Form(Enum):
    """The kind of argument that a function takes."""

    nothing = auto()
    instance = auto()
    payload = auto()


class Signature(NamedTuple):
    """The signature of a function. `shape` is that of its payload, also if the instance carries it."""

    form: Form
    shape: Shape[Any]
    is_async: bool


def shape_of(annotation: object, field: str = "payload") -> Shape[Any]:
    """Return the shape of a type. Raises `Invalid` for a type that cannot be read from JSON."""
    if any(annotation is anything for anything in _ANYTHING) or isinstance(annotation, TypeVar):
        return Shape(UNTYPED, None, field)
    try:
        return _typed_shape(annotation, field)
    except Exception as error:  # the type's own hooks may raise any error
        reason = str(error).strip().partition("\n")[0] or type(error).__name__
        raise Invalid.field(
            field,
            f"{_shown(annotation)} cannot be read from JSON: {reason}",
            "Use a dataclass, a pydantic model, a msgspec Struct, or the types they are made of.",
        ) from error


def _typed_shape(annotation: Any, field: str) -> Shape[Any]:
    if not is_pydantics(annotation):
        try:
            codec = codec_of_msgspec(annotation)
        except TypeError:  # such as a union of two dataclasses, which pydantic can distinguish
            pass
        else:
            return Shape(codec, _published(lambda: msgspec.json.schema(annotation)), field)
    codec, schema = codec_of_pydantic(annotation)
    return Shape(codec, _published(schema), field)


def _published(describe: Callable[[], Mapping[str, Any]]) -> Mapping[str, Any]:
    """Return the schema as plain JSON; an empty one if the type has none."""
    try:
        return msgspec.json.decode(json_text(describe(), UNTYPED))
    except Exception:  # a type that can be read but not described, or not described in JSON
        return {}


def _shown(annotation: object) -> str:
    return annotation.__qualname__ if isinstance(annotation, type) else str(annotation)[:200]


def signature_of(function: Callable[..., Any]) -> Signature:
    """Return the signature of a function. Raises `Invalid` with the reason if it cannot be the function of a job."""
    _refuse_oddities(function)
    parameters = list(_parameters(function).values())
    is_async = any(map(inspect.iscoroutinefunction, (function, _called(function))))
    if not parameters:
        return Signature(Form.nothing, shape_of(Any), is_async)
    if len(parameters) > 1 or parameters[0].kind not in _POSITIONAL:
        taken = ", ".join(str(parameter) for parameter in parameters)
        raise Invalid.field(_name(function), f"takes ({taken})", _TAKES)
    (parameter,) = parameters
    annotation = _resolved(function, parameter.name, parameter.annotation)
    form, shape = _form(annotation, parameter)
    return Signature(form, shape, is_async)


def _form(annotation: object, parameter: Parameter) -> tuple[Form, Shape[Any]]:
    if annotation is Parameter.empty or annotation is Instance:
        return Form.instance, shape_of(Any)
    if get_origin(annotation) is Instance:
        return Form.instance, shape_of(get_args(annotation)[0])
    shape = shape_of(annotation)
    return Form.payload, shape if parameter.default is Parameter.empty else shape.or_else(parameter.default)


def _refuse_oddities(function: Callable[..., Any]) -> None:
    if inspect.isclass(function) or not callable(function):
        raise Invalid.field(_name(function), "is not a function", _TAKES)
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise Invalid.field(
            _name(function), "is a generator: it would never run", "Return a value instead of yielding."
        )


def _parameters(function: Callable[..., Any]) -> Mapping[str, Parameter]:
    try:
        return inspect.signature(function).parameters
    except (TypeError, ValueError) as error:
        raise Invalid.field(_name(function), f"cannot be called as a job: {error}", _TAKES) from error


def result_shape_of(function: Callable[..., Any]) -> Shape[Any]:
    """Return the shape of a function's result; untyped if its annotation is not a type that can be read from JSON."""
    try:
        returns = inspect.signature(function).return_annotation
        return shape_of(_resolved(function, "return", returns), "result")
    except (Invalid, TypeError, ValueError):
        return shape_of(Any, "result")


def _resolved(function: Callable[..., Any], name: str, annotation: object) -> object:
    """Return the annotation with its strings resolved to types, by the names of the function's own module."""
    if annotation is Parameter.empty:
        return annotation
    bearer = SimpleNamespace(__annotations__={name: annotation})
    try:
        return typing.get_type_hints(bearer, _module_of(function), include_extras=True)[name]
    except Exception as error:
        raise Invalid.field(
            _name(function),
            f"the annotation of {name!r} cannot be resolved: {error}",
            "Define or import its type at the top of the module, where the running program sees it.",
        ) from error


def _module_of(function: Callable[..., Any]) -> dict[str, Any]:
    inner: Any = inspect.unwrap(function)
    while isinstance(inner, partial):
        inner = inspect.unwrap(inner.func)
    return getattr(_called(inner), "__globals__", {})


def _called(function: Any) -> Any:
    """Return the routine that a call runs: the function itself, or the `__call__` method of an object."""
    return function if inspect.isroutine(function) else type(function).__call__


def _name(function: object) -> str:
    return str(getattr(function, "__name__", type(function).__name__))[:128]


def encode_result(value: object) -> str | None:
    """Return a function's result as JSON text. Raises `ResultInvalid` if it is not JSON, or too large to be stored."""
    if value is None:
        return None
    try:
        text = json_text(value, UNTYPED)
    except Misfit as misfit:
        (place, reason), *_ = misfit.faults
        raise ResultInvalid(f"result{place} is not JSON: {reason}") from None
    if len(text) > RESULT_LIMIT:
        raise ResultInvalid(f"its result is larger than {RESULT_LIMIT} bytes")
    return text.decode()
