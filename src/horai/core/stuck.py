"""Rules of stuck runs and clogged queues.

A run is stuck when it has taken longer than `FACTOR` times the p95 of its own job, and longer than `LEAST`. The p95 is that of
the successes among the last `LAST_RUNS` ended runs of the job, of today and the `DAYS` days before. A job with fewer than
`SAMPLES` such successes has no stuck runs: nothing says how long it usually takes, and its timeout ends a call that hangs.
Progress that a run reports does not count: a run that is three times slower than usual needs a look even if it moves.

A queue is clogged when stuck runs hold all of its slots.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

FACTOR = 3
LEAST = timedelta(seconds=60)
SAMPLES = 20
LAST_RUNS = 200
DAYS = 7


@dataclass(frozen=True, slots=True)
class UsualRun:
    """The usual duration of a job's runs: the p95 of the successes that were read, and their number."""

    samples: int
    p95: timedelta


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
    """A run that takes too long, the p95 of its job, and the time since when it is stuck."""

    run: LongRun
    p95: timedelta
    stuck_at: datetime

    @property
    def p95_ms(self) -> int:
        """Return the p95 in milliseconds."""
        return self.p95 // timedelta(milliseconds=1)


def samples_from(now: datetime) -> datetime:
    """Return the time after which the runs ended that say how long a job takes: the begin of a day in UTC.

    The history has a partition for each day, so that the whole of a partition counts or none of it is read.
    """
    return now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=DAYS)


def judged(run: LongRun, usual: UsualRun | None, now: datetime) -> StuckRun | None:
    """Return the run if it is stuck at `now`; None if it is not, or if too few successes tell how long it may take."""
    if usual is None or usual.samples < SAMPLES:
        return None
    stuck_at = run.claimed_at + max(FACTOR * usual.p95, LEAST)
    return StuckRun(run, usual.p95, stuck_at) if now > stuck_at else None


def clogged_at(slots: int, holders: Iterable[StuckRun]) -> datetime | None:
    """Return since when stuck runs hold all slots of a queue; None if they do not.

    A queue whose limit was lowered may have more holders than slots. It is clogged once the stuck ones fill its slots: the
    end of the others then makes no room.
    """
    times = sorted(holder.stuck_at for holder in holders)
    return times[slots - 1] if len(times) >= slots else None
