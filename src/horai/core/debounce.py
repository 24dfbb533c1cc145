"""The rate of notifications to other processes: many wakes, few notifications.

A notifying commit holds a lock that the whole PostgreSQL server shares, so the rate of notifications is bounded. The
first wake after a quiet period leaves at once; the wakes that follow wait for the end of an interval and leave
together. While wakes are few, the interval is short, and so is the wait. The interval grows when more wakes arrive in a
short one than a payload can name.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from horai.core.wakes import ENTRIES

QUICK = timedelta(milliseconds=2)
SLOW = timedelta(milliseconds=50)
BUSY = timedelta(milliseconds=5)
"""The load is high if more wakes than a payload can name arrive in this time."""


@dataclass(frozen=True, slots=True)
class Debounce:
    """The time at which the next notification may leave."""

    sent_at: datetime | None = None
    interval: timedelta = QUICK

    def ready_at(self, now: datetime) -> datetime:
        """Return now, or the end of the current interval. A clock that was set back does not lengthen it."""
        return now if self.sent_at is None else max(now, min(self.sent_at, now) + self.interval)

    def after(self, now: datetime, wakes: int) -> "Debounce":
        """Return the state after a notification for `wakes` wakes has left now.

        The interval follows the rate of wakes: it changes only above `ENTRIES` and at or below half of `ENTRIES` per
        `BUSY`.
        """
        since = BUSY if self.sent_at is None else max(now - self.sent_at, QUICK)
        pace = wakes * (BUSY / since)
        if pace > ENTRIES:
            return Debounce(now, SLOW)
        if pace <= ENTRIES / 2:
            return Debounce(now, QUICK)
        return replace(self, sent_at=now)
