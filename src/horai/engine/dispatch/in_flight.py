"""What this process has claimed and not yet settled: the bound of its work, and what a sweep must not release."""

import asyncio
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence

from horai.core.health import EngineHealth
from horai.core.prefetch import Prefetch
from horai.core.shares import Shares
from horai.db.claims import Claim, ClaimedRow


class InFlight:
    """Claims in hand. `limit` bounds them; `freed` is set when there is room again.

    Without a `crew`, a claim takes a slot of its handler as long as it is in hand. Where a crew runs only so many calls at once,
    the crew counts them: then no more is held than these and what they will soon have ended, handler by handler.
    """

    def __init__(
        self, limit: int, vitals: EngineHealth, crew: Shares | None = None, handlers: Iterable[str] = frozenset()
    ) -> None:
        self._limit = limit
        self._is_crewed = crew is not None
        self._shares = crew or Shares(limit, handlers)
        self._paces: defaultdict[str, Prefetch] = defaultdict(lambda: Prefetch(time.monotonic()))
        self._vitals = vitals
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
        """How many more may be claimed, of any handler. A caller that is told 0 is woken when that changes."""
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
        """The room of the handler that has most: one that runs nothing is not held up by what waits for others."""
        return max((self._room_of(handler) for handler in self._shares.handlers), default=0)

    def room_of(self, handler: str) -> int:
        """How many more of one handler may be claimed. A caller that is told 0 is woken when that changes."""
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
        """Taken in hand. `handler_of` tells the handler of a lane."""
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
        """The calls of these claims have ended, and wait to be settled."""
        if self._is_crewed:
            now = time.monotonic()
            calls = Counter([known[1] for held in ended if (known := self._held.get((held[0], held[3]))) is not None])
            for handler, count in calls.items():
                self._paces[handler].note(now, count)
            self.wake()

    def drop(self, ended: Iterable[Claim]) -> None:
        """Settled, or no longer ours."""
        known = [known for held in ended if (known := self._held.pop((held[0], held[3]), None)) is not None]
        for handler, calls in Counter([handler for _, handler in known]).items():
            self._counts[handler] -= calls
            if not self._is_crewed:
                self._shares.end(handler, calls)
        self._changed()
        self.wake()

    def wake(self) -> None:
        """Wake the caller that was told that there is no room, if there is some now."""
        if self._wanted and any(self._room_of(handler) > 0 for handler in self._wanted):
            self._wanted.clear()
            if self.freed is not None:
                self.freed.set()

    def _changed(self) -> None:
        self._vitals.in_flight = len(self._held)
        if self._held:
            self._emptied.clear()
        else:
            self._emptied.set()

    def find(self, instance_id: int, fence: int) -> Claim | None:
        """The very claim, if it is in hand."""
        known = self._held.get((instance_id, fence))
        return None if known is None else known[0]

    def known(self) -> frozenset[tuple[int, int]]:
        """What is in hand at this moment, as (instance id, fence): to be compared with a look that begins now."""
        return frozenset(self._held)

    async def emptied(self) -> None:
        """Returns when nothing is in hand."""
        await self._emptied.wait()
