"""The JSON of signals and of the records of durable functions."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field

from horai.wire.fields import Id, Json, Model
from horai.wire.instances import StateName


class SignalIn(Model):
    """`POST …/signals/{name}`."""

    payload: Any = None


class SignalAnswer(Model):
    """A stored signal."""

    id: Id
    instance_id: Id
    name: str
    woken: bool
    """The instance waited for the signal, and is due now."""


class StepOut(Model):
    """A record of a durable function: a step, a sleep, a wait, the call of a job, or a compensation.

    `name` and `n` tell its records of one kind apart. `REWIND` marks an instance whose compensations run, `VERSION` (in `n`) the version of its code.
    """

    kind: Literal["STEP", "SLEEP", "WAIT", "CALL", "COMPENSATION", "REWIND", "VERSION"]
    name: str
    n: int
    state: Literal["OPEN", "FINISHED", "FAILED"]
    tries: int
    started_at: datetime
    finished_at: datetime | None
    until: Annotated[
        datetime | None,
        Field(description="The end of a sleep, the deadline of a wait, or the next try of an open step."),
    ]
    error_type: str | None
    error_msg: str | None
    result: Json
    """Null if it is larger than 4,096 bytes."""
    result_size: int | None
    """Bytes of the result; null if there is none."""
    child_id: Annotated[Id | None, Field(description="The instance that a call has created.")]
    child_job: str | None
    child_state: StateName | None


class WaitingSignalOut(Model):
    """A signal that no wait has taken."""

    id: Id
    name: str
    sent_at: datetime


class StepList(Model):
    """A page of the records of an instance, in the order of their beginnings, and the signals that wait."""

    items: list[StepOut]
    signals: list[WaitingSignalOut]
    waits: Annotated[
        list[str], Field(description="The signals that the instance waits for, by name. Empty when it has ended.")
    ]
    open_compensations: Annotated[
        int,
        Field(description="The number of steps that a cancel with `compensate` undoes. 0 when the instance has ended."),
    ]
    next_cursor: str | None
