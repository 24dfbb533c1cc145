"""The retry budget of a host: retries may be at most a share of the first tries of the last minute.

A target that fails gets more calls than one that works, because each failure adds a retry. The budget bounds this: with a
share of 0.2, a failing target gets at most 1.2 times its usual calls. While fewer than `free` tries were made in the last
minute, every retry is admitted, so that a quiet target is retried as its job says.

Pure: `now` is a monotonic time in seconds.
"""

from collections import deque
from dataclasses import dataclass

SPAN = 60
"""Seconds that the budget looks back, in buckets of one second."""


@dataclass(slots=True)
class _Second:
    at: int
    firsts: int = 0
    retries: int = 0


class RetryBudget:
    """First tries and retries of the last minute, and whether they leave room for another retry."""

    def __init__(self, share: float, free: int) -> None:
        self._share = share
        self._free = free
        self._seconds: deque[_Second] = deque()
        self.firsts = 0
        self.retries = 0

    def permits(self, now: float) -> bool:
        """Return whether a retry may begin: it is one of the `free` tries, or within the share."""
        self._slide(now)
        return self.firsts + self.retries < self._free or self.retries + 1 <= self._share * self.firsts

    def count(self, now: float, *, is_retry: bool, calls: int = 1) -> None:
        """Count tries that begin."""
        second = int(now)
        if not self._seconds or self._seconds[-1].at < second:
            self._slide(now)
            self._seconds.append(_Second(second))
        if is_retry:
            self._seconds[-1].retries += calls
            self.retries += calls
        else:
            self._seconds[-1].firsts += calls
            self.firsts += calls

    def withdraw(self, *, is_retry: bool) -> None:
        """Take back the latest try of its kind: it was not sent."""
        for second in reversed(self._seconds):
            if is_retry and second.retries:
                second.retries -= 1
                self.retries -= 1
                return
            if not is_retry and second.firsts:
                second.firsts -= 1
                self.firsts -= 1
                return

    def pace(self, now: float) -> float:
        """Return the tries per second since the oldest that is counted."""
        self._slide(now)
        if not self._seconds:
            return 0.0
        return (self.firsts + self.retries) / max(now - self._seconds[0].at, 1.0)

    def retry_pace(self) -> float:
        """Return the retries per second that the budget allows if first tries continue at their pace."""
        return max(self._share * self.firsts, self._free) / SPAN

    def is_idle(self, now: float) -> bool:
        """Return whether no try was made in the last minute."""
        self._slide(now)
        return not self._seconds

    def _slide(self, now: float) -> None:
        while self._seconds and self._seconds[0].at < now - SPAN - 1:
            gone = self._seconds.popleft()
            self.firsts -= gone.firsts
            self.retries -= gone.retries
