"""The messages between a worker and its Ray driver. They have the frames of isolated functions."""

from typing import Any

import msgspec

from horai.isolation.frames import Begun, CallEnded, ClaimOver, Leave, NoteFrame, Ready, Unfit


class Submit(msgspec.Struct, frozen=True, tag=True):
    """Worker: run this attempt as a task. `options` are the resources of the task, `timeout` is in seconds."""

    instance_id: int
    fence: int
    handler: str
    fields: dict[str, Any]
    timeout: float | None
    options: dict[str, float]


class Drop(msgspec.Struct, frozen=True, tag=True):
    """Worker: end this task now. Its outcome is not awaited."""

    instance_id: int
    fence: int


class TaskNote(msgspec.Struct, frozen=True, tag=True):
    """Driver: progress or a message of a task."""

    instance_id: int
    fence: int
    progress: float | None
    message: str | None


class TaskEnded(msgspec.Struct, frozen=True, tag=True):
    """Driver: the outcome of a task, which is no longer under way."""

    instance_id: int
    fence: int
    outcome: CallEnded


ToDriver = Submit | ClaimOver | Drop | Leave
FromDriver = Ready | Unfit | TaskNote | TaskEnded
FromTask = Begun | NoteFrame | CallEnded

TO_DRIVER: msgspec.msgpack.Decoder[ToDriver] = msgspec.msgpack.Decoder(ToDriver)
FROM_DRIVER: msgspec.msgpack.Decoder[FromDriver] = msgspec.msgpack.Decoder(FromDriver)
FROM_TASK: msgspec.msgpack.Decoder[FromTask] = msgspec.msgpack.Decoder(FromTask)
