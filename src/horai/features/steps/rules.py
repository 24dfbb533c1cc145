"""The records of durable steps: their identity, kinds and limits."""

import re
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import IntEnum
from typing import NamedTuple

from horai.core.errors import Invalid
from horai.core.limits import KEY_LIMIT
from horai.core.node_results import ChosenNodes, SkippedNode, direction_in
from horai.core.states import CancelReason, State
from horai.core.stored_text import TRUNCATED
from horai.text import Hint, Wrong

RESULT_MOST = 1024 * 1024
"""Bytes of the result of one step."""
RECORDS_MOST = 10_000
"""Records of one instance."""
_NAME = re.compile(r"[^#\x00-\x1f\x7f-\x9f]{1,128}")


class Kind(IntEnum):
    """The kinds of records."""

    STEP = 1
    SLEEP = 2
    WAIT = 3
    COMPENSATION = 4
    """The compensation of the step with this name and occurrence: open from before the step runs until it has run."""
    REWIND = 5
    """The mark of an instance whose compensations run."""
    CALL = 6
    """The call of another job: open until the function has its result, or has caught its failure."""
    VERSION = 7
    """The version of the code, in `n`: `version` marks to which one the instance belongs, `offer` that it waits for a worker of it."""


class StepState(IntEnum):
    """The states of a record. Only an open one may change."""

    OPEN = 0
    FINISHED = 1
    FAILED = 2


class StepId(NamedTuple):
    """The identity of a record within its instance."""

    kind: Kind
    name: str
    n: int


REWIND = StepId(Kind.REWIND, "rewind", 1)
"""The mark of an instance. Its error is that of the death, None for a cancel; its result has the tags of the death."""


@dataclass(frozen=True, slots=True)
class StepRecord:
    """A record as it is stored. `result` is JSON text. `is_over`: the time `until` has come."""

    id: StepId
    state: StepState
    tries: int = 0
    result: str | None = None
    error_type: str | None = None
    error_msg: str | None = None
    until: datetime | None = None
    is_over: bool = False
    child: int | None = None
    """The instance that a call has created."""


@dataclass(frozen=True, slots=True)
class StepReport:
    """A record to write. `delay`: from now until an open step is tried again, or a sleep is over."""

    id: StepId
    state: StepState
    tries: int = 0
    delay: timedelta | None = None
    result: str | None = None
    error_type: str | None = None
    error_msg: str | None = None
    took: timedelta = timedelta(0)


class ChildEnd(NamedTuple):
    """The end of the child of a call. Without a state it has left the history. `replay`: its latest replay, if it is DEAD."""

    state: State | None
    reason: CancelReason | None = None
    output: str | None = None
    error_code: str | None = None
    error_msg: str | None = None
    replay: int | None = None


def outcome_of_child(call: StepRecord, end: ChildEnd) -> StepRecord:
    """Return an open call with the result or the error of its child. It stays open if a replay stands for the child."""
    if end.replay is not None:
        return call
    match end.state:
        case State.SUCCESS if end.output == TRUNCATED:
            return _failed(call, "RESULT_TRUNCATED", "it has succeeded, and its result was not kept")
        case State.SUCCESS:
            match direction_in(end.output):
                case SkippedNode(reason):
                    return _failed(call, CancelReason.SKIPPED.name, reason or "its function has skipped it")
                case ChosenNodes(result=result):
                    return replace(call, state=StepState.FINISHED, result=result)
                case None:
                    return replace(call, state=StepState.FINISHED, result=end.output)
        case State.CANCELLED:
            return _failed(call, State.CANCELLED.name, f"it was cancelled ({(end.reason or CancelReason.USER).name})")
        case None:
            return _failed(call, "INSTANCE_GONE", "it has left the history, and its result is not known")
        case _:
            return _failed(call, end.error_code or State.DEAD.name, end.error_msg or "")


def _failed(call: StepRecord, code: str, message: str) -> StepRecord:
    return replace(call, state=StepState.FAILED, error_type=code, error_msg=message)


@dataclass(frozen=True, slots=True)
class Signal:
    """A signal to send. `payload` is JSON text. A second signal with the same `request_key` is not stored."""

    name: str
    payload: str | None = None
    request_key: str | None = None

    def __post_init__(self) -> None:
        check_name(self.name)
        if self.request_key is not None and not 1 <= len(self.request_key) <= KEY_LIMIT:
            raise Invalid.field("idempotency_key", Wrong.PRINTABLE(most=KEY_LIMIT))


def check_name(name: object, field: str = "name") -> str:
    """Return the name of a step or a signal. Raises `Invalid` if it is not one."""
    if not isinstance(name, str) or _NAME.fullmatch(name) is None:
        raise Invalid.field(field, Wrong.NOT_A_STEP_NAME(name=str(name)[:200]), Hint.STEP_NAME())
    return name
