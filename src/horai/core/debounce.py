"""How often other processes are told: many wakes, few notifications.

A notifying commit holds a lock that the whole PostgreSQL shares, so the rate of notifications is bounded: the first wake
after a calm leaves at once, those that follow wait for the end of an interval and leave together. While wakes are few the
interval is short, and nobody waits long. When more come in a short one than a payload can name, it grows.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from horai.core.wakes import ENTRIES

QUICK = timedelta(milliseconds=2)
SLOW = timedelta(milliseconds=50)
BUSY = timedelta(milliseconds=5)
"""When more wakes than a payload can name come in this time, it is busy."""


@dataclass(frozen=True, slots=True)
class Debounce:
    """When the next notification may leave."""

    sent_at: datetime | None = None
    interval: timedelta = QUICK

    def ready_at(self, now: datetime) -> datetime:
        """Now, or the end of the interval that runs; a clock that was set back lengthens none."""
        return now if self.sent_at is None else max(now, min(self.sent_at, now) + self.interval)

    def after(self, now: datetime, wakes: int) -> "Debounce":
        """A notification for so many wakes leaves now; its interval follows their rate, with some slack between the two."""
        since = BUSY if self.sent_at is None else max(now - self.sent_at, QUICK)
        pace = wakes * (BUSY / since)
        if pace > ENTRIES:
            return Debounce(now, SLOW)
        if pace <= ENTRIES / 2:
            return Debounce(now, QUICK)
        return replace(self, sent_at=now)
