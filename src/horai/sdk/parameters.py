"""The parameters of a function as its payload: one parameter is the payload itself, several are an object by name.

Only the arguments that the caller gives are stored. Defaults apply when the function runs, so a parameter that is added
with a default works with the payloads that are stored already.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from inspect import Parameter, Signature
from typing import Any

import msgspec

from horai.core.jsontext import fault_in
from horai.core.limits import NESTING_LIMIT
from horai.core.payload_members import ADDED
from horai.sdk.codecs import UNTYPED, Misfit, PayloadMismatch, PayloadOfOtherCode, Shape

FIELD_MISSING = "PAYLOAD_FIELD_MISSING"
FIELD_UNKNOWN = "PAYLOAD_FIELD_UNKNOWN"
_DEFINITIONS = "$defs"
_fields = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


@dataclass(frozen=True, slots=True)
class CallParameter:
    """One parameter of the call: a parameter of the function that is not the instance."""

    name: str
    shape: Shape[Any]
    kind: Any
    default: object = Parameter.empty

    @property
    def is_required(self) -> bool:
        """Return whether the function cannot be called without it."""
        return self.default is Parameter.empty


class Arguments:
    """The arguments of one call of a job, by parameter name. `job.arguments(…)` makes them."""

    __slots__ = ("given", "job")

    def __init__(self, job: str, given: Mapping[str, Any]) -> None:
        self.job = job
        self.given = given

    def __repr__(self) -> str:
        return f"<Arguments of {self.job!r}: {', '.join(self.given)}>"


_LATER = object()
"""Stands for an argument that is not known yet."""


class ArgumentsShape(Shape[dict[str, Any]]):
    """The payload of a function with several parameters: a JSON object by parameter name."""

    __slots__ = ("_job", "_parameters", "_signature")

    def __init__(self, job: str, parameters: Sequence[CallParameter]) -> None:
        super().__init__(UNTYPED, _schema(parameters))
        self._job = job
        self._parameters = {parameter.name: parameter for parameter in parameters}
        self._signature = Signature([Parameter(each.name, each.kind, default=each.default) for each in parameters])

    @property
    def names(self) -> tuple[str, ...]:
        """The parameters of the call, in order."""
        return tuple(self._parameters)

    @property
    def is_required(self) -> bool:
        """Return whether the function has a parameter without a default."""
        return any(parameter.is_required for parameter in self._parameters.values())

    def bind(self, arguments: Sequence[object], named: Mapping[str, object]) -> Arguments:
        """Return the arguments of a call by name. Raises `Invalid` for those that the function does not take."""
        try:
            bound = self._signature.bind(*arguments, **named)
        except TypeError as error:
            call = f"{self._job}({', '.join(map(str, self._signature.parameters.values()))})"
            unknown = next((name for name in named if name not in self._parameters), None)
            hint = f"Options of Horai are no arguments: write job.options({unknown}=…).enqueue(…)." if unknown else None
            raise self.refusal([("", f"{error}: the call is {call}")], hint) from None
        return Arguments(self._job, bound.arguments)

    def bind_result(self, arguments: Sequence[object], named: Mapping[str, object]) -> tuple[str, str | None]:
        """Return the parameter that takes a later result as the first argument, and the others as JSON text.

        Raises `Invalid` for arguments that the function does not take beside the result.
        """
        given = dict(self.bind([_LATER, *arguments], named).given)
        name = next(name for name, value in given.items() if value is _LATER)
        del given[name]
        return name, self.encode(given, later=name)

    def encode(self, value: object, later: str | None = None) -> str | None:
        """Return arguments, or a mapping by parameter name, as JSON text. Raises `Invalid` and `TooLarge`.

        The argument `later` is not among them yet.
        """
        if value is None:
            return None
        given = self._given(value)
        faults, parts = self._strange(given, later), list[bytes]()
        for name, parameter in self._parameters.items():
            if name not in given:
                continue
            try:
                parts.append(msgspec.json.encode(name) + b":" + parameter.shape.write(given[name]))
            except Misfit as misfit:
                faults += [(f".{name}{place}", reason) for place, reason in misfit.faults]
        if faults:
            raise self.refusal(faults)
        text = b"{" + b",".join(parts) + b"}"
        is_deep = text.count(b"[") + text.count(b"{") > NESTING_LIMIT
        if is_deep and (fault := fault_in(msgspec.json.decode(text))):
            raise self.refusal([fault])
        return self.within_limit(text)

    def _given(self, value: object) -> Mapping[str, Any]:
        if isinstance(value, Mapping):
            return value  # pyright: ignore[reportUnknownVariableType] — its names are compared below
        if isinstance(value, Arguments) and value.job == self._job:
            return value.given
        found = f"those of {value.job!r}" if isinstance(value, Arguments) else type(value).__name__
        names = ", ".join(self._parameters)
        raise self.refusal(
            [("", f"must be the arguments of {self._job!r}, not {found}")], f"Write {self._job}.arguments({names})."
        )

    def _strange(self, given: Mapping[str, Any], later: str | None) -> list[tuple[str, str]]:
        """Return the faults of the names: those that no parameter has, and required ones that are missing."""
        faults = [
            (f".{str(name)[:64]}", f"the function of {self._job!r} has no such parameter")
            for name in given
            if name not in self._parameters
        ]
        return faults + [(f".{name}", "is missing") for name in self._missing(given) if name not in {*ADDED, later}]

    def _missing(self, given: Mapping[str, Any]) -> list[str]:
        return [name for name, parameter in self._parameters.items() if parameter.is_required and name not in given]

    def decode(self, text: str | None) -> dict[str, Any]:
        """Return the stored arguments by name. Raises `PayloadMismatch`, or `PayloadOfOtherCode` for other fields.

        A payload from before the function had several parameters is the value of its first one.
        """
        try:
            fields = {} if text is None or text == "null" else _fields(text)
        except msgspec.MsgspecError:
            found = self._of_first(text or "", ())
            if found is None:
                raise PayloadMismatch(
                    f"payload: is not an object, and the function of {self._job!r} takes {', '.join(self._parameters)}"
                ) from None
            return found
        if fields and not any(name in self._parameters for name in fields):
            return self._of_first(text or "", fields) or self._read_fields(fields)
        return self._read_fields(fields)

    def _read_fields(self, fields: Mapping[str, msgspec.Raw]) -> dict[str, Any]:
        self._refuse_other_code(fields)
        values, faults = dict[str, Any](), list[str]()
        for name, parameter in self._parameters.items():
            if (raw := fields.get(name)) is None:
                continue
            try:
                values[name] = parameter.shape.read(bytes(raw))
            except Misfit as misfit:
                faults += [f"payload.{name}{place}: {reason}" for place, reason in misfit.faults]
        if faults:
            raise PayloadMismatch("; ".join(faults))
        return values

    def _refuse_other_code(self, fields: Mapping[str, msgspec.Raw]) -> None:
        unknown = [name[:64] for name in fields if name not in self._parameters and name not in ADDED]
        if unknown:
            raise PayloadOfOtherCode(
                FIELD_UNKNOWN,
                f"payload.{unknown[0]}: the function of {self._job!r} has no such parameter. "
                "Deploy the code that has it, or add the parameter with a default until no stored payload has it.",
            )
        if missing := self._missing(fields):
            raise PayloadOfOtherCode(
                FIELD_MISSING,
                f"payload.{missing[0]}: is missing, and the function of {self._job!r} requires it. Give the parameter "
                "a default, or add the instance again with the field.",
            )

    def _of_first(self, text: str, fields: Sequence[str] | Mapping[str, Any]) -> dict[str, Any] | None:
        """Read a payload as the value of the first parameter; None unless the value has all of its fields."""
        first, *others = self._parameters.values()
        if any(parameter.is_required for parameter in others):
            return None
        try:
            value = first.shape.read(text)
            plain: Any = first.shape.plain(value)
        except (Misfit, TypeError, ValueError):
            return None
        return {first.name: value} if not fields or set(fields) <= set(plain) else None

    def unpack(self, values: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """Return the positional and the named arguments of the function."""
        positional, named = list[Any](), dict(values)
        for name, parameter in self._parameters.items():
            if parameter.kind is Parameter.POSITIONAL_ONLY:
                positional.append(named.pop(name, parameter.default))
        return positional, named


def _schema(parameters: Sequence[CallParameter]) -> dict[str, Any]:
    """Return the JSON schema of the object. Definitions move to its root; a parameter whose definition clashes is open."""
    properties, definitions = dict[str, Any](), dict[str, Any]()
    for parameter in parameters:
        own = dict(parameter.shape.schema or {})
        named: dict[str, Any] = own.pop(_DEFINITIONS, {})
        clashes = any(definitions.get(name, schema) != schema for name, schema in named.items())
        properties[parameter.name] = {} if clashes else own
        definitions |= {} if clashes else named
    required = [parameter.name for parameter in parameters if parameter.is_required]
    schema: dict[str, Any] = {"type": "object", "properties": properties, "required": required}
    return {**schema, "additionalProperties": False} | ({_DEFINITIONS: definitions} if definitions else {})


def by_parameters(
    function: Callable[..., Any], shape: Shape[Any], parameters: Sequence[CallParameter], *, is_given: bool
) -> Callable[..., Any]:
    """Return a function of the instance alone that calls `function` with its parameters.

    `is_given`: the function takes the instance too, as its first argument.
    """

    def call(instance: Any) -> Any:
        if isinstance(shape, ArgumentsShape):
            positional, named = shape.unpack(instance.payload)
        elif parameters[0].kind is Parameter.KEYWORD_ONLY:
            positional, named = [], {parameters[0].name: instance.payload}
        else:
            positional, named = [instance.payload], {}
        return function(instance, *positional, **named) if is_given else function(*positional, **named)

    return call
