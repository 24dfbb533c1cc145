"""How the values of one type become JSON text that the database keeps, and come back checked.

What is accepted here can be read there: a value is encoded, and its text is read back by the very reader that the
worker uses, before it is stored.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from horai.core.errors import FieldError, Invalid, TooLarge
from horai.core.jsontext import NUMBER_LIMIT, fault_in
from horai.core.settings import NESTING_LIMIT, PAYLOAD_LIMIT

T = TypeVar("T")

FAULTS_SHOWN = 10
_PLACE = re.compile(r"(?P<message>.*?)(?: - at (?P<key>`key` in )?`\$(?P<place>[^`]*)`)?", re.DOTALL)
_QUOTED = re.compile(r"(Invalid (?:enum )?value) .*", re.DOTALL)
"""Where msgspec repeats what it was given: no message carries a part of a payload."""
_LONG_NUMBER = re.compile(rb"\d{%d}" % (NUMBER_LIMIT + 1))
UNWRITABLE = (TypeError, ValueError, OverflowError, RecursionError)
"""What an encoder raises for a value that is no JSON."""


class Misfit(ValueError):
    """Why a text or a value is none of a type: every place, as `.items[2].price`, with its reason."""

    def __init__(self, faults: Sequence[tuple[str, str]]) -> None:
        super().__init__("; ".join(f"{place}: {reason}" for place, reason in faults))
        self.faults = tuple(faults)


class PayloadMismatch(ValueError):
    """A payload that is not of the type that the function wants; says where and why, never what it was."""


class Codec(NamedTuple):
    """One type's writer and reader. `plain` gives a value as the dicts, lists and scalars that its text says."""

    write: Callable[[Any], bytes]
    read: Callable[[str], Any]
    plain: Callable[[Any], Any]
    misfits: Callable[[Exception], Misfit]
    errors: tuple[type[Exception], ...]
    """What `read` raises for a text that does not fit."""


class Shape(Generic[T]):
    """A type's way to JSON text and back. `schema` is its JSON schema, None for untyped JSON."""

    __slots__ = ("_absent", "_codec", "_default", "_errors", "_field", "_has_default", "_read", "schema")

    def __init__(self, codec: Codec, schema: Mapping[str, Any] | None, field: str = "payload") -> None:
        self.schema = schema
        self._codec = codec
        self._read = codec.read
        self._errors = codec.errors
        self._field = field
        self._absent: str | None = None
        self._default: object = None
        self._has_default = schema is None

    def or_else(self, default: object) -> "Shape[T]":
        """The same, with what stands for no payload."""
        shape = Shape[T](self._codec, self.schema, self._field)
        shape._default, shape._has_default = default, True
        return shape

    def encode(self, value: object) -> str | None:
        """JSON text of the type; `Invalid` says at which field it is none. None stays None: the job's own payload."""
        if value is None:
            return None
        try:
            text = self._written(value)
        except Misfit as misfit:
            faults = [FieldError(self._field + place, reason) for place, reason in misfit.faults]
            raise Invalid("; ".join(f"{fault.field}: {fault.message}" for fault in faults), None, faults) from None
        if len(text) > PAYLOAD_LIMIT:
            raise TooLarge(
                f"{self._field} is larger than {PAYLOAD_LIMIT} bytes.",
                "Keep large data elsewhere and send a reference.",
            )
        return text.decode()

    @property
    def is_required(self) -> bool:
        """Return whether a function with this parameter cannot run without a payload."""
        try:
            self._without()
        except PayloadMismatch:
            return True
        return False

    def _written(self, value: object) -> bytes:
        text = json_text(value, self._codec)
        if self.schema is not None:
            try:
                self._read(text.decode())
            except self._errors as error:
                raise self._codec.misfits(error) from None
        return text

    def decode(self, text: str | None) -> T:
        """The value of a stored text; `PayloadMismatch` says where it does not fit.

        No payload is the parameter's default; or else None, or the type made of nothing, where the type allows it.
        """
        if text is None or text == "null":
            return self._without()
        try:
            return self._read(text)
        except self._errors as error:
            raise self._mismatch(error) from None

    def _mismatch(self, error: Exception) -> PayloadMismatch:
        faults = self._codec.misfits(error).faults
        return PayloadMismatch("; ".join(f"{self._field}{place}: {reason}" for place, reason in faults))

    def _without(self) -> Any:
        if self._has_default:
            return self._default
        for text in (self._absent,) if self._absent is not None else ("null", "{}"):
            try:
                value = self._read(text)
            except self._errors:
                continue
            self._absent = text
            return value
        raise PayloadMismatch(f"{self._field}: there is none")


def json_text(value: object, codec: Codec) -> bytes:
    """The JSON text of a value, such as PostgreSQL and every reader of ours takes; `Misfit` otherwise."""
    try:
        text = codec.write(value)
    except Misfit:
        raise
    except UNWRITABLE as error:
        raise _unwritable(value, codec, error) from None
    is_suspect = (
        b"null" in text  # how NaN is written, too
        or b"\\u0000" in text
        or text.count(b"[") + text.count(b"{") > NESTING_LIMIT
        or (len(text) > NUMBER_LIMIT and _LONG_NUMBER.search(text) is not None)
    )
    if is_suspect and (fault := fault_in(codec.plain(value))):
        raise Misfit([fault])
    return text


def _unwritable(value: object, codec: Codec, error: Exception) -> Misfit:
    if isinstance(error, RecursionError):
        return Misfit([("", f"is nested deeper than {NESTING_LIMIT} levels")])
    try:
        fault = fault_in(codec.plain(value))
    except UNWRITABLE:
        fault = None
    return Misfit([fault or ("", _reason(error))])


def _reason(error: Exception) -> str:
    """Why a value cannot be written; what it was is not repeated."""
    if isinstance(error, UnicodeError):
        return "a string contains a lone surrogate"
    return str(error)[:200] or type(error).__name__


def misfits_of_msgspec(error: Exception) -> Misfit:
    """The one fault that msgspec reports, in our words."""
    found = _PLACE.fullmatch(str(error))
    assert found is not None  # noqa: S101 — every text has a message
    message = _QUOTED.sub(r"\1", found["message"])
    return Misfit([(found["place"] or "", f"{message} as a name" if found["key"] else message)])


def _jsonable(value: object) -> object:
    """What msgspec does not know: models of pydantic, paths, addresses."""
    import pydantic_core  # noqa: PLC0415 — slow to import, and most applications need none of it

    return pydantic_core.to_jsonable_python(value)


_write = msgspec.json.Encoder(enc_hook=_jsonable).encode


def _plain(value: object) -> Any:
    return msgspec.to_builtins(value, str_keys=True, enc_hook=_jsonable)


def codec_of_msgspec(annotation: Any) -> Codec:
    """For whatever msgspec reads; TypeError for what it does not."""
    read = msgspec.json.Decoder(annotation).decode
    return Codec(_write, read, _plain, misfits_of_msgspec, (msgspec.MsgspecError, UnicodeError))


UNTYPED = codec_of_msgspec(Any)


def codec_of_pydantic(annotation: Any) -> tuple[Codec, Callable[[], Mapping[str, Any]]]:
    """For whatever pydantic reads, and what makes its schema; pydantic's own error for what it does not.

    Fields are written by their aliases, as the schema has them, and read by alias or name.
    """
    import pydantic  # noqa: PLC0415 — as above

    adapter = pydantic.TypeAdapter(annotation)
    adapter.rebuild()  # a name that cannot be resolved is told now, not by the first payload

    def write(value: object) -> bytes:
        return adapter.dump_json(checked(value), by_alias=True, round_trip=True, warnings="none")

    def plain(value: object) -> Any:
        return adapter.dump_python(checked(value), mode="json", by_alias=True, round_trip=True, warnings="none")

    def checked(value: object) -> Any:
        try:
            return adapter.validate_python(value, by_alias=True, by_name=True)
        except pydantic.ValidationError as error:
            raise misfits(error) from None

    def read(text: str) -> Any:
        return adapter.validate_json(text, by_alias=True, by_name=True)

    def misfits(error: Exception) -> Misfit:
        if not isinstance(error, pydantic.ValidationError):
            return Misfit([("", str(error))])
        found = error.errors(include_url=False, include_context=False, include_input=False)[:FAULTS_SHOWN]
        return Misfit([("".join(map(_step, fault["loc"])), fault["msg"]) for fault in found])

    return Codec(write, read, plain, misfits, (pydantic.ValidationError,)), adapter.json_schema


def _step(step: int | str) -> str:
    return f"[{step}]" if isinstance(step, int) else f".{step[:64]}"
