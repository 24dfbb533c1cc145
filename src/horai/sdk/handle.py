"""The handle of an added instance: its id, and later its result."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Generic, Protocol, TypeVar, overload

from horai.core.errors import HoraiError
from horai.core.put import PutDecision
from horai.core.states import State
from horai.db.instance_queries import EndedInstance
from horai.sdk.outcomes import seconds_of
from horai.sdk.payloads import Shape

R = TypeVar("R")

STATE_WITHIN = 1.0
"""Seconds that the message of a timeout may wait for the state of the instance."""


class InstanceFailed(HoraiError):
    """The instance is DEAD: unrecoverable, or its retries are used up. `error_code` is that of the last attempt."""

    code = "SCH_424_INSTANCE_FAILED"
    status = 424
    title = "Instance failed"

    def __init__(self, job: str, ended: EndedInstance) -> None:
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

    def __init__(self, job: str, ended: EndedInstance) -> None:
        self.reason = ended.reason.name if ended.reason else "USER"
        super().__init__(f"The instance {ended.id} of {job!r} was cancelled ({self.reason}).")


class Awaiting(Protocol):
    """Waits for the end of instances."""

    async def ended(self, instance_id: int) -> EndedInstance:
        """Wait until the instance is final and return it."""
        ...

    async def standing(self, instance_id: int) -> str:
        """Describe the state of the instance now, for a message."""
        ...


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
    """One instance, as the caller that added it sees it.

    `decision` is the result of a put. `duplicate` is True if nothing was added: the instance existed before, by its
    idempotency key or because its key has already succeeded.
    """

    __slots__ = ("_awaiting", "_shape", "decision", "duplicate", "id", "job")

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

    def __repr__(self) -> str:
        return f"<Handle {self.id} of {self.job!r} {self.decision}>"

    async def result(self, timeout: float | str | timedelta | None = None) -> R:
        """Wait for the function and return its result.

        Raises InstanceFailed if the instance is dead, InstanceCancelled if it was cancelled, and TimeoutError with its
        state after `timeout`. An instance that was added in a transaction runs only after the commit: commit first.
        """
        patience = None if timeout is None else seconds_of(timeout)
        deadline = asyncio.timeout(None if patience is None else patience.total_seconds())
        try:
            async with deadline:
                ended = await self._awaiting.ended(int(self.id))
        except TimeoutError:
            if patience is None or not deadline.expired():
                raise
            raise TimeoutError(await self._unfinished(patience)) from None
        match ended.state:
            case State.SUCCESS:
                return self._shape.decode(ended.result)
            case State.CANCELLED:
                raise InstanceCancelled(self.job, ended)
            case _:
                raise InstanceFailed(self.job, ended)

    async def _unfinished(self, patience: timedelta) -> str:
        standing = "its state could not be read"
        with suppress(Exception):
            async with asyncio.timeout(STATE_WITHIN):
                standing = await self._awaiting.standing(int(self.id))
        return f"The instance {self.id} of {self.job!r} did not end within {patience.total_seconds():g} s: {standing}."
