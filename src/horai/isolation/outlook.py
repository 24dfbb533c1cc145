"""The delay after which a call that finds no room tries again: the estimated time until the calls before it are done.

If all calls got the same delay, the processes would be idle until then, and full again a moment later. Pure: `now` is a
monotonic time in seconds.
"""

from datetime import timedelta

FIRST_GUESS = 0.01
"""Seconds that a call is assumed to last before any has ended. Calls that end, or run longer, soon correct it."""
WEIGHT = 0.1
"""The weight of the last call in the average duration."""
SHORTEST = 0.02
DOUBLINGS = 6
LONGEST = 60.0


class RoomOutlook:
    """The calls of one handler, of which `places` run at once."""

    def __init__(self, places: int) -> None:
        self._places = places
        self._lasting = FIRST_GUESS
        self._ended = 0
        self._begun_at = 0.0
        self._away = 0
        self.present = 0
        """Calls that run or wait in line."""

    def arrived(self) -> None:
        """Count a call that arrives. If it is alone, others have taken the calls that were sent away: forget them."""
        self._away = max(self._away - 1, 0) if self.present else 0

    def begun(self, now: float) -> None:
        """Record that a function has begun."""
        self._begun_at = now

    def ended(self, now: float, begun_at: float) -> None:
        """Record that a function has ended, and update the average duration."""
        self._ended += 1
        self._lasting += max(WEIGHT, 1 / self._ended) * (now - begun_at - self._lasting)

    def turn(self, now: float, ahead: int, attempt: int = 1, *, is_delayed: bool = False) -> timedelta:
        """Return the delay of a call that has just arrived, behind `ahead` in line and all calls that were sent away.

        If the call that began last already runs longer than the average, its running time is used instead, unless
        `is_delayed` says that calls are delayed for a known reason. The shortest delay doubles with each `attempt`, so
        that a call that arrives often is not sent away for a moment only.
        """
        lasting = self._lasting if is_delayed else max(self._lasting, now - self._begun_at)
        seconds = (ahead + self._away + 1) * lasting / self._places
        self._away += 1
        shortest = SHORTEST * 2 ** min(attempt - 1, DOUBLINGS)
        return timedelta(seconds=min(max(seconds, shortest), LONGEST))
