"""The database clock, estimated by a node.

Only PostgreSQL decides whether a row is due. A node only needs to know how long to wait: it keeps the difference
between the database time and its own monotonic clock. It never reads its own wall clock.

An answer tells the difference to within the time that it took: the database read its clock between the question and the
answer. The node keeps the range in which all answers agree, and uses its lower end: a timer goes off late by the width
of the range at most, and never early. An answer that waited for a commit or for a busy event loop changes nothing.
"""

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import NamedTuple

from horai.db import nodes
from horai.db.pool import AnyRead

DRIFT = 20e-6
"""Seconds by which the two clocks may part in a second. A clock that was set contradicts the range and replaces it."""


class _Range(NamedTuple):
    """The range of the difference, and the monotonic time of its last answer."""

    least: float
    most: float
    at: float


class DatabaseClock:
    """An estimate of the database time that needs no query. Tests pass a monotonic clock that they control."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._range: _Range | None = None  # one object: the thread of the lease writes it

    def observe(self, now: datetime, asked_at: float) -> None:
        """Record the database time of an answer that has just arrived to the question sent at the monotonic time `asked_at`."""
        told, at = now.timestamp(), self._monotonic()
        found = _Range(told - at, told - asked_at, at)
        if (known := self._range) is not None:
            drift = DRIFT * (at - known.at)
            agreed = _Range(max(found.least, known.least - drift), min(found.most, known.most + drift), at)
            found = agreed if agreed.least <= agreed.most else found
        self._range = found

    async def ask(self, connection: AnyRead) -> None:
        """Ask the database for its time."""
        asked_at = self._monotonic()
        self.observe(await nodes.database_time(connection), asked_at)

    @property
    def width(self) -> float:
        """Return the seconds by which the estimate may be behind. Raises `RuntimeError` before the first answer."""
        known = self._known()
        return known.most - known.least

    def now(self) -> datetime:
        """Return the estimated database time. Raises `RuntimeError` before the first answer."""
        return datetime.fromtimestamp(self._monotonic() + self._known().least, UTC)

    def _known(self) -> _Range:
        if self._range is None:
            raise RuntimeError("the database time is not known yet")
        return self._range
