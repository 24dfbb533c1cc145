"""Shares of a process's slots for its handlers, so that no handler delays another one.

A handler that runs nothing may take any free slot. A handler that runs something leaves a slot for each handler that
runs nothing, up to a quarter of all slots: calls that hang fill only the rest. With a single handler, or a single slot,
nothing is kept free. Pure: the caller reports what begins and what ends.
"""

from collections.abc import Iterable, Mapping
from typing import Protocol

KEPT_SHARE = 4
"""At most one slot in this many, and at least one, is kept free for handlers that run nothing."""
SUSPENDED = -1_000_000
"""The room of a suspended handler: so low that calls which will soon end make no room either."""


class SlotCounts(Protocol):
    """The slots of a process that runs a limited number of calls at once, by handler."""

    @property
    def handlers(self) -> Iterable[str]:
        """Return the known handlers."""
        ...

    @property
    def free(self) -> int:
        """Return how many slots are free, of any handler."""
        ...

    def running(self, handler: str) -> int:
        """Return how many slots a handler holds."""
        ...

    def room(self, handler: str) -> int:
        """Return how many more calls of a handler may begin."""
        ...


class Shares:
    """The calls that each handler runs, with `slots` in all. `caps` limits single handlers further."""

    def __init__(self, slots: int, handlers: Iterable[str] = (), caps: Mapping[str, int] | None = None) -> None:
        self._kept_at_most = max(slots // KEPT_SHARE, 1) if slots > 1 else 0
        self._caps = dict(caps or {})
        self._suspended: dict[str, int | None] = {}
        """The suspended handlers, with their caps."""
        self._running = dict.fromkeys(handlers, 0)
        self._idle = len(self._running)
        self.free = slots

    @property
    def handlers(self) -> Iterable[str]:
        """Return the known handlers."""
        return self._running.keys()

    def running(self, handler: str) -> int:
        """Return how many slots a handler holds."""
        return self._running.get(handler, 0)

    def suspend(self, handler: str) -> None:
        """Let no call of a handler begin until `resume`. Calls that run keep their slots."""
        if handler not in self._suspended:
            self._suspended[handler] = self._caps.get(handler)
            self._caps[handler] = 0

    def resume(self, handler: str) -> None:
        """Let calls of a suspended handler begin again, within its cap."""
        if handler in self._suspended:
            del self._caps[handler]
            if (cap := self._suspended.pop(handler)) is not None:
                self._caps[handler] = cap

    def room(self, handler: str) -> int:
        """Return how many more calls of a handler may begin; for a suspended one, a number far below zero."""
        if handler in self._suspended:
            return SUSPENDED
        running = self._running.get(handler, 0)
        idle = self._idle - (handler in self._running and not running)
        room = self.free - min(idle, self._kept_at_most)
        if not running:
            room = max(room, min(self.free, 1))
        cap = self._caps.get(handler)
        return max(room if cap is None else min(room, cap - running), 0)

    def may_begin(self, handler: str) -> bool:
        """Return whether one more call of a handler may begin: `room` without arithmetic while slots are plentiful."""
        if self.free > self._kept_at_most and handler not in self._caps:
            return True
        return self.room(handler) > 0

    def begin(self, handler: str, calls: int = 1) -> None:
        """Take slots. The caller has checked the room."""
        running = self._running.get(handler)
        self._idle -= running == 0
        self._running[handler] = (running or 0) + calls
        self.free -= calls

    def end(self, handler: str, calls: int = 1) -> None:
        """Give slots back."""
        self._running[handler] -= calls
        self._idle += not self._running[handler]
        self.free += calls
