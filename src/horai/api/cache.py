"""A short-lived response cache; concurrent requests share one computation."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass

from horai.db.replicas import ReplicaReader


@dataclass(frozen=True, slots=True)
class CachedAnswer:
    """The JSON of a response, and its time on the monotonic clock."""

    body: bytes
    made: float
    lag: float | None = None
    """The lag in seconds of the standby that was read; None for the primary."""


class AnswerCache:
    """The responses of the last `seconds`. Requests for the same response share one task; one task runs at a time."""

    def __init__(self, seconds: float, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self.monotonic = monotonic
        self._kept: dict[Hashable, CachedAnswer] = {}
        self._making: dict[Hashable, asyncio.Task[CachedAnswer]] = {}
        self._turn = asyncio.Lock()

    async def get(
        self, about: Hashable, make: Callable[[], Awaitable[bytes]], reader: ReplicaReader | None = None
    ) -> CachedAnswer:
        """Return the cached response, or the result of `make`. A cancelled caller does not cancel it for others.

        Requests that read a standby share responses with each other only.
        """
        about = (about, reader is None)
        kept = self._kept.get(about)
        if kept is not None and self.monotonic() - kept.made < self._seconds:
            return kept
        making = self._making.get(about)
        if making is None:
            making = self._making[about] = asyncio.create_task(self._make(make, reader))
            making.add_done_callback(lambda done: self._made(about, done))
        return await asyncio.shield(making)

    async def _make(self, make: Callable[[], Awaitable[bytes]], reader: ReplicaReader | None) -> CachedAnswer:
        async with self._turn:
            body = await make()
            return CachedAnswer(body, self.monotonic(), None if reader is None else reader.lag)

    def _made(self, about: Hashable, done: "asyncio.Task[CachedAnswer]") -> None:
        """Cache the result and drop expired responses. Errors go to the waiting callers and are never cached."""
        del self._making[about]
        if done.cancelled() or done.exception() is not None:
            return
        now = self.monotonic()
        self._kept = {known: answer for known, answer in self._kept.items() if now - answer.made < self._seconds}
        self._kept[about] = done.result()
