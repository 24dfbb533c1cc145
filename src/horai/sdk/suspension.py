"""The ways in which a durable function ends early, and the attempt that its steps belong to.

`SuspendedRun` and `ClaimLost` derive from BaseException: `except Exception` around a step does not catch them.
"""

from contextvars import ContextVar
from datetime import datetime, timedelta
from typing import Any, NamedTuple, Protocol

from horai.core.calls import Call
from horai.sdk.deferred import runtime


class SuspendedRun(BaseException):
    """The attempt ends here; the function starts again at `until` (None: with a signal) and skips finished steps."""

    def __init__(self, until: datetime | None) -> None:
        super().__init__("the function is suspended")
        self.until = until


class ClaimLost(BaseException):
    """The instance no longer belongs to this worker: it was cancelled, replaced, or given to another worker.

    Nothing that the function does from here on counts.
    """


class RewindAsked(BaseException):
    """The instance was cancelled with compensation: its next claim runs the compensations. Raised by a recorder."""


class Rewound(BaseException):
    """The function has come to the end of its finished steps, and its compensations run next."""


class StepFailed(Exception):
    """A step has failed, and its retries are used up. `error_type` and `message` are those of its last error."""

    def __init__(self, step: str, error_type: str, message: str) -> None:
        super().__init__(f"{step}: {error_type}: {message}")
        self.step = step
        self.error_type = error_type
        self.message = message


class CallFailed(StepFailed):
    """A called instance is dead, was cancelled or was skipped. `instance` is its id; see `StepFailed` for the others."""

    def __init__(self, step: str, instance: str, error_type: str, message: str) -> None:
        super().__init__(f"{step}, instance {instance}", error_type, message)
        self.step = step
        self.instance = instance


class StepRecorder(Protocol):
    """Loads and writes the records of durable functions. Writes raise `ClaimLost` if the claim is over.

    `record` raises `RewindAsked`, with the records written, if the instance was cancelled with compensation.
    """

    async def load(self, call: Call) -> "dict[runtime.StepId, runtime.StepRecord]":
        """Return the records of an instance."""
        ...

    async def record(self, call: Call, *reports: "runtime.StepReport") -> datetime | None:
        """Write records; return the time `until` of the last."""
        ...

    async def wait(self, call: Call, id_: "runtime.StepId", timeout: timedelta | None) -> "runtime.StepRecord":
        """Record a wait, and give it the first signal that was sent."""
        ...

    async def call(self, call: Call, id_: "runtime.StepId", job: str, payload: str | None) -> "runtime.StepRecord":
        """Create an instance of a job, once, and record it; return the call with its result or its error.

        Raises `NotFound` if there is no such job, and `RewindAsked`, without a new instance, after a cancel with compensation.
        """
        ...

    async def start_over(self, call: Call, payload: str | None) -> datetime:
        """Give the instance another payload and forget its records; return the time of the change."""
        ...


class Watched(Protocol):
    """The attempt of a function: whether it still counts."""

    @property
    def is_cancelled(self) -> bool:
        """Return whether the claim is over."""
        ...

    def log(self, message: str, level: str | int = ...) -> None:
        """Add a log line of the attempt."""
        ...


class SuspensionMark:
    """Remembers that an attempt was suspended, or is there to run the compensations of an instance."""

    __slots__ = ("is_rewinding", "is_suspended")

    def __init__(self) -> None:
        self.is_suspended = False
        self.is_rewinding = False

    def restarted(self, code: Any) -> "SuspensionMark":
        """Return a run from the top with the same records, in another version of the function."""
        raise NotImplementedError

    def warn_of_unreached(self) -> None:
        """Warn of finished records that the function did not come past, after it has returned."""
        raise NotImplementedError

    async def rewind(self) -> "runtime.Outcome":
        """Run the compensations, after the function has ended. Return the outcome of the attempt."""
        raise NotImplementedError


class UnderWay(NamedTuple):
    """The attempt whose function runs in this context. `runs` holds its durable run once it has used a step."""

    recorder: StepRecorder | None
    call: Call
    instance: Watched
    runs: list[SuspensionMark]
    code: Any = None
    """The version of the function; None if it declares none."""


under_way: ContextVar[UnderWay | None] = ContextVar("under_way", default=None)
"""Set when a function waits for the first time: one that never waits pays nothing."""
