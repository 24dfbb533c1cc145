"""Counts of a tenant per minute: those of one process, and the series of all processes together."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from horai.core.health import JobCounts, Reading

MINUTE = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class MinuteCounts:
    """Attempts that began, and outcomes of attempts; `failed` includes the dead ones. `delays` as in `Reading`."""

    started: int = 0
    succeeded: int = 0
    failed: int = 0
    dead: int = 0
    delays: tuple[tuple[int, int], ...] = ()

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
    """The backlog of a tenant at one moment.

    It consists of instances that wait for a retry, dead letters that wait for an operator, and parked events.
    """

    retrying: int
    dead_letters: int
    parked_events: int


def counts_of(job: JobCounts) -> MinuteCounts:
    """Return the counts of a job in the form of a minute's."""
    return MinuteCounts(job.started, job.succeeded, job.failed, job.dead, tuple(sorted(job.delays.items())))


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
