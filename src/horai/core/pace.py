"""How far ahead a process that runs a bounded number of calls may claim.

What it will have ended within a moment, and no more: short calls come by the thousand and need the next batch at hand,
long ones are better left to others than held here in line. Pure: `now` is a monotonic time in seconds.
"""

MOMENT = 0.2
"""Seconds of work to have at hand."""
SPAN = 0.02
"""Seconds over which the rate is taken."""


class Pace:
    """The rate at which calls end, smoothed over the last few spans."""

    def __init__(self, now: float = 0.0) -> None:
        self._since = now
        self._ended = 0
        self._rate = 0.0

    def note(self, now: float, ended: int) -> None:
        """So many more calls have ended."""
        self._ended += ended
        if (passed := now - self._since) >= SPAN:
            self._rate = (self._rate + self._ended / passed) / 2
            self._since, self._ended = now, 0

    def ahead(self, now: float) -> int:
        """How many to hold beyond those that run. Calls that have stopped ending lower the rate as time passes."""
        passed = max(now - self._since, SPAN)
        return int(min(self._rate, (self._ended + self._rate * SPAN + 1) / passed) * MOMENT)
