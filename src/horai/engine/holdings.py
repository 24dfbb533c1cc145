"""What this process has claimed and not yet settled: the bound of its work, and what a sweep must not release."""

import asyncio
import time
from collections.abc import Iterable

from horai.core.pace import Pace
from horai.core.vitals import Vitals
from horai.db.claims import Claimed, Held


class Holdings:
    """Claims in hand. `limit` bounds them; `freed` is set when there is room again.

    Where only `concurrency` calls run at once, no more is held than these and what they will soon have ended.
    """

    def __init__(self, limit: int, vitals: Vitals, concurrency: int | None = None) -> None:
        self._limit = limit
        self._concurrency = concurrency
        self._pace = Pace(time.monotonic())
        self._vitals = vitals
        self._held: dict[tuple[int, int], Held] = {}
        self.freed: asyncio.Event | None = None
        self._is_wanted = False
        self._emptied = asyncio.Event()
        self._emptied.set()

    def __len__(self) -> int:
        return len(self._held)

    @property
    def room(self) -> int:
        """How many more may be claimed. Whoever is told that none may is woken when that changes."""
        limit = self._limit
        if self._concurrency is not None:
            limit = min(limit, self._concurrency + self._pace.ahead)
        room = limit - len(self._held)
        self._is_wanted = self._is_wanted or room <= 0
        return room

    def add(self, claimed: Iterable[Claimed]) -> None:
        """Taken in hand."""
        self._held.update(((row[0].id, row[0].fence), row[0]) for row in claimed)
        self._changed()

    def drop(self, ended: Iterable[Held]) -> None:
        """Settled, or no longer ours."""
        for held in ended:
            self._held.pop((held.id, held.fence), None)
        self._changed()
        self._wake()

    def worked(self, calls: int) -> None:
        """So many calls have ended; what was given back unrun is none of them."""
        self._pace.note(time.monotonic(), calls)
        self._wake()

    def _wake(self) -> None:
        if self._is_wanted and self.room > 0:
            self._is_wanted = False
            if self.freed is not None:
                self.freed.set()

    def _changed(self) -> None:
        self._vitals.in_flight = len(self._held)
        if self._held:
            self._emptied.clear()
        else:
            self._emptied.set()

    def find(self, instance_id: int, fence: int) -> Held | None:
        """The very claim, if it is in hand."""
        return self._held.get((instance_id, fence))

    def known(self) -> frozenset[tuple[int, int]]:
        """What is in hand at this moment, as (instance id, fence): to be compared with a look that begins now."""
        return frozenset(self._held)

    async def emptied(self) -> None:
        """Returns when nothing is in hand."""
        await self._emptied.wait()
