"""How the engine is doing: delays, outcomes and the age of each loop's last success, over sliding windows.

Pure accumulators: `now` is a monotonic time in seconds, given by the caller.
"""

import math
from bisect import bisect_right
from collections import deque
from dataclasses import dataclass, field

BUCKET_SECONDS = 10.0
BOUNDS = tuple(0.0005 * 1.25**step for step in range(70))
"""Upper bounds of the delay classes in seconds: half a millisecond to 40 minutes, each a quarter above the last."""


class Window:
    """Counts per class over the last `span` seconds."""

    def __init__(self, span: float, classes: int) -> None:
        self._span = span
        self._classes = classes
        self._buckets: deque[tuple[float, list[int]]] = deque()

    def count(self, now: float, which: int) -> None:
        """One more in class `which`."""
        if not self._buckets or now - self._buckets[-1][0] >= BUCKET_SECONDS:
            self._buckets.append((now, [0] * self._classes))
        self._buckets[-1][1][which] += 1

    def totals(self, now: float) -> list[int]:
        """The counts of what lies inside the span."""
        while self._buckets and self._buckets[0][0] < now - self._span:
            self._buckets.popleft()
        totals = [0] * self._classes
        for _, counts in self._buckets:
            for which, count in enumerate(counts):
                totals[which] += count
        return totals


@dataclass(slots=True)
class Vitals:
    """What health is told from. One per process."""

    delays: Window = field(default_factory=lambda: Window(300.0, len(BOUNDS) + 1))
    outcomes: Window = field(default_factory=lambda: Window(600.0, 2))
    beats: dict[str, float] = field(default_factory=dict[str, float])
    patience: dict[str, float] = field(default_factory=dict[str, float])
    started: int = 0
    settled: int = 0
    late_results: int = 0
    released_claims: int = 0
    retry_backlog: int = 0
    in_flight: int = 0
    unsettled: int = 0
    trusted_until: float = 0.0
    """Until when this node trusts its lease; past it, it claims nothing."""

    def holds_lease(self, now: float) -> bool:
        """Whether this node may claim."""
        return now < self.trusted_until

    def observe_delay(self, now: float, seconds: float) -> None:
        """An attempt began `seconds` after its execute time."""
        self.started += 1
        self.delays.count(now, bisect_right(BOUNDS, max(seconds, 0.0)))

    def observe_outcome(self, now: float, *, is_success: bool) -> None:
        """An attempt was settled."""
        self.settled += 1
        self.outcomes.count(now, 1 if is_success else 0)

    def delay_quantile(self, now: float, share: float) -> float:
        """The delay in seconds that `share` of the recent attempts did not exceed; 0 without any."""
        totals = self.delays.totals(now)
        wanted = math.ceil(sum(totals) * share)
        seen = 0
        for which, count in enumerate(totals):
            seen += count
            if wanted and seen >= wanted:
                return BOUNDS[min(which, len(BOUNDS) - 1)]
        return 0.0

    def success_rate(self, now: float) -> float:
        """The share of recent attempts that succeeded; 1 without any."""
        failed, succeeded = self.outcomes.totals(now)
        return succeeded / (failed + succeeded) if failed + succeeded else 1.0

    def beat(self, loop: str, now: float, patience: float) -> None:
        """A loop has just succeeded, and should again within `patience` seconds."""
        self.beats[loop] = now
        self.patience[loop] = patience

    def overdue(self, now: float) -> list[str]:
        """Loops whose last success is older than they promised: stuck, or failing."""
        return [loop for loop, at in self.beats.items() if now - at > self.patience[loop]]

    def is_well(self, now: float) -> bool:
        """Whether it may claim and no loop is stuck."""
        return self.holds_lease(now) and not self.overdue(now)
