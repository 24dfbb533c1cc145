"""The signature of a function: its form, the shape of its payload, and its result as JSON text."""

import inspect
import typing
from collections.abc import Callable, Mapping, Sequence
from enum import Enum, auto
from functools import partial
from inspect import Parameter
from types import NoneType, SimpleNamespace
from typing import Any, NamedTuple, TypeVar, get_args, get_origin

import msgspec

from horai.core.errors import Invalid
from horai.core.limits import RESULT_LIMIT
from horai.sdk.branches import is_branch_type
from horai.sdk.codec_choice import is_pydantics
from horai.sdk.codecs import UNTYPED, Misfit, PayloadMismatch, Shape, codec_of_msgspec, codec_of_pydantic, json_text
from horai.sdk.instance import Instance
from horai.sdk.parameters import ArgumentsShape, CallParameter, by_parameters

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
_VARIABLE = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)
_TAKES = (
    "A function takes nothing, the instance, or parameters: def f(), def f(instance), def f(order: Order, amount: int)."
)


class ResultInvalid(ValueError):
    """The returned value cannot be stored as a result."""


class Form(Enum):
    """The kind of argument that a function takes. `payload` is one parameter, `arguments` are several."""

    nothing = auto()
    instance = auto()
    payload = auto()
    arguments = auto()


class Signature(NamedTuple):
    """The signature of a function. `shape` is that of its payload, also if the instance carries it."""

    form: Form
    shape: Shape[Any]
    is_async: bool
    parameters: tuple[CallParameter, ...] = ()
    """The parameters of the call: those of the function without the instance."""
    is_given: bool = False
    """True if the function takes the instance before the parameters of the call."""

    def adapted(self, function: Callable[..., Any]) -> tuple[Callable[..., Any], Form]:
        """Return a function that takes nothing, the instance or the payload, and its form."""
        is_plain = not self.is_given and all(each.kind in _POSITIONAL for each in self.parameters)
        if self.form is not Form.arguments and is_plain:
            return function, self.form
        return by_parameters(function, self.shape, self.parameters, is_given=self.is_given), Form.instance


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


def signature_of(function: Callable[..., Any], job: str | None = None) -> Signature:
    """Return the signature of a function. Raises `Invalid` with the reason if it cannot be the function of a job.

    `job` is the name of the job for messages; the name of the function without it.
    """
    _refuse_oddities(function)
    parameters = list(_parameters(function).values())
    is_async = any(map(inspect.iscoroutinefunction, (function, _called(function))))
    if not parameters:
        return Signature(Form.nothing, shape_of(Any), is_async)
    types = {each.name: _resolved(function, each.name, each.annotation) for each in parameters}
    is_given = _is_instance(parameters[0], types, is_alone=len(parameters) == 1)
    _refuse_parameters(function, parameters, types, is_given=is_given)
    if is_given and len(parameters) == 1:
        carried = get_args(types[parameters[0].name])
        return Signature(Form.instance, shape_of(carried[0] if carried else Any), is_async)
    return _of_parameters(job or _name(function), parameters[is_given:], types)._replace(
        is_async=is_async, is_given=is_given
    )


def _of_parameters(job: str, parameters: Sequence[Parameter], types: Mapping[str, object]) -> Signature:
    if len(parameters) > 1:
        taken = tuple(
            CallParameter(each.name, shape_of(types[each.name], f"payload.{each.name}"), each.kind, each.default)
            for each in parameters
        )
        return Signature(Form.arguments, ArgumentsShape(job, taken), is_async=False, parameters=taken)
    (only,) = parameters
    shape = shape_of(types[only.name])
    if only.default is not Parameter.empty:
        shape = shape.or_else(only.default)
    own = CallParameter(only.name, shape, only.kind, only.default)
    return Signature(Form.payload, shape, is_async=False, parameters=(own,))


def _is_instance(parameter: Parameter, types: Mapping[str, object], *, is_alone: bool) -> bool:
    """Return whether the first parameter is the instance: by its annotation, or without one by its name or if alone."""
    if (annotation := types[parameter.name]) is Parameter.empty:
        return parameter.kind in _POSITIONAL and (is_alone or parameter.name == "instance")
    return annotation is Instance or get_origin(annotation) is Instance


def _refuse_parameters(
    function: Callable[..., Any], parameters: Sequence[Parameter], types: Mapping[str, object], *, is_given: bool
) -> None:
    taken = f"takes ({', '.join(str(parameter) for parameter in parameters)})"
    if any(each.kind in _VARIABLE for each in parameters) or (is_given and parameters[0].kind not in _POSITIONAL):
        raise Invalid.field(_name(function), taken, _TAKES)
    others = [types[each.name] for each in parameters[is_given:]]
    if any(each is Instance or get_origin(each) is Instance for each in others):
        raise Invalid.field(
            _name(function), taken, "The instance is the first parameter: def f(instance: Instance, …)."
        )
    carried = get_args(types[parameters[0].name]) if is_given and others else ()
    if carried and carried[0] not in (Any, object):
        hint = "The payload is the other parameters: annotate the first one as Instance or Instance[object]."
        raise Invalid.field(_name(function), taken, hint)


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
        returns = _resolved(function, "return", inspect.signature(function).return_annotation)
        return shape_of(Any if is_branch_type(returns) else returns, "result")
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
