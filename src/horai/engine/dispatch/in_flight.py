"""The claims of this process that are not yet settled: they bound its work, and a sweep must not release them."""

import asyncio
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence

from horai.core.health import EngineHealth
from horai.core.prefetch import Prefetch
from horai.core.shares import Shares
from horai.db.claims import Claim, ClaimedRow


class InFlight:
    """The claims in flight. `limit` bounds them; `freed` is set when there is room again.

    Without a `crew`, a claim counts towards the share of its handler while it is in flight. A crew runs a limited
    number of calls at once and counts them itself: the process then holds, per handler, at most the running calls plus
    as many as they will soon have made room for.
    """

    def __init__(
        self, limit: int, health: EngineHealth, crew: Shares | None = None, handlers: Iterable[str] = frozenset()
    ) -> None:
        self._limit = limit
        self._is_crewed = crew is not None
        self._shares = crew or Shares(limit, handlers)
        self._paces: defaultdict[str, Prefetch] = defaultdict(lambda: Prefetch(time.monotonic()))
        self._health = health
        self._held: dict[tuple[int, int], tuple[Claim, str]] = {}
        self._counts: Counter[str] = Counter()
        self.freed: asyncio.Event | None = None
        self._wanted: set[str] = set()
        self._emptied = asyncio.Event()
        self._emptied.set()

    def __len__(self) -> int:
        return len(self._held)

    @property
    def room(self) -> int:
        """Return how many more rows may be claimed, of any handler. A caller that gets 0 is woken when that changes."""
        room = self._limit - len(self._held)
        if self._is_crewed:
            waiting = len(self._held) - sum(self._shares.running(handler) for handler in self._counts)
            now = time.monotonic()
            soon = sum(pace.ahead(now) for pace in self._paces.values())
            room = min(room, self._shares.free + soon - waiting)
            if room <= 0:
                room = self._widest()
        if room <= 0:
            self._wanted.update(self._shares.handlers, self._counts)
        return room

    def _widest(self) -> int:
        """Return the largest room of a handler: an idle handler does not wait for rows of other handlers."""
        return max((self._room_of(handler) for handler in self._shares.handlers), default=0)

    def room_of(self, handler: str) -> int:
        """Return how many more rows of one handler may be claimed. A caller that gets 0 is woken when that changes."""
        room = self._room_of(handler)
        if room <= 0:
            self._wanted.add(handler)
        return room

    def _room_of(self, handler: str) -> int:
        room = self._shares.room(handler)
        if self._is_crewed:
            waiting = max(self._counts[handler] - self._shares.running(handler), 0)  # a thread may outlast its claim
            room += self._paces[handler].ahead(time.monotonic()) - waiting
        return min(room, self._limit - len(self._held))

    def add(self, claimed: Sequence[ClaimedRow], handler_of: Callable[[int], str] = lambda _: "") -> None:
        """Add claimed rows. `handler_of` returns the handler of a lane."""
        by_lane = Counter([row[1] for row in claimed])
        handlers = {lane: handler_of(lane) for lane in by_lane}
        self._held |= {(row[0][0], row[0][3]): (row[0], handlers[row[1]]) for row in claimed}
        for lane, calls in by_lane.items():
            handler = handlers[lane]
            if not self._is_crewed:
                self._shares.begin(handler, calls)
            elif not self._counts[handler]:
                self._paces[handler].resume(time.monotonic())
            self._counts[handler] += calls
        self._changed()

    def worked(self, ended: Iterable[Claim]) -> None:
        """Record that the calls of these claims have ended and wait to be settled."""
        if self._is_crewed:
            now = time.monotonic()
            calls = Counter([known[1] for held in ended if (known := self._held.get((held[0], held[3]))) is not None])
            for handler, count in calls.items():
                self._paces[handler].note(now, count)
            self.wake()

    def drop(self, ended: Iterable[Claim]) -> None:
        """Remove claims that are settled or no longer belong to this node."""
        known = [known for held in ended if (known := self._held.pop((held[0], held[3]), None)) is not None]
        for handler, calls in Counter([handler for _, handler in known]).items():
            self._counts[handler] -= calls
            if not self._is_crewed:
                self._shares.end(handler, calls)
        self._changed()
        self.wake()

    def wake(self) -> None:
        """Wake the caller that was told that there is no room, if there is room now."""
        if self._wanted and any(self._room_of(handler) > 0 for handler in self._wanted):
            self._wanted.clear()
            if self.freed is not None:
                self.freed.set()

    def _changed(self) -> None:
        self._health.in_flight = len(self._held)
        if self._held:
            self._emptied.clear()
        else:
            self._emptied.set()

    def find(self, instance_id: int, fence: int) -> Claim | None:
        """Return the claim with this fence if it is in flight."""
        known = self._held.get((instance_id, fence))
        return None if known is None else known[0]

    def known(self) -> frozenset[tuple[int, int]]:
        """Return the claims in flight now, as (instance id, fence), to compare with a read that begins now."""
        return frozenset(self._held)

    async def emptied(self) -> None:
        """Wait until no claim is in flight."""
        await self._emptied.wait()
