"""Failed attempts to authenticate, by address: ten in a minute, then further ones have to wait."""

import math
from collections import OrderedDict, deque

MOST = 10
WINDOW = 60.0
MOST_ADDRESSES = 10_000
"""Addresses to remember. An attacker with more of them pushes out the oldest ones."""


class FailedAttempts:
    """The times of the last failures of each address."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._failures: OrderedDict[str, deque[float]] = OrderedDict()

    def note(self, address: str, now: float) -> None:
        """Count a failure."""
        failures = self._failures.setdefault(address, deque(maxlen=self._most))
        failures.append(now)
        self._failures.move_to_end(address)
        if len(self._failures) > MOST_ADDRESSES:
            self._failures.popitem(last=False)

    def wait(self, address: str, now: float) -> int | None:
        """Return the seconds that the address has to wait, or None if it may try."""
        failures = self._failures.get(address)
        if failures is None or len(failures) < self._most or now - failures[0] >= WINDOW:
            return None
        return math.ceil(failures[0] + WINDOW - now)
