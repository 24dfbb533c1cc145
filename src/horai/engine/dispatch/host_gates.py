"""The gates of this process: for each tenant and host, a circuit breaker and a retry budget.

Admission asks here before a call begins, and the executor reports the result of each call. The state is in memory:
each node bounds its own calls, so that all nodes together stay within the same share. A node that starts knows nothing and
learns within 20 calls.
"""

import random
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from operator import itemgetter

import structlog

from horai.core.calls import Call, Target
from horai.core.circuit_breaker import BreakerState, CircuitBreaker
from horai.core.health import MOST_HOSTS, EngineHealth, HeldHost
from horai.core.host_gate import HostGate
from horai.core.jetstream import UNAUTHENTICATED
from horai.core.outcome import TIMEOUT, Accepted, FailedRetryable, FailedUnrecoverable, NotSent, Outcome
from horai.core.retry import Dice
from horai.core.retry_budget import RetryBudget
from horai.core.settings import EngineSettings
from horai.db.claims import ClaimedRow
from horai.db.clock import DatabaseClock
from horai.db.jobs import Runnable
from horai.engine.executors.bulkhead import NOT_BUSY, BusyTime
from horai.engine.executors.origins import host_of

log = structlog.get_logger(__name__)

MOST_GATES = 10_000
"""When there are more, those of hosts without calls in the last minute are dropped."""
SHORTEST_BUSY = 0.1
"""Seconds below which the rows of a full host are not held: a quick host stays busy."""
MOST_SHUT_JOBS = 1_000
UNDIALLED = frozenset({"ADDRESS_REFUSED", "INVALID_TARGET", "EXECUTOR_ERROR", "SECRET_MISSING", "SECRET_UNREADABLE"})
"""Codes of outcomes that say nothing about the host."""

_HELD = itemgetter(0)
"""The claim of a claimed row."""
_JOB_AND_RETRIES = itemgetter(1, 5)
"""The job of a claim and the number of its retries."""

HostKey = tuple[str, str]
"""A tenant and the host of a target."""


def is_host_failure(outcome: Outcome | Accepted) -> bool:
    """Return whether the host did not work: no connection, a timeout, or a 5xx. Any other answer shows that it works."""
    return isinstance(outcome, FailedRetryable) and (
        outcome.code in {TIMEOUT, "CONNECTION", UNAUTHENTICATED} or outcome.code.startswith("HTTP_5")
    )


@dataclass(frozen=True, slots=True)
class ShutJobs:
    """Jobs of which no call may begin, by lane. `seconds`: until the first of them may, unless a breaker changes before."""

    lanes: Mapping[int, set[int]] = field(default_factory=dict[int, set[int]])
    job_ids: frozenset[int] = frozenset()
    seconds: float = 0.0


NOTHING_SHUT = ShutJobs()


class HostGates:
    """The gates of all hosts that this process calls."""

    def __init__(
        self,
        settings: EngineSettings,
        health: EngineHealth,
        clock: DatabaseClock,
        monotonic: Callable[[], float] = time.monotonic,
        dice: Dice = random.uniform,
    ) -> None:
        self._settings = settings
        self._clock = clock
        self.monotonic = monotonic
        self._dice = dice
        self._gates: dict[HostKey, HostGate] = {}
        self._most = MOST_GATES
        self._held: dict[HostKey, HostGate] = {}
        """The gates that have held calls; those that hold none any more are dropped later."""
        self._shut: dict[tuple[int, int], tuple[HostKey, HostGate]] = {}
        """Lanes and jobs whose calls a gate held lately."""
        self.limited_at: dict[int, datetime] = {}
        """Until when a gate has kept calls of a job from beginning, lately."""
        self.busy_of: Callable[[str], BusyTime] = lambda _: NOT_BUSY
        """Returns how long the calls in line keep a host busy."""
        self.on_end: Callable[[Target], None] = lambda _: None
        """Called when a call has ended."""
        self.on_change: Callable[[], None] = lambda: None
        """Called when a breaker has changed its state: jobs that were shut may run."""
        health.held_hosts = self.held_hosts

    def admit(self, rows: Sequence[ClaimedRow], known: Mapping[int, Runnable]) -> dict[int, timedelta]:
        """Count the calls of claimed rows that may begin. Return how long the others have to wait, by instance.

        This is hot code: a Counter groups the rows by job and number of retries, and only rows that a gate may hold back
        are looked at one by one.
        """
        now = self.monotonic()
        tries = Counter(map(_JOB_AND_RETRIES, map(_HELD, rows)))
        gates = {job_id: self._gate_of(known[job_id]) for job_id in {job_id for job_id, _ in tries}}
        asked = {
            (job_id, retries)
            for job_id, retries in tries
            if (found := gates[job_id]) is not None and (retries or not found[1].is_closed)
        }
        waits = self._ask_each([row for row in rows if _JOB_AND_RETRIES(row[0]) in asked], gates, now) if asked else {}
        for each, calls in tries.items():
            if each not in asked and (found := gates[each[0]]) is not None:
                found[1].budget.count(now, is_retry=False, calls=calls)
        return waits

    def _ask_each(
        self, rows: Iterable[ClaimedRow], gates: Mapping[int, tuple[HostKey, HostGate] | None], now: float
    ) -> dict[int, timedelta]:
        waits: dict[int, timedelta] = {}
        for row in rows:
            id_, job_id, _attempt, _fence, _node, retry_count, *_ = row[0]
            found = gates[job_id]
            if found is not None and (wait := self._ask(*found, now, is_retry=retry_count > 0)) is not None:
                waits[id_] = wait
                self.note_limited((job_id,), wait)
                if found[1].shut_for(now) > 0.0 and len(self._shut) < MOST_SHUT_JOBS:
                    self._shut[row[1], job_id] = found
        return waits

    def note_limited(self, job_ids: Iterable[int], wait: timedelta = timedelta(0)) -> None:
        """Note that calls of these jobs wait for their host, and for how much longer. Such a wait is no delay of the scheduler."""
        if len(self.limited_at) > MOST_SHUT_JOBS:
            self.limited_at.clear()
        until = self._clock.now() + wait
        for job_id in job_ids:
            self.limited_at[job_id] = max(self.limited_at.get(job_id, until), until)

    def _ask(self, key: HostKey, gate: HostGate, now: float, *, is_retry: bool) -> timedelta | None:
        before = gate.breaker.state
        self._look_at_room(key, gate, now)
        wait = gate.admit(now, is_retry=is_retry)
        if gate.breaker.state is not before:
            self._log_change(key, gate, before, now)
        if wait is None:
            return None
        self._held[key] = gate
        return timedelta(seconds=wait)

    def _gate_of(self, job: Runnable) -> tuple[HostKey, HostGate] | None:
        """Return the gate of a job's host; None for a function."""
        if job.recipe is None or not (host := host_of(job.recipe.target)):
            return None
        key = (job.tenant, host)
        return key, self._gates.get(key) or self._add(key)

    def hold_back(self, call: Call) -> timedelta | None:
        """Return how long a call has to wait whose host was shut after its admission; None if it may be sent."""
        gate = self._gates.get((call.tenant, host_of(call.target)))
        wait = None if gate is None else gate.hold_back(self.monotonic())
        return None if wait is None else timedelta(seconds=wait)

    def filled(self, call: Call, busy: BusyTime) -> None:
        """Hold the rows of a host that is full, so that they are passed over and not claimed only to be turned away."""
        key = (call.tenant, host_of(call.target))
        if busy.seconds >= SHORTEST_BUSY and (gate := self._gates.get(key)) is not None:
            gate.fill(self.monotonic(), busy.seconds, is_silent=busy.is_silent)

    def _look_at_room(self, key: HostKey, gate: HostGate, now: float) -> None:
        """Hold the rows of a host for longer that was expected to have room by now, and has none."""
        if gate.is_over(now) and self._is_busy(key):
            seconds, is_silent = self.busy_of(key[1])
            gate.fill(now, seconds, is_silent=is_silent)

    def _is_busy(self, key: HostKey) -> bool:
        return self.busy_of(key[1]).seconds >= SHORTEST_BUSY

    def ended(self, call: Call, outcome: Outcome | Accepted) -> None:
        """Record the outcome of a call that was admitted."""
        self.on_end(call.target)
        key = (call.tenant, host_of(call.target))
        if (gate := self._gates.get(key)) is None:
            return
        if not isinstance(outcome, NotSent) and gate.waits_for_an_end and not self._is_busy(key):
            gate.empty()
            self.on_change()
        if isinstance(outcome, NotSent) or (
            isinstance(outcome, FailedRetryable | FailedUnrecoverable) and outcome.code in UNDIALLED
        ):
            gate.withdraw(is_retry=call.retry_count > 0)
            self.note_limited((call.job_id,))
            return
        before, now = gate.breaker.state, self.monotonic()
        if gate.record(now, failed=is_host_failure(outcome)):
            self._log_change(key, gate, before, now)

    def shut_jobs(self) -> ShutJobs:
        """Return the jobs of which no call may begin, as far as known."""
        if not self._shut:
            return NOTHING_SHUT
        now = self.monotonic()
        for key, gate in self._shut.values():
            self._look_at_room(key, gate, now)
        self._shut = {place: found for place, found in self._shut.items() if found[1].shut_for(now) > 0.0}
        lanes: defaultdict[int, set[int]] = defaultdict(set)
        for lane, job_id in self._shut:
            lanes[lane].add(job_id)
        seconds = min((gate.shut_for(now) for _, gate in self._shut.values()), default=0.0)
        return ShutJobs(lanes, frozenset(job_id for _, job_id in self._shut), seconds)

    def held_hosts(self) -> tuple[HeldHost, ...]:
        """Return the hosts whose calls wait, longest first. Any thread may call this."""
        if not self._held:
            return ()
        now, at = self.monotonic(), self._clock.now()
        shown: list[HeldHost] = []
        for (tenant, host), gate in tuple(self._held.items()):
            if (state := gate.state(now)) is not None and len(shown) < MOST_HOSTS:
                next_try = at + timedelta(seconds=max(gate.next_try(now) - now, 0.0))
                shown.append(HeldHost(tenant, host, state, at - timedelta(seconds=now - gate.since), next_try))
        return tuple(shown)

    def _add(self, key: HostKey) -> HostGate:
        now = self.monotonic()
        if len(self._gates) >= self._most:
            self._gates = {key: gate for key, gate in self._gates.items() if not gate.is_idle(now)}
            self._most = max(MOST_GATES, 2 * len(self._gates))
        if len(self._held) > MOST_HOSTS:
            self._held = {key: gate for key, gate in self._held.items() if gate.state(now) is not None}
        breaker = CircuitBreaker(self._settings.breaker_share, self._dice)
        budget = RetryBudget(self._settings.retry_share, self._settings.retry_free)
        gate = self._gates[key] = HostGate(breaker, budget, self._dice)
        return gate

    def _log_change(self, key: HostKey, gate: HostGate, before: BreakerState, now: float) -> None:
        """Log when a breaker opens and when it has closed again, not the probes between."""
        self.on_change()
        tenant, host = key
        if before is BreakerState.CLOSED:
            self._held[key] = gate
            pause = round(gate.breaker.next_try - now, 1)
            log.warning("circuit breaker opened", tenant=tenant, host=host, next_probe_in_seconds=pause)
        elif gate.breaker.state is BreakerState.CLOSED:
            log.info("circuit breaker closed", tenant=tenant, host=host, after_seconds=round(now - gate.since, 1))
