"""How many late slots a lane is given at a time: as many as it works off in a moment, so that fresh work beside them waits
no longer than that.

The portion doubles whenever all of the last one is gone at the next look, and is halved while it is not for a second.
"""

from dataclasses import dataclass

FIRST, LEAST, MOST = 50, 5, 1_000
PATIENCE = 1.0
"""Seconds."""


@dataclass(slots=True)
class CatchUpPace:
    """One lane's. Times are of the monotonic clock."""

    size: int = FIRST
    given_at: float | None = None

    def next(self, waiting: int, now: float) -> int:
        """How many more it may have, with `waiting` of the earlier ones not begun."""
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
        """Some were made."""
        self.given_at = now
