"""The handle of an added instance: its id, and later its result."""

import asyncio
from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any, Generic, Literal, NamedTuple, Protocol, TypeAlias, TypeVar, overload

from horai.api.instance_id import instance_id_of
from horai.core.errors import HoraiError, NotFound
from horai.core.log_levels import line_of
from horai.core.put import PutDecision
from horai.core.states import CancelReason, State
from horai.sdk.deferred import runtime
from horai.sdk.outcomes import seconds_of
from horai.sdk.payloads import Shape

R = TypeVar("R")
StateName: TypeAlias = Literal["INIT", "BLOCKED", "RUNNING", "FAIL", "SUCCESS", "DEAD", "CANCELLED"]

STATE_WITHIN = 1.0
"""Seconds that the message of a timeout may wait for the state of the instance."""


class InstanceFailed(HoraiError):
    """The instance is DEAD: unrecoverable, or its retries are used up. `error_code` is that of the last attempt."""

    code = "SCH_424_INSTANCE_FAILED"
    status = 424
    title = "Instance failed"

    def __init__(self, job: str, ended: "runtime.EndedInstance") -> None:
        super().__init__(
            f"The instance {ended.id} of {job!r} is dead: {ended.error_code}: {ended.error_msg}",
            f"horai instances show {ended.id} shows every attempt.",
        )
        self.error_code = ended.error_code


class InstanceCancelled(HoraiError):
    """The instance was cancelled before it ended; `reason` says why."""

    code = "SCH_424_INSTANCE_CANCELLED"
    status = 424
    title = "Instance cancelled"

    def __init__(self, job: str, ended: "runtime.EndedInstance") -> None:
        self.reason = ended.reason.name if ended.reason else "USER"
        super().__init__(f"The instance {ended.id} of {job!r} was cancelled ({self.reason}).")


class InstanceSkipped(InstanceCancelled):
    """The function raised `Skip`, or its workflow run skipped the node: there is no result. `reason` is SKIPPED."""

    code = "SCH_424_INSTANCE_SKIPPED"
    title = "Instance skipped"

    def __init__(self, job: str, ended: "runtime.EndedInstance", reason: str = "") -> None:
        super().__init__(job, ended)
        self.reason = "SKIPPED"
        self.detail = f"The instance {ended.id} of {job!r} was skipped{f': {reason}' if reason else ''}."
        self.args = (self.detail,)


class Awaiting(Protocol):
    """Waits for the end of instances, and reads them."""

    async def client(self) -> "runtime.Client":
        """Return the client of this event loop."""
        ...

    async def ended(self, instance_id: int) -> "runtime.EndedInstance":
        """Wait until the instance is final and return it."""
        ...

    async def standing(self, instance_id: int) -> str:
        """Describe the state of the instance now, for a message."""
        ...

    async def signal(
        self, instance: str, name: str, payload: object = None, *, idempotency_key: str | None = None
    ) -> bool:
        """Send a signal to a live instance."""
        ...


class LogEntry(NamedTuple):
    """A line that a function wrote with `instance.log`, or a message of `instance.progress`."""

    at: datetime
    attempt: int
    message: str
    level: str = "INFO"


class Handles(Sequence["Handle[R]"]):
    """The handles of many instances, each created on access."""

    __slots__ = ("_handle", "_ids")

    def __init__(self, ids: Sequence[int], handle: Callable[[int], "Handle[R]"]) -> None:
        self._ids = ids
        self._handle = handle

    def __len__(self) -> int:
        return len(self._ids)

    def __repr__(self) -> str:
        return f"<Handles of {len(self)} instances>"

    @overload
    def __getitem__(self, index: int) -> "Handle[R]": ...
    @overload
    def __getitem__(self, index: slice) -> "Handles[R]": ...
    def __getitem__(self, index: int | slice) -> "Handle[R] | Handles[R]":
        if isinstance(index, slice):
            return Handles(self._ids[index], self._handle)
        return self._handle(self._ids[index])


class Handle(Generic[R]):
    """One instance, as the caller that added it sees it. `await handle` waits for its result.

    `decision` is the result of a put. `duplicate` is True if nothing was added: the instance existed before, by its
    idempotency key or because its key has already succeeded. `job` is the name of the job; empty for a handle of
    `app.handle` until the instance is read.
    """

    __slots__ = ("_awaiting", "_is_known", "_shape", "decision", "duplicate", "id", "job")

    def __init__(
        self,
        job: str,
        instance_id: int,
        awaiting: Awaiting,
        shape: Shape[R],
        decision: PutDecision = PutDecision.INSERTED,
    ) -> None:
        self.id = str(instance_id)
        self.job = job
        self.decision = decision
        self.duplicate = decision is PutDecision.IGNORED
        self._awaiting = awaiting
        self._shape = shape
        self._is_known = True

    def __repr__(self) -> str:
        return f"<Handle {self.id} of {self.job!r} {self.decision}>"

    def __await__(self) -> Generator[Any, None, R]:
        return self.result().__await__()

    async def state(self) -> StateName:
        """Return the state of the instance now. Raises `NotFound`."""
        return (await self._row()).state.name

    async def progress(self) -> float | None:
        """Return the last progress of the latest attempt, from 0 to 1; None if it has reported none."""
        row = await self._row()
        notes = await (await self._awaiting.client()).notes(row)
        own = [note.progress for note in notes if note.fence == row.fence and note.progress is not None]
        return own[-1] if own else None

    async def logs(self) -> list[LogEntry]:
        """Return the last 3,000 notes of the attempts that have a message, in order."""
        notes = await (await self._awaiting.client()).notes(await self._row())
        lines = ((note, line_of(note.message)) for note in notes if note.message is not None)
        return [LogEntry(note.at, note.attempt, line.message, line.level) for note, line in lines]

    async def cancel(self, *, compensate: bool = False) -> bool:
        """Cancel the instance. Return False if it has already ended. Work already done is not undone.

        With `compensate`, the compensations of its finished steps run first; it ends when they have run.
        """
        row = await self._row()
        return await (await self._awaiting.client()).cancel_instance(row.id, compensate=compensate)

    async def _row(self) -> "runtime.InstanceRow":
        """Read the instance. Raises `NotFound` if it does not exist, or is an instance of another job."""
        row = await (await self._awaiting.client()).instance(int(self.id))
        if self.job and row.job != self.job:
            raise NotFound(
                f"The instance {self.id} belongs to the job {row.job!r}, not to {self.job!r}.",
                "Use app.handle(id), or the handle method of that job.",
            )
        self.job, self._is_known = row.job, True
        return row

    async def result(self, timeout: float | str | timedelta | None = None) -> R:
        """Wait for the function and return its result.

        Raises InstanceFailed if the instance is dead, InstanceCancelled if it was cancelled, InstanceSkipped if it was
        skipped, and TimeoutError with its state after `timeout`. An instance that was added in a transaction runs only after the commit: commit first.
        A handle made of an id raises `NotFound` if there is no such instance.
        """
        patience = None if timeout is None else seconds_of(timeout)
        deadline = asyncio.timeout(None if patience is None else patience.total_seconds())
        try:
            async with deadline:
                if not self._is_known:
                    await self._row()
                ended = await self._awaiting.ended(int(self.id))
        except TimeoutError:
            if patience is None or not deadline.expired():
                raise
            raise TimeoutError(await self._unfinished(patience)) from None
        match ended.state:
            case State.SUCCESS:
                return self._shape.decode(_result_of(self.job, ended))
            case State.CANCELLED if ended.reason is CancelReason.SKIPPED:
                raise InstanceSkipped(self.job, ended)
            case State.CANCELLED:
                raise InstanceCancelled(self.job, ended)
            case _:
                raise InstanceFailed(self.job, ended)

    async def signal(self, name: str, payload: object = None, *, idempotency_key: str | None = None) -> bool:
        """Send a signal, which `wait_for(name)` receives. Return False if the idempotency key was used before."""
        return await self._awaiting.signal(self.id, name, payload, idempotency_key=idempotency_key)

    async def _unfinished(self, patience: timedelta) -> str:
        standing = "its state could not be read"
        with suppress(Exception):
            async with asyncio.timeout(STATE_WITHIN):
                standing = await self._awaiting.standing(int(self.id))
        return f"The instance {self.id} of {self.job!r} did not end within {patience.total_seconds():g} s: {standing}."


def _result_of(job: str, ended: "runtime.EndedInstance") -> str | None:
    """Return the result of a function as JSON text. Raises `InstanceSkipped` if the function raised `Skip`."""
    match runtime.direction_in(ended.result):
        case runtime.SkippedNode(reason):
            raise InstanceSkipped(job, ended, reason)
        case runtime.ChosenNodes(result=result):
            return result
        case None:
            return ended.result


def handle_of(instance_id: str | int, awaiting: Awaiting, shape: Shape[R], job: str = "") -> Handle[R]:
    """Return a handle of an instance that exists, or may exist. Raises `NotFound` if it is not an id."""
    handle = Handle(job, instance_id_of(str(instance_id)), awaiting, shape)
    handle._is_known = False  # pyright: ignore[reportPrivateUsage] — the same module
    return handle
