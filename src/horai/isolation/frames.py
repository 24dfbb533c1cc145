"""What a worker and its child say to each other: messages with their length before them, and nothing executable."""

from asyncio import IncompleteReadError, StreamReader
from typing import IO, Any, get_args

import msgspec

from horai.core.calls import Call, WorkerTarget
from horai.core.outcome import Outcome

PREFIX = 4
FRAME_LIMIT = 16 * 1024 * 1024
"""Bytes. Far above any payload: what claims to be longer is no message of ours."""

GONE = "closed its connection"
GIBBERISH = "said what cannot be understood"

_OUTCOMES = {kind.__name__: kind for kind in get_args(Outcome)}


class Ready(msgspec.Struct, frozen=True, tag=True):
    """Child: the app is imported."""


class Unfit(msgspec.Struct, frozen=True, tag=True):
    """Child: the app cannot be imported."""

    reason: str


class Begin(msgspec.Struct, frozen=True, tag=True):
    """Worker: run this. A call, but for its target, which is the handler."""

    handler: str
    fields: dict[str, Any]


class Begun(msgspec.Struct, frozen=True, tag=True):
    """Child: the function begins now. Before this word, nothing was done."""


class NoteFrame(msgspec.Struct, frozen=True, tag=True):
    """Child: what the function tells of itself."""

    progress: float | None
    message: str | None


class CallEnded(msgspec.Struct, frozen=True, tag=True):
    """Child: what the function came to, by the name of the outcome."""

    verb: str
    fields: dict[str, Any]


class ClaimOver(msgspec.Struct, frozen=True, tag=True):
    """Worker: nobody waits for this attempt any more."""

    instance_id: int
    fence: int


class Leave(msgspec.Struct, frozen=True, tag=True):
    """Worker: end, in your own time."""


Message = Ready | Unfit | Begin | Begun | NoteFrame | CallEnded | ClaimOver | Leave


class Hangup(Exception):
    """The other side is gone, or says what cannot be understood."""


_decoder = msgspec.msgpack.Decoder(Message)


def pack(message: Message) -> bytes:
    """The message as it is sent."""
    body = msgspec.msgpack.encode(message)
    return len(body).to_bytes(PREFIX, "big") + body


async def heard(stream: StreamReader) -> Message:
    """The next message; `Hangup` when there is none."""
    try:
        return _unpack(await stream.readexactly(_size(await stream.readexactly(PREFIX))))
    except (IncompleteReadError, OSError) as error:
        raise Hangup(GONE) from error


def read(stream: IO[bytes]) -> Message:
    """The next message, waited for; `Hangup` when there is none."""
    size = _size(stream.read(PREFIX))
    body = stream.read(size)
    if len(body) < size:
        raise Hangup(GONE)
    return _unpack(body)


def _size(prefix: bytes) -> int:
    if len(prefix) < PREFIX:
        raise Hangup(GONE)
    if (size := int.from_bytes(prefix, "big")) > FRAME_LIMIT:
        raise Hangup(GIBBERISH)
    return size


def _unpack(body: bytes) -> Message:
    try:
        return _decoder.decode(body)
    except msgspec.MsgspecError as error:
        raise Hangup(GIBBERISH) from error


def begin(call: Call, handler: str) -> Begin:
    """The call for the child. It has no deadline there: the worker watches the clock. Nor secrets: they are for HTTP."""
    return Begin(handler, call._asdict() | {"target": None, "timeout": None, "secrets": ()})


def call_of(message: Begin) -> Call:
    """The call that `begin` was given."""
    fields: dict[str, Any] = {**message.fields, "target": WorkerTarget(message.handler), "secrets": ()}
    return Call(**fields)


def ended(outcome: Outcome) -> CallEnded:
    """The outcome for the worker."""
    return CallEnded(type(outcome).__name__, msgspec.to_builtins(outcome))


def outcome_of(message: CallEnded) -> Outcome:
    """The outcome that `ended` was given; `Hangup` for what is none."""
    try:
        return msgspec.convert(message.fields, _OUTCOMES[message.verb])
    except (KeyError, msgspec.ValidationError) as error:
        raise Hangup(GIBBERISH) from error
