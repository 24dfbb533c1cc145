"""The database clock, estimated by a node.

Only PostgreSQL decides whether a row is due. A node only needs to know how long to wait: it keeps the difference
between the database time and its own monotonic clock, and refreshes it with every answer that contains the database
time. It never reads its own wall clock.
"""

import time
from collections.abc import Callable
from datetime import UTC, datetime


class DatabaseClock:
    """An estimate of the database time that needs no query. Tests pass a monotonic clock that they control."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._offset: float | None = None

    def observe(self, now: datetime) -> None:
        """Record the database time of an answer that has just arrived."""
        self._offset = now.timestamp() - self._monotonic()

    def now(self) -> datetime:
        """Return the estimated database time. Raises `RuntimeError` before the first `observe`."""
        if self._offset is None:
            raise RuntimeError("the database time is not known yet")
        return datetime.fromtimestamp(self._monotonic() + self._offset, UTC)
