"""What this process has claimed and not yet settled: the bound of its work, and what a sweep must not release."""

import asyncio

from horai.core.vitals import Vitals
from horai.db.claims import Held


class Holdings:
    """Claims in hand. `limit` bounds them; `freed` is set when there is room again."""

    def __init__(self, limit: int, vitals: Vitals) -> None:
        self._limit = limit
        self._vitals = vitals
        self._held: dict[tuple[int, int], Held] = {}
        self.freed: asyncio.Event | None = None
        self._emptied = asyncio.Event()
        self._emptied.set()

    def __len__(self) -> int:
        return len(self._held)

    @property
    def room(self) -> int:
        """How many more may be claimed."""
        return self._limit - len(self._held)

    def add(self, held: Held) -> None:
        """Taken in hand."""
        self._held[held.id, held.fence] = held
        self._vitals.in_flight = len(self._held)
        self._emptied.clear()

    def drop(self, held: Held) -> None:
        """Settled, or no longer ours."""
        was_full = self.room <= 0
        self._held.pop((held.id, held.fence), None)
        self._vitals.in_flight = len(self._held)
        if was_full and self.freed is not None:
            self.freed.set()
        if not self._held:
            self._emptied.set()

    def has(self, held: Held) -> bool:
        """Whether this very claim is in hand."""
        return (held.id, held.fence) in self._held

    async def emptied(self) -> None:
        """Returns when nothing is in hand."""
        await self._emptied.wait()
