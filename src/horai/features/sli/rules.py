"""The service level and its error budget, of counts per minute."""

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from horai.core.health import BOUNDS
from horai.core.service_level import OBJECTIVE

ON_TIME = timedelta(seconds=60)
LAST_CLASS = bisect_right(BOUNDS, ON_TIME.total_seconds()) - 1
"""The last class of delays whose upper bound is within `ON_TIME`: 54.6 s. A delay above it counts as late."""


@dataclass(frozen=True, slots=True)
class LevelCounts:
    """Starts, and those of them that were on time."""

    started: int = 0
    on_time: int = 0

    def and_(self, other: "LevelCounts") -> "LevelCounts":
        """Return the sum of both."""
        return LevelCounts(self.started + other.started, self.on_time + other.on_time)

    @property
    def share(self) -> float:
        """Return the share of starts that were on time; 1 without starts."""
        return self.on_time / self.started if self.started else 1.0

    @property
    def late(self) -> int:
        """Return the starts that were late."""
        return self.started - self.on_time


@dataclass(frozen=True, slots=True)
class ErrorBudget:
    """The late starts that the objective allows, those that there were, and the share of the budget that is left.

    The share is below 0 if there were more than allowed.
    """

    allowed: float
    spent: int
    left: float


def budget_of(counts: LevelCounts, objective: float = OBJECTIVE) -> ErrorBudget:
    """Return the error budget of a period with these starts."""
    allowed = counts.started * (1 - objective)
    left = 1.0 if not counts.late else (1 - counts.late / allowed)
    return ErrorBudget(round(allowed, 3), counts.late, round(left, 6))


def burn_rate(counts: LevelCounts, objective: float = OBJECTIVE) -> float:
    """Return how many times faster than allowed the budget is spent; 1 spends exactly the budget of the whole period."""
    return round((1 - counts.share) / (1 - objective), 3)


def by_day(minutes: Iterable[tuple[datetime, LevelCounts]]) -> dict[date, LevelCounts]:
    """Return the counts of each day in UTC."""
    days: dict[date, LevelCounts] = {}
    for at, counts in minutes:
        days[at.date()] = days.get(at.date(), LevelCounts()).and_(counts)
    return days
