"""Starts of a bulk request that are spread by a rate.

A request stops after a bounded time. Its answer has the time of the next start, from which the next request continues, so that
several requests together keep the rate.
"""

from dataclasses import dataclass
from datetime import datetime

from horai.core.queue import Rate


@dataclass(frozen=True, slots=True)
class Spread:
    """A rate, and the time of its first start; None means now. A time in the past means now, too."""

    rate: Rate
    first_at: datetime | None = None


@dataclass(slots=True)
class Starts:
    """The starts of one request: `now` by the clock of the database, and how many it has made."""

    now: datetime
    spread: Spread | None
    made: int = 0

    @property
    def next_at(self) -> datetime | None:
        """Return the time of the next start; None without a rate: it starts at once."""
        if self.spread is None:
            return None
        first = self.now if self.spread.first_at is None else max(self.now, self.spread.first_at)
        return first + self.spread.rate.offset(self.made)
