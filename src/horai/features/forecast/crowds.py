"""Crowds of jobs with the same fires, added up minute by minute.

The sum over a window is one large integer with 64 bits per minute: a schedule's fires, times the number of its jobs,
are added with one multiplication and one addition, and no minute carries into the next.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from heapq import heappush, heappushpop
from itertools import accumulate, pairwise
from struct import unpack

from horai.features.forecast.minutes import ForecastWindow, bounded, fires_per_minute
from horai.time.schedule import Schedule

MOST_SHARES = 2_000
"""The number of crowds, those with the most fires, that are kept individually; the others are only counted."""

_LANE = 8
"""Bytes per minute in a sum."""


@dataclass(frozen=True, slots=True)
class Crowd:
    """A number of jobs of one schedule, spread over `jitter` whole minutes, with the same bounds (both included)."""

    schedule: Schedule
    jobs: int
    jitter: int = 0
    start_at: datetime | None = None
    end_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Share:
    """The share of a crowd: the fires of each of its jobs per minute, including `lead` minutes before the window."""

    crowd: Crowd
    counts: bytes
    lead: int

    def at(self, index: int) -> int:
        """Return how many of its jobs are to run in that minute of the window."""
        width = max(self.crowd.jitter, 1)
        behind = self.lead + index + 1
        return round(sum(self.counts[max(behind - width, 0) : behind]) * self.crowd.jobs / width)


@dataclass(frozen=True, slots=True)
class Forecast:
    """The number of jobs to run in each minute of the window, and their schedules."""

    window: ForecastWindow
    per_minute: Sequence[int]
    jobs: int
    fires: Mapping[Schedule, int]
    """The number of slots of each schedule, over all its jobs."""
    followers: Mapping[Schedule, int]
    """The number of jobs of each schedule."""
    shares: Sequence[Share]
    """The shares of at most `MOST_SHARES` crowds, in no order."""

    @property
    def average(self) -> float:
        """Return the average per minute."""
        return sum(self.per_minute) / len(self.per_minute)


def forecast(crowds: Iterable[Crowd], window: ForecastWindow) -> Forecast:
    """Add up the fires of the crowds in the window.

    With jitter a slot runs up to that long after its time, with the same probability in each minute; so the last slots
    before the window count with their remaining part, as if all these jobs had existed then.
    """
    by_schedule: dict[Schedule, list[Crowd]] = defaultdict(list)
    for crowd in crowds:
        by_schedule[crowd.schedule].append(crowd)
    lead = max((crowd.jitter for some in by_schedule.values() for crowd in some), default=0)
    tally = _Tally(ForecastWindow(window.start - lead, window.end), lead)
    for schedule, some in by_schedule.items():
        tally.add(schedule, some)
    return Forecast(
        window,
        tally.per_minute(),
        sum(tally.followers.values()),
        tally.fires,
        tally.followers,
        [share for _, _, share in tally.largest],
    )


@dataclass(slots=True)
class _Tally:
    """The sums so far, by jitter, over a window that begins `lead` minutes early."""

    window: ForecastWindow
    lead: int
    sums: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    fires: dict[Schedule, int] = field(default_factory=dict)
    followers: dict[Schedule, int] = field(default_factory=dict)
    largest: list[tuple[int, int, Share]] = field(default_factory=list)
    kept: int = 0

    def add(self, schedule: Schedule, crowds: Sequence[Crowd]) -> None:
        """Add all crowds of one schedule."""
        counts = fires_per_minute(schedule, self.window)
        wide, slots = _wide(counts), sum(counts[self.lead :])
        fires = 0
        for crowd in crowds:
            if crowd.start_at is None and crowd.end_at is None:
                self.sums[crowd.jitter] += wide * crowd.jobs
                fires += self._keep(Share(crowd, counts, self.lead), slots)
            else:
                own = bounded(counts, schedule, self.window, (crowd.start_at, crowd.end_at))
                self.sums[crowd.jitter] += _wide(own) * crowd.jobs
                fires += self._keep(Share(crowd, own, self.lead), sum(own[self.lead :]))
        self.fires[schedule] = fires
        self.followers[schedule] = sum(crowd.jobs for crowd in crowds)

    def _keep(self, share: Share, slots: int) -> int:
        """Keep a share if it is one of the largest; return its fires, given its slots in the window."""
        fires = slots * share.crowd.jobs
        put = heappush if len(self.largest) < MOST_SHARES else heappushpop
        put(self.largest, (fires, self.kept, share))
        self.kept += 1
        return fires

    def per_minute(self) -> list[int]:
        minutes = self.window.minutes
        spread = [
            _spread(unpack(f"<{minutes}Q", total.to_bytes(minutes * _LANE, "little")), jitter)
            for jitter, total in self.sums.items()
        ]
        return [sum(column) for column in zip(*spread, strict=True)][self.lead :] or [0] * (minutes - self.lead)


def _wide(counts: bytes) -> int:
    lanes = bytearray(len(counts) * _LANE)
    lanes[::_LANE] = counts
    return int.from_bytes(lanes, "little")


def _spread(fires: Sequence[int], jitter: int) -> Sequence[int]:
    """Spread each minute's fires over `jitter` minutes from it on, in whole numbers without losing a fire."""
    if jitter <= 1:
        return fires
    so_far = [0] * jitter + list(accumulate(accumulate(fires)))
    run = [(later - earlier + jitter // 2) // jitter for earlier, later in zip(so_far, so_far[jitter:], strict=False)]
    return [later - earlier for earlier, later in pairwise([0, *run])]
