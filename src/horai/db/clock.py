"""The database's clock, as seen from here.

Whether something is due is decided by PostgreSQL alone. A node only needs to know how long to wait: it keeps the
difference between the database's time and its own monotonic clock, and refreshes it with every answer that carries one.
A node's wall clock is never read.
"""

import time
from collections.abc import Callable
from datetime import UTC, datetime


class DatabaseClock:
    """Tells the database's time without asking it. Tests pass a monotonic clock that they move by hand."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._offset: float | None = None

    def observe(self, now: datetime) -> None:
        """Takes note of the database's time in an answer just received."""
        self._offset = now.timestamp() - self._monotonic()

    def now(self) -> datetime:
        """The database's time, as far as we know it."""
        if self._offset is None:
            raise RuntimeError("the database has not told its time yet")
        return datetime.fromtimestamp(self._monotonic() + self._offset, UTC)
