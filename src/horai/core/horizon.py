"""The horizon of the outbox: which transactions are final, and how far back in time their rows can be.

The outbox is recorded by transaction: every row of a transaction below the oldest open one is final. Rows are found by
time. A sample is a time at which transactions from `next_id` on were not assigned yet, so their rows are not older than
it, unless the clock was set back since: then a later sample is earlier.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

MOST_SAMPLES: Final = 64
OVERLAP: Final = timedelta(seconds=2)
"""Rows up to this much older than the samples allow are read as well: a row gets its time shortly before its
transaction gets its id."""
LONG_OVERLAP: Final = timedelta(minutes=10)
"""The same for the first recording of a process: the clock may have been set back while no process recorded."""


@dataclass(frozen=True, slots=True)
class HorizonSample:
    """A time at which no transaction from `next_id` on was assigned."""

    at: datetime
    next_id: int


def kept_samples(samples: Sequence[HorizonSample], newest: HorizonSample, horizon: int) -> tuple[HorizonSample, ...]:
    """Return the samples that bound the rows of transactions from `horizon` on.

    An open transaction keeps old samples. Beyond `MOST_SAMPLES`, every second one between the first and the last is
    dropped, which makes no bound later.
    """
    known = (*samples, newest)
    first = max((n for n, sample in enumerate(known) if sample.next_id <= horizon), default=0)
    kept = known[first:]
    if len(kept) <= MOST_SAMPLES:
        return kept
    lowest = min(kept, key=lambda sample: sample.at)
    return tuple(sample for n, sample in enumerate(kept) if n % 2 == 0 or sample is lowest or sample is kept[-1])


def earliest_row(samples: Sequence[HorizonSample], overlap: timedelta) -> datetime | None:
    """Return a time before which no unrecorded row is; None without a sample."""
    return min(sample.at for sample in samples) - overlap if samples else None


def set_back_by(passed: timedelta, on_clock: timedelta) -> timedelta:
    """Return by how much a clock was set back that advanced by `on_clock` while `passed` went by."""
    return max(passed - on_clock, timedelta())


class ClockWatch:
    """A watch that says how much older than the samples rows may be: more at first, and if the clock of the database was set back.

    `monotonic` is a clock of this process, in seconds.
    """

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._last: tuple[float, datetime] | None = None
        """The last look, by the clock of this process and by that of the database."""

    def forget(self) -> None:
        """Begin again: another process may have read meanwhile."""
        self._last = None

    def overlap(self, now: datetime) -> timedelta:
        """Return the overlap of a read at this time of the database."""
        last, self._last = self._last, (self._monotonic(), now)
        if last is None:
            return LONG_OVERLAP
        passed = timedelta(seconds=self._last[0] - last[0])
        return OVERLAP + set_back_by(passed, now - last[1])


def samples_text(samples: Sequence[HorizonSample]) -> str:
    """Return samples as JSON text."""
    return json.dumps([[sample.at.isoformat(), sample.next_id] for sample in samples])


def read_samples(text: str) -> tuple[HorizonSample, ...]:
    """Return the samples of a JSON text."""
    return tuple(HorizonSample(datetime.fromisoformat(at), next_id) for at, next_id in json.loads(text))
