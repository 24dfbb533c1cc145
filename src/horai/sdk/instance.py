"""The argument of a function: one attempt at one instance."""

import asyncio
from collections.abc import Callable
from datetime import datetime
from math import isfinite
from typing import Generic, Protocol, TypeVar

from horai.core.calls import Call
from horai.core.log_levels import level_named, stored_line
from horai.sdk.asset_updates import AssetUpdate, updates_in
from horai.sdk.intervals import Interval

P = TypeVar("P")


class Notes(Protocol):
    """Takes the progress and the messages of an attempt, from any thread and without blocking."""

    def note(self, call: Call, progress: float | None, message: str | None) -> None:
        """Add a note to the attempt."""
        ...


class Cancelled(Exception):
    """The instance was cancelled, or replaced by another, while its function ran."""


class NoInterval(LookupError):
    """The instance has no data interval: its job has no cron or every, and no run of a scheduled workflow made it."""


class Instance(Generic[P]):
    """One attempt at one instance. `fence` grows with every attempt: pass it on where a stale one must not write."""

    __slots__ = ("_call", "_decode", "_ended", "_is_over", "_notes", "_payload")

    def __init__(self, call: Call, decode: Callable[[str | None], P], notes: Notes | None = None) -> None:
        self._call = call
        self._decode = decode
        self._notes = notes
        self._is_over = False
        self._ended: tuple[asyncio.AbstractEventLoop, asyncio.Event] | None = None

    def __repr__(self) -> str:
        key = f" key={self.key!r}" if self.key is not None else ""
        return f"<Instance {self.id} of {self.job!r}{key} attempt={self.attempt}>"

    @property
    def id(self) -> str:
        """The instance id, as REST shows it."""
        return str(self._call.instance_id)

    @property
    def job(self) -> str:
        """The name of the job."""
        return self._call.job

    @property
    def key(self) -> str | None:
        """The business key of the put; None for an instance without one."""
        return self._call.key

    @property
    def payload(self) -> P:
        """The payload of the instance, or else the job's own; validated as the annotated type."""
        try:
            return self._payload
        except AttributeError:
            self._payload = self._decode(self._call.payload)
            return self._payload

    @property
    def assets(self) -> dict[str, tuple[AssetUpdate, ...]]:
        """The updates that have started the instance, by asset, oldest first; empty if no asset has started it.

        A node of a workflow has those of its run, unless it has a payload of its own.
        """
        return updates_in(self._call.payload)

    @property
    def fire_time(self) -> datetime:
        """The slot of the schedule, or the time that the caller asked for."""
        return self._call.fire_time

    @property
    def interval(self) -> Interval:
        """The data interval `[start, end)`: it ends at the fire time, and starts at the schedule's last fire before that.

        A node of a workflow has the interval of its run. Raises `NoInterval` if neither has a cron or every.
        """
        start = self._call.interval_start
        if start is None:
            raise NoInterval(
                f"The instance {self.id} of {self.job!r} has no data interval: no schedule stands behind it."
            )
        return Interval(start, self._call.fire_time)

    @property
    def execute_time(self) -> datetime:
        """The time at which this attempt was due: for a retry, later than the fire time."""
        return self._call.execute_time

    @property
    def attempt(self) -> int:
        """The number of the attempt; 1 for the first."""
        return self._call.attempt

    @property
    def fence(self) -> int:
        """The fencing token, which grows with every attempt at this instance."""
        return self._call.fence

    @property
    def idempotency_key(self) -> str:
        """A key that is the same for every attempt at this instance."""
        return self._call.idempotency_key

    @property
    def unit(self) -> str:
        """`tenant:job:key`: the same for the business unit across reschedules."""
        return self._call.unit

    @property
    def traceparent(self) -> str | None:
        """The header to send on, so that calls of the function belong to its trace; None if traces are off."""
        return self._call.traceparent

    def progress(self, fraction: float, message: str | None = None) -> None:
        """Report progress from 0 to 1, shown with this attempt. Raises ValueError outside this range."""
        if not isfinite(fraction) or not 0 <= fraction <= 1:
            raise ValueError(f"{fraction!r} is not between 0 and 1")
        if self._notes is not None:
            self._notes.note(self._call, float(fraction), None if message is None else stored_line(message))

    def log(self, message: str, level: str | int = "INFO") -> None:
        """Add a log line, shown with this attempt.

        `level` is DEBUG, INFO, WARNING, ERROR or CRITICAL, in any case, or a number of the module `logging`. Raises ValueError for
        another name.
        """
        line = stored_line(message, level_named(level))
        if self._notes is not None:
            self._notes.note(self._call, None, line)

    @property
    def is_cancelled(self) -> bool:
        """Return whether the instance was cancelled or replaced, or its time is over. Its outcome no longer counts."""
        return self._is_over

    def raise_if_cancelled(self) -> None:
        """Raise `Cancelled` if the instance is cancelled. Call this where the function may stop."""
        if self._is_over:
            raise Cancelled(f"The instance {self.id} of {self.job!r} was cancelled.")

    async def cancelled(self) -> None:
        """Wait until the instance is cancelled."""
        if self._ended is None:
            self._ended = (asyncio.get_running_loop(), asyncio.Event())
        if self._is_over:
            return
        await self._ended[1].wait()

    def end(self) -> None:
        """Tell the function that its outcome no longer counts; from any thread."""
        self._is_over = True
        if self._ended is not None:
            loop, event = self._ended
            loop.call_soon_threadsafe(event.set)
