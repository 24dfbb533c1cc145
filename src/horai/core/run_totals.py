"""Totals of a process since its start: what monitoring systems read and add up over all processes.

Histograms have the same classes in every process, so their sums are histograms as well. Pure accumulators.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3600.0)
"""Upper bounds of the classes of a histogram in seconds; a last class has no bound."""
MOST_JOBS = 10_000
"""The number of jobs whose usual duration is remembered."""
NEWEST_SHARE = 0.2
"""The weight of the newest runs in the usual duration of a job."""


@dataclass(slots=True)
class Histogram:
    """Counts of durations by class, and the sum of the durations in seconds."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(SECONDS) + 1))
    total: float = 0.0

    def add(self, seconds: float, count: int = 1) -> None:
        """Count a duration `count` times."""
        self.counts[bisect_left(SECONDS, seconds)] += count
        self.total += seconds * count

    def add_all(self, durations: Iterable[float]) -> None:
        """Count each of these durations once."""
        for seconds in durations:
            self.add(seconds)


@dataclass(slots=True)
class RunTotals:
    """Totals of attempts. `outcomes` are by name: SUCCESS, FAIL, DEAD, LOST and RELEASED."""

    delays: Histogram = field(default_factory=Histogram)
    limit_waits: Histogram = field(default_factory=Histogram)
    """The time for which limits, pauses and controls kept due instances from starting."""
    durations: Histogram = field(default_factory=Histogram)
    """The time from a claim to the outcome of its attempt."""
    outcomes: Counter[str] = field(default_factory=Counter[str])
    _usual: dict[int, float] = field(default_factory=dict[int, float])

    def observe_durations(self, now: datetime, job_ids: Iterable[int], claimed: Sequence[datetime | None]) -> None:
        """Record attempts that have ended: the job of each, and the time of its claim, which the rows of a claim share.

        This is hot code. The last attempt of each job stands for all of the batch in the usual duration of the job.
        """
        for claimed_at, count in Counter(claimed).items():
            if claimed_at is not None:
                self.durations.add(_seconds_between(claimed_at, now), count)
        for job_id, claimed_at in dict(zip(job_ids, claimed, strict=True)).items():
            if claimed_at is not None:
                self._note_usual(job_id, _seconds_between(claimed_at, now))

    def _note_usual(self, job_id: int, seconds: float) -> None:
        known = self._usual.get(job_id)
        if known is None and len(self._usual) >= MOST_JOBS:
            self._usual.clear()
        self._usual[job_id] = seconds if known is None else known + NEWEST_SHARE * (seconds - known)

    def usual_seconds(self, job_id: int) -> float | None:
        """Return how long a run of this job takes here, as a moving average; None if none has ended here."""
        return self._usual.get(job_id)


def _seconds_between(begin: datetime, end: datetime) -> float:
    return max((end - begin).total_seconds(), 0.0)
