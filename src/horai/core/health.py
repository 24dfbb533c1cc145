"""The health of the engine: delays, outcomes and the age of each loop's last success, over sliding windows.

Pure accumulators: `now` is a monotonic time in seconds, passed by the caller. A process reports its health to the
others as a `Reading`; the merged readings of all processes are the health of the cluster.
"""

import json
import math
from bisect import bisect_left, bisect_right
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from enum import IntEnum
from functools import partial
from typing import Any

from horai.core.run_totals import SECONDS, RunTotals
from horai.text import Degraded
from horai.text.phrase import Phrase

BUCKET_SECONDS = 10.0
BOUNDS = tuple(0.0005 * 1.25**step for step in range(70))
"""Upper bounds of the delay classes in seconds: half a millisecond to 40 minutes, each a quarter above the last."""
CLASSES = len(BOUNDS) + 1
_CLASS_OF = partial(bisect_right, BOUNDS)
"""Returns the class of a delay. This is hot code: `map` calls it for each attempt, without a Python function in between."""
_TOTAL_CLASS = (*(bisect_left(SECONDS, bound) for bound in BOUNDS), len(SECONDS))
"""The class of `RunTotals` for each class of delays, by its upper bound."""
MOST_HANDLERS = 100
"""The most functions that a heartbeat names; a process with more names none."""


MOST_HOSTS = 50
"""The most hosts with waiting calls that a heartbeat names."""


@dataclass(frozen=True, slots=True)
class HeldHost:
    """A host whose calls wait for its circuit breaker or its retry budget. `state` is a `GateState`."""

    tenant: str
    host: str
    state: str
    since: datetime
    next_try: datetime
    node: str = ""
    """The name of the node that holds the calls; empty for this process."""


def quantile_of(delays: Sequence[tuple[int, int]], share: float) -> float:
    """Return the upper bound, in seconds, of the class that `share` of the delays do not exceed; 0 without delays."""
    wanted = math.ceil(sum(count for _, count in delays) * share)
    seen = 0
    for which, count in sorted(delays):
        seen += count
        if wanted and seen >= wanted:
            return BOUNDS[min(which, len(BOUNDS) - 1)]
    return 0.0


class SlidingWindow:
    """Counts per class over the last `span` seconds, in buckets of `bucket` seconds. One thread counts, any thread may read."""

    def __init__(self, span: float, classes: int, bucket: float = BUCKET_SECONDS) -> None:
        self._span = span
        self._bucket = bucket
        self._classes = classes
        self._buckets: deque[tuple[float, list[int]]] = deque()

    def count(self, now: float, which: int, more: int = 1) -> None:
        """Add `more` to the count of class `which`."""
        if not self._buckets or now - self._buckets[-1][0] >= self._bucket:
            while self._buckets and self._buckets[0][0] < now - self._span:
                self._buckets.popleft()
            self._buckets.append((now, [0] * self._classes))
        self._buckets[-1][1][which] += more

    def totals(self, now: float) -> list[int]:
        """Return the counts of all classes within the span."""
        totals = [0] * self._classes
        for at, counts in tuple(self._buckets):  # a copy: the thread of the lease reads while the loop counts
            if at >= now - self._span:
                for which, count in enumerate(counts):
                    totals[which] += count
        return totals

    def rates(self, now: float) -> list[float]:
        """Return the counts of all classes per second, over the span or since the first count if that is later."""
        first = next((at for at, _ in tuple(self._buckets) if at >= now - self._span), now)
        seconds = max(now - first, self._bucket)
        return [total / seconds for total in self.totals(now)]


@dataclass(frozen=True, slots=True)
class Reading:
    """The health of one process, or of all processes, at one moment. `delays` are pairs of class and count."""

    delays: tuple[tuple[int, int], ...] = ()
    failed: int = 0
    succeeded: int = 0
    in_flight: int = 0
    unsettled: int = 0
    late_results: int = 0
    released_claims: int = 0
    retry_backlog: int = 0
    overdue: tuple[str, ...] = ()
    slots: int = 0
    """The number of instances that may run at once; 0 if not reported."""
    handlers: tuple[str, ...] | None = None
    """The functions of the process; None if not reported, or too many to name."""
    unknown_schema: int = 0
    """The number of the database's newest migration if this version does not know it; 0 otherwise."""
    held_hosts: tuple[HeldHost, ...] = ()
    clock_behind: int = 0
    """Seconds by which the database's clock is behind the latest time that it reported; 0 if it is not behind."""
    recent_delays: tuple[tuple[int, int], ...] = ()
    """The delays of the last minute."""
    dead_last_minute: int = 0
    low_rate: float = 0.0
    """Low-priority starts per second, over the last 10 minutes."""
    retry_rate: float = 0.0
    first_rate: float = 0.0
    """First tries per second, over the last 10 minutes."""
    oldest_wait: float = 0.0
    """Seconds for which the oldest instance that nothing holds has been due, as of the last sweep."""

    def delay_quantile(self, share: float) -> float:
        """Return the delay in seconds that `share` of the recent attempts did not exceed; 0 without attempts."""
        return quantile_of(self.delays, share)

    def reasons(self) -> list[Phrase]:
        """Return why the process is degraded although its loops run."""
        schema = [Degraded.SCHEMA_NEWER(number=self.unknown_schema)] if self.unknown_schema else []
        return schema + ([Degraded.CLOCK_BEHIND(seconds=self.clock_behind)] if self.clock_behind else [])

    def success_rate(self) -> float:
        """Return the share of recent attempts that succeeded; 1 without attempts."""
        settled = self.failed + self.succeeded
        return self.succeeded / settled if settled else 1.0

    def to_text(self) -> str:
        """Encode the reading as JSON for the other processes."""
        return json.dumps(asdict(self), separators=(",", ":"), default=datetime.isoformat)


_RATES = ("low_rate", "retry_rate", "first_rate")


def reading_from(text: str, name: str) -> Reading:
    """Decode the reading of another process; prefix its overdue loops with its `name`.

    Numbers that are missing count as 0, and unknown fields are ignored.
    """
    told: dict[str, Any] = json.loads(text)
    numbers = ("failed", "succeeded", "in_flight", "unsettled", "late_results", "released_claims", "retry_backlog")
    numbers += ("unknown_schema", "clock_behind", "dead_last_minute", *_RATES, "oldest_wait")
    handlers = told.get("handlers")
    return Reading(
        delays=_known_classes(told.get("delays", ())),
        recent_delays=_known_classes(told.get("recent_delays", ())),
        overdue=tuple(f"{name}: {loop}" for loop in told.get("overdue", ())),
        slots=told.get("slots", 0),
        handlers=None if handlers is None else tuple(handlers),
        held_hosts=tuple(_held_host(each, name) for each in told.get("held_hosts", ())),
        **{number: told.get(number, 0) for number in numbers},
    )


def _known_classes(pairs: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    return tuple((which, count) for which, count in pairs if 0 <= which < CLASSES)


def _held_host(told: dict[str, str], node: str) -> HeldHost:
    since, next_try = datetime.fromisoformat(told["since"]), datetime.fromisoformat(told["next_try"])
    return HeldHost(told["tenant"], told["host"], told["state"], since, next_try, node)


def merged(readings: Sequence[Reading]) -> Reading:
    """Merge the readings of all processes.

    Each process counts the waiting retries of the whole table from time to time, so the largest count is the closest.
    """
    return Reading(
        delays=_added(pair for reading in readings for pair in reading.delays),
        failed=sum(reading.failed for reading in readings),
        succeeded=sum(reading.succeeded for reading in readings),
        in_flight=sum(reading.in_flight for reading in readings),
        unsettled=sum(reading.unsettled for reading in readings),
        late_results=sum(reading.late_results for reading in readings),
        released_claims=sum(reading.released_claims for reading in readings),
        retry_backlog=max((reading.retry_backlog for reading in readings), default=0),
        overdue=tuple(loop for reading in readings for loop in reading.overdue),
        slots=sum(reading.slots for reading in readings),
        handlers=all_handlers(readings),
        held_hosts=tuple(host for reading in readings for host in reading.held_hosts)[:MOST_HOSTS],
        unknown_schema=max((reading.unknown_schema for reading in readings), default=0),
        clock_behind=max((reading.clock_behind for reading in readings), default=0),
        recent_delays=_added(pair for reading in readings for pair in reading.recent_delays),
        dead_last_minute=sum(reading.dead_last_minute for reading in readings),
        low_rate=sum(reading.low_rate for reading in readings),
        retry_rate=sum(reading.retry_rate for reading in readings),
        first_rate=sum(reading.first_rate for reading in readings),
        oldest_wait=max((reading.oldest_wait for reading in readings), default=0.0),
    )


def all_handlers(readings: Sequence[Reading]) -> tuple[str, ...] | None:
    """Return the functions of all processes together; None if one has not reported them, or there is no process."""
    if not readings or any(reading.handlers is None for reading in readings):
        return None
    return tuple(sorted({name for reading in readings for name in reading.handlers or ()}))


def _added(pairs: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    total: dict[int, int] = {}
    for which, count in pairs:
        total[which] = total.get(which, 0) + count
    return tuple(sorted(total.items()))


class StartClass(IntEnum):
    """A class of starts. One start may be in several."""

    LOW = 0
    RETRY = 1
    FIRST_TRY = 2


def _counted(window: SlidingWindow, now: float) -> tuple[tuple[int, int], ...]:
    return tuple((which, count) for which, count in enumerate(window.totals(now)) if count)


@dataclass(slots=True)
class JobCounts:
    """The attempts of one job that began, and their outcomes, since they were last taken."""

    started: int = 0
    succeeded: int = 0
    failed: int = 0
    dead: int = 0
    delays: dict[int, int] = field(default_factory=dict[int, int])
    """The number of attempts that began, by the class of their delay."""


@dataclass(slots=True)
class EngineHealth:
    """The measurements from which health is computed. One per process."""

    delays: SlidingWindow = field(default_factory=lambda: SlidingWindow(300.0, CLASSES))
    outcomes: SlidingWindow = field(default_factory=lambda: SlidingWindow(600.0, 2))
    recent_delays: SlidingWindow = field(default_factory=lambda: SlidingWindow(60.0, CLASSES, 5.0))
    deaths: SlidingWindow = field(default_factory=lambda: SlidingWindow(60.0, 1, 5.0))
    starts: SlidingWindow = field(default_factory=lambda: SlidingWindow(600.0, len(StartClass)))
    totals: RunTotals = field(default_factory=RunTotals)
    oldest_wait: float = 0.0
    beats: dict[str, float] = field(default_factory=dict[str, float])
    patience: dict[str, float] = field(default_factory=dict[str, float])
    started: int = 0
    settled: int = 0
    by_job: dict[int, JobCounts] = field(default_factory=dict[int, JobCounts])
    """The counts of each job, which the stage of statistics takes away."""
    late_results: int = 0
    released_claims: int = 0
    retry_backlog: int = 0
    in_flight: int = 0
    unsettled: int = 0
    trusted_until: float = 0.0
    """The time until which this node trusts its lease; after it, the node claims nothing."""
    renewed_at: float | None = None
    """The time at which the last renewal of the lease was sent."""
    incarnation: int = 0
    """The incarnation of this process as a node; 0 before its first lease."""
    slots: int = 0
    handlers: tuple[str, ...] | None = None
    unknown_schema: int = 0
    clock_behind: int = 0
    held_hosts: Callable[[], tuple[HeldHost, ...]] = lambda: ()
    """Return the hosts whose calls wait in this process. Called in the thread of the lease and in the event loop."""

    def holds_lease(self, now: float) -> bool:
        """Return whether this node may claim."""
        return now < self.trusted_until

    def lease_age(self, now: float) -> float:
        """Return the seconds since the lease was renewed; 0 before the first time."""
        return 0.0 if self.renewed_at is None else max(now - self.renewed_at, 0.0)

    def observe_delays(self, now: float, job_ids: Iterable[int], seconds: Sequence[float]) -> None:
        """Record attempts that began: the job of each, and the seconds since its execute time."""
        self.totals.delays.total += sum(seconds)
        for (job_id, which), count in Counter(zip(job_ids, map(_CLASS_OF, seconds), strict=True)).items():
            self.totals.delays.counts[_TOTAL_CLASS[which]] += count
            self.started += count
            self.delays.count(now, which, count)
            self.recent_delays.count(now, which, count)
            counts = self._of_job(job_id)
            counts.started += count
            counts.delays[which] = counts.delays.get(which, 0) + count

    def observe_outcomes(
        self, now: float, *, failed: Sequence[int] = (), succeeded: Sequence[int] = (), dead: Sequence[int] = ()
    ) -> None:
        """Record settled attempts by their jobs; the `dead` ones of the failed were the last of their instance."""
        self.settled += len(failed) + len(succeeded)
        self.outcomes.count(now, 0, len(failed))
        self.outcomes.count(now, 1, len(succeeded))
        for job_id, count in Counter(succeeded).items():
            self._of_job(job_id).succeeded += count
        for job_id, count in Counter(failed).items():
            self._of_job(job_id).failed += count
        self.deaths.count(now, 0, len(dead))
        for job_id, count in Counter(dead).items():
            self._of_job(job_id).dead += count

    def _of_job(self, job_id: int) -> JobCounts:
        counts = self.by_job.get(job_id)
        if counts is None:
            counts = self.by_job[job_id] = JobCounts()
        return counts

    def reading(self, now: float) -> Reading:
        """Return all measurements at one moment."""
        failed, succeeded = self.outcomes.totals(now)
        low_rate, retry_rate, first_rate = (round(rate, 4) for rate in self.starts.rates(now))
        return Reading(
            delays=_counted(self.delays, now),
            recent_delays=_counted(self.recent_delays, now),
            dead_last_minute=self.deaths.totals(now)[0],
            low_rate=low_rate,
            retry_rate=retry_rate,
            first_rate=first_rate,
            oldest_wait=self.oldest_wait,
            failed=failed,
            succeeded=succeeded,
            in_flight=self.in_flight,
            unsettled=self.unsettled,
            late_results=self.late_results,
            released_claims=self.released_claims,
            retry_backlog=self.retry_backlog,
            overdue=tuple(self.overdue(now)),
            slots=self.slots,
            handlers=self.handlers if self.handlers is None or len(self.handlers) <= MOST_HANDLERS else None,
            held_hosts=self.held_hosts(),
            unknown_schema=self.unknown_schema,
            clock_behind=self.clock_behind,
        )

    def delay_quantile(self, now: float, share: float) -> float:
        """Return the delay in seconds that `share` of the recent attempts did not exceed; 0 without attempts."""
        return self.reading(now).delay_quantile(share)

    def success_rate(self, now: float) -> float:
        """Return the share of recent attempts that succeeded; 1 without attempts."""
        return self.reading(now).success_rate()

    def beat(self, loop: str, now: float, patience: float) -> None:
        """Record that a loop has just succeeded, and should succeed again within `patience` seconds."""
        self.beats[loop] = now
        self.patience[loop] = patience

    def overdue(self, now: float) -> list[str]:
        """Return the loops whose last success is older than they promised: stuck, or failing."""
        return [loop for loop, at in tuple(self.beats.items()) if now - at > self.patience[loop]]

    def is_well(self, now: float) -> bool:
        """Return whether the node may claim, no loop is stuck, and schedules do not wait for the database's clock."""
        return self.holds_lease(now) and not self.overdue(now) and not self.clock_behind


def health_over(window: timedelta) -> EngineHealth:
    """Return a health with figures over another time than a minute: recent delays, dead letters, and ten times that."""
    recent, seconds = window.total_seconds() / 12, window.total_seconds()
    return EngineHealth(
        outcomes=SlidingWindow(10 * seconds, 2, 2 * recent),
        recent_delays=SlidingWindow(seconds, CLASSES, recent),
        deaths=SlidingWindow(seconds, 1, recent),
        starts=SlidingWindow(10 * seconds, len(StartClass), 2 * recent),
    )
