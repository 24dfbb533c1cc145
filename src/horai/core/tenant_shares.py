"""Shares of a process's work for its tenants, so that no tenant makes another one wait.

`TenantSlots` bounds the claims that a tenant holds, and `TenantLines` the order in which claimed rows begin. Pure: the caller
reports what begins and what ends.
"""

from collections import Counter, deque
from collections.abc import Sequence
from typing import Generic, TypeVar

T = TypeVar("T")

TIMES_THE_FREE = 3
"""A tenant holds at most this many times the slots that are free: of 4,000 slots one busy tenant holds 3,000, each of two
1,714, and each of three 1,200. A tenant that holds nothing finds free slots, beside any number of busy tenants."""


class TenantSlots:
    """The slots that each tenant holds, of `slots` in all. A process with one tenant gives it every slot."""

    def __init__(self, slots: int) -> None:
        self._held: Counter[int] = Counter()
        self._free = slots
        self.is_shared = False
        """True if the process serves more than one tenant."""

    def room(self, tenant: int) -> int:
        """Return how many more slots a tenant may take."""
        if not self.is_shared:
            return self._free
        held = self._held[tenant]
        room = (TIMES_THE_FREE * self._free - held) // (TIMES_THE_FREE + 1)
        return max(room, 0 if held else min(self._free, 1))

    def begin(self, tenant: int, calls: int) -> None:
        """Take slots. The caller has checked the room."""
        self._held[tenant] += calls
        self._free -= calls

    def end(self, tenant: int, calls: int) -> None:
        """Give slots back."""
        self._held[tenant] -= calls
        self._free += calls


class TenantLines(Generic[T]):
    """Items in line. Tenants take turns, and the items of one tenant keep their order."""

    def __init__(self) -> None:
        self._lines: dict[int, deque[T]] = {}
        self._turns: deque[int] = deque()

    def __bool__(self) -> bool:
        return bool(self._turns)

    def length(self, tenant: int) -> int:
        """Return how many items of a tenant are in line."""
        line = self._lines.get(tenant)
        return 0 if line is None else len(line)

    def add(self, tenant: int, items: Sequence[T]) -> None:
        """Add items of a tenant at the end of its line."""
        if not items:
            return
        line = self._lines.get(tenant)
        if line is None:
            line = self._lines[tenant] = deque()
            self._turns.append(tenant)
        line.extend(items)

    def take(self) -> T:
        """Remove and return the next item."""
        tenant = self._turns[0]
        line = self._lines[tenant]
        item = line.popleft()
        if not line:
            del self._lines[tenant]
            self._turns.popleft()
        elif len(self._turns) > 1:
            self._turns.rotate(-1)
        return item
