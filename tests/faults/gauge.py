"""A target that measures how many calls are with it at every instant, and judges that by the limits in force."""

import asyncio
import random
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime

from aiohttp import web

SHORTEST, LONGEST = 0.02, 0.08
"""Seconds that a call takes."""

ClaimSeen = tuple[str, int]
"""Idempotency-Key and fence."""


@dataclass(frozen=True)
class Entry:
    """A call came in: of which claim, when by the wall clock, and how many were in then, itself among them."""

    claim: ClaimSeen
    at: datetime
    inside: int


@dataclass
class Gauge:
    """A call is in from when it was read until its answer is about to leave, or its client is gone."""

    dice: random.Random
    port: int = 0
    inside: int = 0
    entries: list[Entry] = field(default_factory=list[Entry])
    left: list[float] = field(default_factory=list[float])
    """When calls ended, by the monotonic clock."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/gauge"

    async def _handle(self, request: web.Request) -> web.Response:
        claim = (request.headers["Idempotency-Key"], int(request.headers["Horai-Fence"]))
        await request.read()
        self.inside += 1
        self.entries.append(Entry(claim, datetime.now(UTC), self.inside))
        try:
            await asyncio.sleep(self.dice.uniform(SHORTEST, LONGEST))
        finally:
            self.inside -= 1
            self.left.append(time.monotonic())
        return web.Response()

    @asynccontextmanager
    async def listening(self) -> AsyncGenerator["Gauge"]:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._handle)
        runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=1.0)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        self.port = runner.addresses[0][1]
        try:
            yield self
        finally:
            await runner.cleanup()

    def peak_since(self, entry: int) -> int:
        """The most that were in at once from this entry on."""
        return max((each.inside for each in self.entries[entry:]), default=0)

    def longest_pause(self) -> float:
        """Seconds between two ends of calls, at most."""
        return max((later - earlier for earlier, later in zip(self.left, self.left[1:], strict=False)), default=0.0)


@dataclass
class Limits:
    """The limits of a queue one after the other, each from when the database says it was set."""

    changes: list[tuple[datetime, int]] = field(default_factory=list[tuple[datetime, int]])

    def over(self, first: datetime, last: datetime) -> int:
        """The highest limit that was in force at any time between the two."""
        before = [limit for at, limit in self.changes if at <= first][-1:]
        return max(before + [limit for at, limit in self.changes if first < at <= last])

    def exceeded(self, entries: list[Entry], claimed_at: Mapping[ClaimSeen, datetime]) -> list[str]:
        """Calls that made too many: judged by the limits between their claim and their coming in.

        A claim that was made before the limit was lowered is in order, and so is one that comes in beside those that a
        raised limit has let in.
        """
        return [
            f"{entry.claim} was number {entry.inside} at {entry.at}, limit {limit}"
            for entry in entries
            if entry.inside > (limit := self.over(claimed_at[entry.claim], entry.at))
        ]
