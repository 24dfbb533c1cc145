"""When a call that finds no room should come again: when those before it are done, as far as that can be foreseen.

To send all away for the same time would leave the processes idle until then, and full again a moment later. Pure: `now`
is a monotonic time in seconds.
"""

from datetime import timedelta

FIRST_GUESS = 0.01
"""Seconds that a call lasts, before any has ended. Soon corrected, by those that end and by those that do not."""
WEIGHT = 0.1
"""Of the last call, in what calls are taken to last."""
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
        """Calls that run or stand in line."""

    def arrived(self) -> None:
        """A call has come. When it is alone, those that were sent away are not: others have taken them."""
        self._away = max(self._away - 1, 0) if self.present else 0

    def begun(self, now: float) -> None:
        """A function has begun."""
        self._begun_at = now

    def ended(self, now: float, begun_at: float) -> None:
        """A function has ended."""
        self._ended += 1
        self._lasting += max(WEIGHT, 1 / self._ended) * (now - begun_at - self._lasting)

    def turn(self, now: float, ahead: int, attempt: int = 1, *, is_delayed: bool = False) -> timedelta:
        """How long the call that has just come is sent away, behind `ahead` in line and all that are away already.

        When even the latest to begin runs for longer than calls do, they take longer than they did; unless it is known
        what delays them for once. One that has come often is not sent away for a moment only, whatever is foreseen.
        """
        lasting = self._lasting if is_delayed else max(self._lasting, now - self._begun_at)
        seconds = (ahead + self._away + 1) * lasting / self._places
        self._away += 1
        shortest = SHORTEST * 2 ** min(attempt - 1, DOUBLINGS)
        return timedelta(seconds=min(max(seconds, shortest), LONGEST))
