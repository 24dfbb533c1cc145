"""The number of instances that a process with a bounded number of calls may claim ahead.

The process claims what it will finish within `MOMENT`, and not beyond: short calls run by the thousand and need the
next batch ready, and long ones are better left to other processes than queued here. Pure: `now` is a monotonic time in
seconds.
"""

MOMENT = 0.2
"""Seconds of work to hold ready."""
SPAN = 0.02
"""Seconds over which the rate is measured."""


class Prefetch:
    """The rate at which calls end while there are calls to make, smoothed over the last few spans.

    In the first span after a start or a pause, the rate rises with each call that ends. Later it does not: long calls
    that end together are not short calls.
    """

    def __init__(self, now: float = 0.0) -> None:
        self._since = now
        self._ended = 0
        self._rate = 0.0
        self._is_first_span = True

    def resume(self, now: float) -> None:
        """Begin a span: there are calls to make again. The time without calls says nothing about how long they take."""
        self._rate = self._rate_at(now)
        self._since, self._ended, self._is_first_span = now, 0, True

    def note(self, now: float, ended: int) -> None:
        """Record that `ended` more calls have ended."""
        self._ended += ended
        passed = now - self._since
        seen = self._ended / max(passed, SPAN)
        if self._is_first_span:
            self._rate = max(self._rate, seen)
        elif passed >= SPAN:
            self._rate = (self._rate + seen) / 2
        if passed >= SPAN:
            self._since, self._ended, self._is_first_span = now, 0, False

    def ahead(self, now: float) -> int:
        """Return how many instances to hold beyond those that run."""
        return int(self._rate_at(now) * MOMENT)

    def _rate_at(self, now: float) -> float:
        """Return the current rate: it falls as time passes without calls that end."""
        passed = max(now - self._since, SPAN)
        return min(self._rate, (self._ended + self._rate * SPAN + 1) / passed)
