"""Codecs: the values of one type as JSON text for the database, and back, validated.

Every stored text can be read by the worker: before a value is stored, its text is read back with the same reader that
the worker uses.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from horai.core.errors import FieldError, Invalid, TooLarge
from horai.core.jsontext import NUMBER_LIMIT, fault_in
from horai.core.limits import NESTING_LIMIT, PAYLOAD_LIMIT

T = TypeVar("T")

FAULTS_SHOWN = 10
_PLACE = re.compile(r"(?P<message>.*?)(?: - at (?P<key>`key` in )?`\$(?P<place>[^`]*)`)?", re.DOTALL)
_QUOTED = re.compile(r"(Invalid (?:enum )?value) .*", re.DOTALL)
"""Messages in which msgspec repeats its input. The input is cut off: no message contains a part of a payload."""
_LONG_NUMBER = re.compile(rb"\d{%d}" % (NUMBER_LIMIT + 1))
UNWRITABLE = (TypeError, ValueError, OverflowError, RecursionError)
"""The errors that an encoder raises for a value that is not JSON."""


class Misfit(ValueError):
    """A text or a value that does not fit a type: every wrong place, such as `.items[2].price`, with its reason."""

    def __init__(self, faults: Sequence[tuple[str, str]]) -> None:
        super().__init__("; ".join(f"{place}: {reason}" for place, reason in faults))
        self.faults = tuple(faults)


class PayloadMismatch(ValueError):
    """A payload that does not fit the function's type. The text says where and why, but never shows the payload."""


class PayloadOfOtherCode(PayloadMismatch):
    """A payload whose fields are those of another version of the function. `code` says how they differ.

    The function has not begun, and a worker with the other version can run the instance: the attempt is retried.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class Codec(NamedTuple):
    """The writer and reader of one type. `plain` returns a value as the dicts, lists and scalars of its JSON text."""

    write: Callable[[Any], bytes]
    read: Callable[[str | bytes], Any]
    plain: Callable[[Any], Any]
    misfits: Callable[[Exception], Misfit]
    errors: tuple[type[Exception], ...]
    """The errors that `read` raises for a text that does not fit."""


class Shape(Generic[T]):
    """The conversion of a type to JSON text and back. `schema` is its JSON schema, None for untyped JSON."""

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
        """Return a copy with a default for a missing payload."""
        shape = Shape[T](self._codec, self.schema, self._field)
        shape._default, shape._has_default = default, True
        return shape

    def encode(self, value: object) -> str | None:
        """Return the value as JSON text. Raises `Invalid` with the fields that do not fit, and `TooLarge`.

        None stays None: the job's own payload is used.
        """
        if value is None:
            return None
        try:
            text = self.write(value)
        except Misfit as misfit:
            raise self.refusal(misfit.faults) from None
        return self.within_limit(text)

    def refusal(self, faults: Sequence[tuple[str, str]], hint: str | None = None) -> Invalid:
        """Return the error for a value with these faults: places below the value, with their reasons."""
        fields = [FieldError(self._field + place, reason) for place, reason in faults]
        return Invalid("; ".join(f"{fault.field}: {fault.message}" for fault in fields), hint, fields)

    def within_limit(self, text: bytes) -> str:
        """Return the text of a payload. Raises `TooLarge` above `PAYLOAD_LIMIT`."""
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

    def write(self, value: object) -> bytes:
        """Return the value as JSON text, read back once. Raises `Misfit`."""
        text = json_text(value, self._codec)
        if self.schema is not None:
            self.read(text)
        return text

    def read(self, text: str | bytes) -> T:
        """Return the value of a text, which may be null. Raises `Misfit`."""
        try:
            return self._read(text)
        except self._errors as error:
            raise self._codec.misfits(error) from None

    def plain(self, value: object) -> Any:
        """Return a value as the dicts, lists and scalars of its JSON text."""
        return self._codec.plain(value)

    def decode(self, text: str | None) -> T:
        """Return the value of a stored text. Raises `PayloadMismatch` with the places that do not fit.

        No payload gives the parameter's default; without a default, None or the value of `{}`, if the type accepts it.
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
        raise PayloadMismatch(f"{self._field}: is missing")


def json_text(value: object, codec: Codec) -> bytes:
    """Return the JSON text of a value. Raises `Misfit` if PostgreSQL or a reader of Horai would not accept it."""
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
    """Return why a value cannot be written, without the value."""
    if isinstance(error, UnicodeError):
        return "a string contains a lone surrogate"
    return str(error)[:200] or type(error).__name__


def misfits_of_msgspec(error: Exception) -> Misfit:
    """Convert the one error that msgspec reports to a `Misfit`."""
    found = _PLACE.fullmatch(str(error))
    assert found is not None  # noqa: S101 — every text has a message
    message = _QUOTED.sub(r"\1", found["message"])
    return Misfit([(found["place"] or "", f"{message} as a name" if found["key"] else message)])


def _jsonable(value: object) -> object:
    """Convert values that msgspec does not know: models of pydantic, paths, addresses."""
    import pydantic_core  # noqa: PLC0415 — slow to import, and most applications do not need it

    return pydantic_core.to_jsonable_python(value)


_write = msgspec.json.Encoder(enc_hook=_jsonable).encode


def _plain(value: object) -> Any:
    return msgspec.to_builtins(value, str_keys=True, enc_hook=_jsonable)


def codec_of_msgspec(annotation: Any) -> Codec:
    """Return the codec of a type that msgspec reads. Raises TypeError for other types."""
    read = msgspec.json.Decoder(annotation).decode
    return Codec(_write, read, _plain, misfits_of_msgspec, (msgspec.MsgspecError, UnicodeError))


UNTYPED = codec_of_msgspec(Any)


def codec_of_pydantic(annotation: Any) -> tuple[Codec, Callable[[], Mapping[str, Any]]]:
    """Return the codec of a type that pydantic reads, and a function that makes its schema.

    Raises pydantic's own error for other types.

    Fields are written by their aliases, as the schema has them, and read by alias or name.
    """
    import pydantic  # noqa: PLC0415 — as above

    adapter = pydantic.TypeAdapter(annotation)
    adapter.rebuild()  # raises for an unresolved name now, not with the first payload

    def write(value: object) -> bytes:
        return adapter.dump_json(checked(value), by_alias=True, round_trip=True, warnings="none")

    def plain(value: object) -> Any:
        return adapter.dump_python(checked(value), mode="json", by_alias=True, round_trip=True, warnings="none")

    def checked(value: object) -> Any:
        try:
            return adapter.validate_python(value, by_alias=True, by_name=True)
        except pydantic.ValidationError as error:
            raise misfits(error) from None

    def read(text: str | bytes) -> Any:
        return adapter.validate_json(text, by_alias=True, by_name=True)

    def misfits(error: Exception) -> Misfit:
        if not isinstance(error, pydantic.ValidationError):
            return Misfit([("", str(error))])
        found = error.errors(include_url=False, include_context=False, include_input=False)[:FAULTS_SHOWN]
        return Misfit([("".join(map(_step, fault["loc"])), fault["msg"]) for fault in found])

    return Codec(write, read, plain, misfits, (pydantic.ValidationError,)), adapter.json_schema


def _step(step: int | str) -> str:
    return f"[{step}]" if isinstance(step, int) else f".{step[:64]}"
