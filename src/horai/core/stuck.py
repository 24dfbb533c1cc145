"""Rules of stuck runs and clogged queues.

A run is stuck when it has taken longer than `FACTOR` times the p95 of its own job, and longer than `LEAST`. The p95 is that of
the successes among the last `LAST_RUNS` ended runs of the job, of today and the `DAYS` days before. Fewer than `SAMPLES` such
successes give no p95: a run is then stuck after `FACTOR` times the longest of them, and `LEAST_OF_FEW`. Without a success no usual
duration is known, and a run is stuck after `UNKNOWN`: a job that has hung from its first run on holds its slots, too.
Progress that a run reports does not count: a run that is three times slower than usual needs a look even if it moves.

A queue is clogged when stuck runs hold all of its slots.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

FACTOR = 3
LEAST = timedelta(seconds=60)
LEAST_OF_FEW = timedelta(minutes=10)
UNKNOWN = timedelta(minutes=30)
SAMPLES = 20
LAST_RUNS = 200
DAYS = 7


@dataclass(frozen=True, slots=True)
class UsualRun:
    """The usual duration of a job's runs: the number of successes that were read, their p95, and the longest of them."""

    samples: int
    p95: timedelta
    longest: timedelta


@dataclass(frozen=True, slots=True)
class LongRun:
    """A RUNNING instance. `node` is None for an instance that waits for the end of its workflow run."""

    id: int
    job_id: int
    job: str
    queue: str
    key: str | None
    attempt: int
    node: str | None
    claimed_at: datetime


@dataclass(frozen=True, slots=True)
class StuckRun:
    """A run that takes too long, the usual duration of its job if a success is known, and the time since when it is stuck."""

    run: LongRun
    usual: UsualRun | None
    stuck_at: datetime

    @property
    def p95(self) -> timedelta | None:
        """Return the p95 of the job; None if there are fewer than `SAMPLES` successes."""
        return None if self.usual is None or self.usual.samples < SAMPLES else self.usual.p95

    @property
    def longest(self) -> timedelta | None:
        """Return the longest success of a job with fewer than `SAMPLES` of them; None if there are more, or none."""
        return None if self.usual is None or self.usual.samples >= SAMPLES else self.usual.longest

    @property
    def p95_ms(self) -> int | None:
        """Return the p95 in milliseconds."""
        return _milliseconds(self.p95)

    @property
    def longest_ms(self) -> int | None:
        """Return the longest of few successes in milliseconds."""
        return _milliseconds(self.longest)


def _milliseconds(duration: timedelta | None) -> int | None:
    return None if duration is None else duration // timedelta(milliseconds=1)


def samples_from(now: datetime) -> datetime:
    """Return the time after which the runs ended that say how long a job takes: the begin of a day in UTC.

    The history has a partition for each day, so that the whole of a partition counts or none of it is read.
    """
    return now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=DAYS)


def longest_allowed(usual: UsualRun | None) -> timedelta:
    """Return how long a run may take before it is stuck; `usual` is None if no success of its job is known."""
    if usual is None:
        return UNKNOWN
    if usual.samples < SAMPLES:
        return max(FACTOR * usual.longest, LEAST_OF_FEW)
    return max(FACTOR * usual.p95, LEAST)


def judged(run: LongRun, usual: UsualRun | None, now: datetime) -> StuckRun | None:
    """Return the run if it is stuck at `now`; None if it is not."""
    stuck_at = run.claimed_at + longest_allowed(usual)
    return StuckRun(run, usual, stuck_at) if now > stuck_at else None


def clogged_at(slots: int, holders: Iterable[StuckRun]) -> datetime | None:
    """Return since when stuck runs hold all slots of a queue; None if they do not.

    A queue whose limit was lowered may have more holders than slots. It is clogged once the stuck ones fill its slots: the
    end of the others then makes no room.
    """
    times = sorted(holder.stuck_at for holder in holders)
    return times[slots - 1] if len(times) >= slots else None
