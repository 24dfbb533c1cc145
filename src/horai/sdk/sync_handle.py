"""The handle of an added instance without `await`."""

from datetime import timedelta
from typing import Generic, TypeVar

from horai.core.put import PutDecision
from horai.sdk.handle import Handle, LogEntry, StateName
from horai.sdk.portal import PORTAL

R = TypeVar("R")


class SyncHandle(Generic[R]):
    """A handle that waits for its result without `await`."""

    __slots__ = ("_handle",)

    def __init__(self, handle: Handle[R]) -> None:
        self._handle = handle

    def __repr__(self) -> str:
        return repr(self._handle)

    @property
    def id(self) -> str:
        """The id of the instance."""
        return self._handle.id

    @property
    def decision(self) -> PutDecision:
        """The result of a put."""
        return self._handle.decision

    @property
    def duplicate(self) -> bool:
        """Return whether the instance existed before, and nothing was added."""
        return self._handle.duplicate

    def result(self, timeout: float | str | timedelta | None = None) -> R:
        """Wait for the function and return its result."""
        return PORTAL.run(self._handle.result(timeout))

    def state(self) -> StateName:
        """Return the state of the instance now. Raises `NotFound`."""
        return PORTAL.run(self._handle.state())

    def progress(self) -> float | None:
        """Return the last progress of the latest attempt, from 0 to 1; None if it has reported none."""
        return PORTAL.run(self._handle.progress())

    def logs(self) -> list[LogEntry]:
        """Return the last 3,000 notes of the attempts that have a message, in order."""
        return PORTAL.run(self._handle.logs())

    def cancel(self, *, compensate: bool = False) -> bool:
        """Cancel the instance. Return False if it has already ended. Work already done is not undone.

        With `compensate`, the compensations of its finished steps run first; it ends when they have run.
        """
        return PORTAL.run(self._handle.cancel(compensate=compensate))

    def signal(self, name: str, payload: object = None, *, idempotency_key: str | None = None) -> bool:
        """Send a signal, which `wait_for(name)` receives. Return False if the idempotency key was used before."""
        return PORTAL.run(self._handle.signal(name, payload, idempotency_key=idempotency_key))
