"""The circuit breaker of a host: it stops calls to a host that fails, tries it from time to time, and recovers in steps.

| state     | calls                                  | next state                                                        |
|-----------|----------------------------------------|-------------------------------------------------------------------|
| CLOSED    | all                                    | OPEN when `share` of the last 10 s failed, of at least 20         |
| OPEN      | none                                   | HALF_OPEN after a pause: 5 s, doubled to 30 s, ± 20 %             |
| HALF_OPEN | 3 probes                               | OPEN when one fails, RAMPING when 3 succeed                       |
| RAMPING   | 5 per second, doubled each second      | OPEN when `share` failed, of at least 5; CLOSED when no call had  |
|           | up to 2 x `pace`, then each 30 s       | to wait for 5 s                                                   |

A failure is a host that did not work: no connection, a timeout, a 5xx. An answer of the business is none. Results of calls
that began before the breaker opened are ignored while it is open. The ramp keeps the calls that have waited from reaching
the host all at once: a backlog of an outage takes about as long as the outage.

Pure: `now` is a monotonic time in seconds.
"""

from collections import deque
from enum import StrEnum

from horai.core.retry import Dice

MOST_DOUBLINGS = 20
WINDOW = 10
"""Seconds of results that decide, in buckets of one second."""
FEWEST_RESULTS = 20
FEWEST_RAMP_RESULTS = 5
FIRST_PAUSE = 5.0
LONGEST_PAUSE = 30.0
PAUSE_SPREAD = 0.2
"""The share by which a pause is shortened or lengthened, so that breakers of several nodes do not probe together."""
PROBES = 3
PROBE_PATIENCE = 10.0
"""Seconds after which probes without a result are replaced: their calls may be long, or were never sent."""
RAMP_FIRST = 5.0
"""Calls per second of the first step of the ramp."""
RAMP_STEP = 1.0
"""Seconds after which the rate doubles, up to twice the pace of before."""
RAMP_AHEAD = 2.0
SLOWEST_PACE = 10.0
"""Calls per second that count as the pace of a host that was called less often."""
SLOW_STEP = 30.0
"""Seconds after which the rate doubles above that."""
QUIET = 5.0
"""Seconds in which the ramp has turned no call away, after which the breaker closes."""
RAMP_BURST = 0.2
"""Seconds of a step's calls that may begin at once."""
FORGOTTEN_AFTER = 600.0
"""Seconds without a call after which an open breaker is no longer shown."""


class BreakerState(StrEnum):
    """The state of a breaker."""

    CLOSED = "CLOSED"
    OPEN = "OPEN"
    HALF_OPEN = "HALF_OPEN"
    RAMPING = "RAMPING"


class _Results:
    """Results of the last `WINDOW` seconds."""

    def __init__(self) -> None:
        self._seconds: deque[list[int]] = deque()  # each: the second, results, failures
        self.total = 0
        self.failed = 0

    def count(self, now: float, *, failed: bool) -> None:
        second = int(now)
        while self._seconds and self._seconds[0][0] <= second - WINDOW:
            _, total, failures = self._seconds.popleft()
            self.total -= total
            self.failed -= failures
        if not self._seconds or self._seconds[-1][0] < second:
            self._seconds.append([second, 0, 0])
        self._seconds[-1][1] += 1
        self._seconds[-1][2] += failed
        self.total += 1
        self.failed += failed


class CircuitBreaker:
    """The breaker of one host. `share` above 1 never opens."""

    def __init__(self, share: float, dice: Dice) -> None:
        self._share = share
        self._dice = dice
        self._results = _Results()
        self._pauses = 0
        self._successes = 0
        self._rate = 0.0
        self._ramp_began = 0.0
        self._turned_away_at = 0.0
        self._room = 0.0
        self._filled_at = 0.0
        self.probes = 0
        """Probes that may still begin while half-open; 0 or less if none."""
        self.pace = 0.0
        """Calls per second before the breaker opened."""
        self.state = BreakerState.CLOSED
        self.next_try = 0.0
        """The time at which more calls may begin than now; of no meaning while closed."""

    def admit(self, now: float) -> bool:
        """Return whether a call may begin; count it as a probe or as a call of the ramp."""
        if self.state is BreakerState.OPEN and now >= self.next_try:
            self._half_open(now)
        if self.state is BreakerState.RAMPING:
            self._climb(now)
        match self.state:
            case BreakerState.CLOSED:
                return True
            case BreakerState.OPEN:
                return False
            case BreakerState.HALF_OPEN:
                if self.probes <= 0 and now >= self.next_try:
                    self._half_open(now)
                self.probes -= 1
                return self.probes >= 0
            case BreakerState.RAMPING:
                burst = max(self._rate * RAMP_BURST, 1.0)
                self._room = min(self._room + (now - self._filled_at) * self._rate, burst)
                self._filled_at = now
                if self._room < 1.0:
                    self._turned_away_at = now
                    return False
                self._room -= 1.0
                return True

    def withdraw(self) -> None:
        """Give back the place of a call that was admitted and not sent."""
        if self.state is BreakerState.HALF_OPEN:
            self.probes = min(max(self.probes, 0) + 1, PROBES)

    def record(self, now: float, *, failed: bool) -> None:
        """Record the result of a call, and change the state if it is time."""
        match self.state:
            case BreakerState.OPEN:
                return
            case BreakerState.HALF_OPEN:
                self._successes += not failed
                if failed:
                    self._open(now)
                elif self._successes >= PROBES:
                    self._begin_ramp(now)
            case BreakerState.RAMPING | BreakerState.CLOSED:
                if self.state is BreakerState.RAMPING:
                    self._climb(now)
                self._results.count(now, failed=failed)
                fewest = FEWEST_RESULTS if self.state is BreakerState.CLOSED else FEWEST_RAMP_RESULTS
                total, failures = self._results.total, self._results.failed
                if failed and total >= fewest and failures >= self._share * total:
                    self._open(now)

    def _open(self, now: float) -> None:
        pause = min(FIRST_PAUSE * 2**self._pauses, LONGEST_PAUSE)
        self._pauses = min(self._pauses + 1, MOST_DOUBLINGS)
        self.state = BreakerState.OPEN
        self.next_try = now + pause * self._dice(1.0 - PAUSE_SPREAD, 1.0 + PAUSE_SPREAD)
        self._results = _Results()

    def _half_open(self, now: float) -> None:
        self.state = BreakerState.HALF_OPEN
        self.probes = PROBES
        self._successes = 0
        self.next_try = now + PROBE_PATIENCE

    def _begin_ramp(self, now: float) -> None:
        self.state = BreakerState.RAMPING
        self._ramp_began = self._filled_at = self._turned_away_at = now
        self._room = 0.0
        self._results = _Results()

    def _climb(self, now: float) -> None:
        """Set the rate of the current step of the ramp; close when no call had to wait lately."""
        climbed, full = now - self._ramp_began, RAMP_AHEAD * max(self.pace, SLOWEST_PACE)
        self.next_try = now + RAMP_STEP - climbed % RAMP_STEP
        self._rate = RAMP_FIRST * 2 ** min(int(climbed / RAMP_STEP), MOST_DOUBLINGS)
        if self._rate >= full:
            self._rate = full * 2 ** min(int(climbed / SLOW_STEP), MOST_DOUBLINGS)
        if now >= self._turned_away_at + QUIET:
            self.state = BreakerState.CLOSED
            self._pauses = 0

    def is_over(self, now: float) -> bool:
        """Return whether the breaker no longer matters: it is closed or would be, or its host is not called any more."""
        match self.state:
            case BreakerState.CLOSED:
                return True
            case BreakerState.RAMPING:
                return now >= self._turned_away_at + QUIET
            case _:
                return now >= self.next_try + FORGOTTEN_AFTER
