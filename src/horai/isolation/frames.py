"""The messages between a worker and its child: each has a length prefix, and none is executable."""

from asyncio import IncompleteReadError, StreamReader
from collections.abc import Mapping
from typing import IO, Any, TypeVar, get_args

import msgspec

from horai.core.calls import Call, WorkerTarget
from horai.core.outcome import Compensated, Lost, Outcome, Suspended, Withdrawn

PREFIX = 4
FRAME_LIMIT = 16 * 1024 * 1024
"""Bytes. Far above any payload: a longer frame is not a message of Horai."""

GONE = "closed its connection"
GIBBERISH = "sent a message that cannot be decoded"

_OUTCOMES = {kind.__name__: kind for kind in (*get_args(Outcome), Lost, Suspended, Withdrawn, Compensated)}


class Ready(msgspec.Struct, frozen=True, tag=True):
    """Child: the app is imported."""


class Unfit(msgspec.Struct, frozen=True, tag=True):
    """Child: the app cannot be imported."""

    reason: str


class Begin(msgspec.Struct, frozen=True, tag=True):
    """Worker: run this call. Its target is left out: it is the handler."""

    handler: str
    fields: dict[str, Any]


class Begun(msgspec.Struct, frozen=True, tag=True):
    """Child: the function begins now. Before this message, no part of the call has run."""


class NoteFrame(msgspec.Struct, frozen=True, tag=True):
    """Child: progress or a message of the function."""

    progress: float | None
    message: str | None


class CallEnded(msgspec.Struct, frozen=True, tag=True):
    """Child: the outcome of the function; `verb` is the name of its type."""

    verb: str
    fields: dict[str, Any]


class ClaimOver(msgspec.Struct, frozen=True, tag=True):
    """Worker: the claim of this attempt is over."""

    instance_id: int
    fence: int


class Leave(msgspec.Struct, frozen=True, tag=True):
    """Worker: end after the current work."""


Message = Ready | Unfit | Begin | Begun | NoteFrame | CallEnded | ClaimOver | Leave
M = TypeVar("M")


class Hangup(Exception):
    """The other side closed the connection, or sent a message that cannot be decoded."""


_decoder = msgspec.msgpack.Decoder(Message)


def pack(message: msgspec.Struct) -> bytes:
    """Return the message as bytes, with its length prefix."""
    body = msgspec.msgpack.encode(message)
    return len(body).to_bytes(PREFIX, "big") + body


async def heard(stream: StreamReader) -> Message:
    """Return the next message. Raises `Hangup` if the connection ends first."""
    return await heard_as(_decoder, stream)


async def heard_as(decoder: msgspec.msgpack.Decoder[M], stream: StreamReader) -> M:
    """Return the next message of another set of messages. Raises `Hangup` if the connection ends first."""
    try:
        return unpack(decoder, await stream.readexactly(_size(await stream.readexactly(PREFIX))))
    except (IncompleteReadError, OSError) as error:
        raise Hangup(GONE) from error


def read(stream: IO[bytes]) -> Message:
    """Return the next message; block until it arrives. Raises `Hangup` if the connection ends first."""
    size = _size(stream.read(PREFIX))
    body = stream.read(size)
    if len(body) < size:
        raise Hangup(GONE)
    return unpack(_decoder, body)


def _size(prefix: bytes) -> int:
    if len(prefix) < PREFIX:
        raise Hangup(GONE)
    if (size := int.from_bytes(prefix, "big")) > FRAME_LIMIT:
        raise Hangup(GIBBERISH)
    return size


def unpack(decoder: msgspec.msgpack.Decoder[M], body: bytes) -> M:
    """Decode a message without its length prefix. Raises `Hangup` if that is not possible."""
    try:
        return decoder.decode(body)
    except msgspec.MsgspecError as error:
        raise Hangup(GIBBERISH) from error


_LEFT_OUT: Mapping[str, Any] = {"target": None, "timeout": None, "secrets": ()}


def begin(call: Call, handler: str) -> Begin:
    """Return the call for the child: without the timeout, which the worker enforces, and secrets, which HTTP needs."""
    return Begin(handler, call._asdict() | {**_LEFT_OUT, "interval_from": call.interval_start})


def call_of(message: Begin) -> Call:
    """Return the call that `begin` packed."""
    fields: dict[str, Any] = {**message.fields, "target": WorkerTarget(message.handler), "secrets": ()}
    return Call(**fields)


def ended(outcome: Outcome | Lost) -> CallEnded:
    """Return the message that carries the outcome to the worker."""
    return CallEnded(type(outcome).__name__, msgspec.to_builtins(outcome))


def outcome_of(message: CallEnded) -> Outcome | Lost:
    """Return the outcome that `ended` packed. Raises `Hangup` if the message is not an outcome."""
    try:
        return msgspec.convert(message.fields, _OUTCOMES[message.verb])
    except (KeyError, msgspec.ValidationError) as error:
        raise Hangup(GIBBERISH) from error
