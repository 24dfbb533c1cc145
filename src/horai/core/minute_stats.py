"""Counts per minute: those of one process, and the series of all processes together."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from horai.core.health import EngineHealth, Reading

MINUTE = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class MinuteCounts:
    """Attempts that began, and outcomes of attempts; `failed` includes the dead ones. `delays` as in `Reading`."""

    started: int = 0
    succeeded: int = 0
    failed: int = 0
    dead: int = 0
    delays: tuple[tuple[int, int], ...] = ()

    def since(self, before: "MinuteCounts") -> "MinuteCounts":
        """Return the difference from an earlier count."""
        known = dict(before.delays)
        return MinuteCounts(
            self.started - before.started,
            self.succeeded - before.succeeded,
            self.failed - before.failed,
            self.dead - before.dead,
            tuple((which, more) for which, count in self.delays if (more := count - known.get(which, 0))),
        )

    def and_(self, other: "MinuteCounts") -> "MinuteCounts":
        """Return the sum of both."""
        total = dict(self.delays)
        for which, count in other.delays:
            total[which] = total.get(which, 0) + count
        return MinuteCounts(
            self.started + other.started,
            self.succeeded + other.succeeded,
            self.failed + other.failed,
            self.dead + other.dead,
            tuple(sorted(total.items())),
        )

    def delay_quantile(self, share: float) -> float:
        """Return the delay in seconds that `share` of the started attempts did not exceed; 0 without attempts."""
        return Reading(self.delays).delay_quantile(share)


NOTHING = MinuteCounts()


@dataclass(frozen=True, slots=True)
class Gauges:
    """The backlog of all processes together at one moment.

    It consists of instances that wait for a retry, dead letters that wait for an operator, and parked events.
    """

    retrying: int
    dead_letters: int
    parked_events: int


def totals_of(health: EngineHealth) -> MinuteCounts:
    """Return the counts of a process since its start."""
    delays = tuple((which, count) for which, count in enumerate(health.delays_ever) if count)
    return MinuteCounts(health.started, health.succeeded, health.failed, health.dead, delays)


def minute_of(instant: datetime) -> datetime:
    """Return the start of the minute that contains `instant`."""
    return instant.replace(second=0, microsecond=0)


def series(found: Sequence[tuple[datetime, MinuteCounts]], first: datetime, count: int) -> list[MinuteCounts]:
    """Return one count for each minute from `first` on, summed over the processes."""
    minutes = [NOTHING] * count
    for at, tally in found:
        place = (at - first) // MINUTE
        if 0 <= place < count:
            minutes[place] = minutes[place].and_(tally)
    return minutes
