"""The number of late slots that a lane is given at a time.

A lane is given as many as it works off in a moment, so that fresh work beside them waits no longer than that. The
portion doubles whenever all of the last one is gone at the next check, and is halved for each second in which it is
not.
"""

from dataclasses import dataclass

FIRST, LEAST, MOST = 50, 5, 1_000
PATIENCE = 1.0
"""Seconds that a portion may wait before the next one is halved."""


@dataclass(slots=True)
class CatchUpPace:
    """The pace of one lane. Times are monotonic, in seconds."""

    size: int = FIRST
    given_at: float | None = None

    def next(self, waiting: int, now: float) -> int:
        """Return how many more slots the lane may have, with `waiting` of the earlier ones not begun."""
        if self.given_at is None:
            return self.size
        if waiting == 0:
            self.size = min(2 * self.size, MOST)
            self.given_at = None
            return self.size
        if now - self.given_at >= PATIENCE:
            self.size = max(self.size // 2, LEAST)
            self.given_at = now
        return 0

    def given(self, now: float) -> None:
        """Record that slots were created for the lane."""
        self.given_at = now
