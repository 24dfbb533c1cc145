"""The gate in front of one host, for one tenant: its circuit breaker, its retry budget and its room together.

A call that may not begin is told how long to wait. Such calls are lined up: each is sent back at the pace at which the
host was called before, one after the other from the time at which the gate expects to open, and at most 5 minutes after it.
This keeps a million waiting instances from being claimed at once, again and again, and is what makes recovery gentle.

Pure: `now` is a monotonic time in seconds.
"""

from dataclasses import dataclass, field
from enum import StrEnum

from horai.core.circuit_breaker import RAMP_STEP, SLOWEST_PACE, BreakerState, CircuitBreaker
from horai.core.retry import Dice
from horai.core.retry_budget import RetryBudget

LONGEST_LINE = 300.0
"""Seconds from the opening of the gate to the last waiting call."""
SPREAD = 1.0
"""Seconds by which each wait is lengthened at random."""
PROBE_PAUSE = 0.5
"""Seconds for which calls stay away while probes are under way."""


class GateState(StrEnum):
    """Why calls to a host wait: the state of its breaker, or what the breaker or the budget has left behind."""

    OPEN = "OPEN"
    HALF_OPEN = "HALF_OPEN"
    RAMPING = "RAMPING"
    FULL = "FULL"
    """As many calls as allowed are under way and in line for the host, and the line lasts for a while."""
    RECOVERING = "RECOVERING"
    """The breaker has closed, and calls that it held come back one after the other."""
    RETRIES_HELD = "RETRIES_HELD"
    """The retry budget was spent, and retries come back one after the other."""


@dataclass(slots=True)
class _Line:
    """The waiting calls of one kind: `last` is when the last of them comes back."""

    last: float = 0.0

    def join(self, now: float, opens_at: float, pace: float, dice: Dice) -> float:
        """Return the seconds that a call has to wait."""
        self.last = max(self.last, opens_at) + 1.0 / pace
        if self.last > opens_at + LONGEST_LINE:
            self.last = opens_at + LONGEST_LINE
            return opens_at - now + dice(0.0, LONGEST_LINE)
        return self.last - now + dice(0.0, SPREAD)


@dataclass(slots=True)
class HostGate:
    """The gate of one (tenant, host)."""

    breaker: CircuitBreaker
    budget: RetryBudget
    dice: Dice
    since: float = 0.0
    """The time from which calls have waited without interruption; of no meaning while none waits."""
    _full_until: float = 0.0
    _is_silent: bool = False
    _calls: _Line = field(default_factory=_Line)
    _retries: _Line = field(default_factory=_Line)

    @property
    def is_closed(self) -> bool:
        """Return whether first tries wait for nothing."""
        return self.breaker.state is BreakerState.CLOSED and not self._full_until

    def admit(self, now: float, *, is_retry: bool) -> float | None:
        """Count a call and return None if it may begin, otherwise return the seconds to wait."""
        if now < self._full_until:
            return self._full_until - now + self.dice(0.0, SPREAD)
        self._full_until = 0.0
        breaker = self.breaker
        is_open = breaker.state is BreakerState.OPEN and now < breaker.next_try
        if is_retry and not is_open and not self.budget.permits(now):
            self._note_hold(now)
            return self._retries.join(now, now + SPREAD, self.budget.retry_pace(), self.dice)
        if breaker.state is not BreakerState.CLOSED and not breaker.admit(now):
            self._note_hold(now)
            return self._calls.join(now, self._opens_at(now), max(breaker.pace, SLOWEST_PACE), self.dice)
        self.budget.count(now, is_retry=is_retry)
        return None

    def hold_back(self, now: float) -> float | None:
        """Return the seconds that a call has to wait which was admitted before the breaker opened, otherwise None."""
        if self.breaker.state is not BreakerState.OPEN or now >= self.breaker.next_try:
            return None
        return self._calls.join(now, self.breaker.next_try, max(self.breaker.pace, SLOWEST_PACE), self.dice)

    def fill(self, now: float, seconds: float, *, is_silent: bool) -> None:
        """Admit no call for `seconds`: the calls in line keep the host busy. Of a silent host no call has ended lately."""
        self._note_hold(now)
        self._full_until, self._is_silent = now + seconds, is_silent

    @property
    def waits_for_an_end(self) -> bool:
        """Return whether the end of a call is news: the host was full and silent when it was last looked at."""
        return bool(self._full_until) and self._is_silent

    def is_over(self, now: float) -> bool:
        """Return whether the host was full, and the time for which it was expected to be is over."""
        return 0.0 < self._full_until <= now

    def empty(self) -> None:
        """Admit calls again: the host has room."""
        self._full_until = 0.0

    def withdraw(self, *, is_retry: bool) -> None:
        """Take back a call that was admitted and not sent."""
        self.budget.withdraw(is_retry=is_retry)
        self.breaker.withdraw()

    def record(self, now: float, *, failed: bool) -> bool:
        """Record the result of a call. Return whether the state of the breaker has changed."""
        before = self.breaker.state
        self.breaker.record(now, failed=failed)
        after = self.breaker.state
        if after is BreakerState.OPEN and before is BreakerState.CLOSED:
            self.since = now
            self.breaker.pace = self.budget.pace(now)
        return before is not after

    def state(self, now: float) -> GateState | None:
        """Return why calls wait, or None if none does."""
        if not self.breaker.is_over(now):
            return GateState(self.breaker.state.value)
        if now < self._full_until:
            return GateState.FULL
        if now < self._calls.last:
            return GateState.RECOVERING
        return GateState.RETRIES_HELD if now < self._retries.last else None

    def next_try(self, now: float) -> float:
        """Return when more calls may begin than now."""
        match self.state(now):
            case GateState.FULL:
                return self._full_until
            case GateState.RECOVERING:
                return self._calls.last
            case GateState.RETRIES_HELD:
                return self._retries.last
            case _:
                return self._opens_at(now)

    def shut_for(self, now: float) -> float:
        """Return for how many seconds no call may begin, as far as known: the state of the breaker may change earlier."""
        match self.breaker.state:
            case BreakerState.OPEN:
                return self.breaker.next_try - now
            case BreakerState.HALF_OPEN if self.breaker.probes <= 0:
                return self.breaker.next_try - now
            case _:
                return max(self._full_until - now, 0.0)

    def _note_hold(self, now: float) -> None:
        if self.state(now) is None:
            self.since = now

    def _opens_at(self, now: float) -> float:
        """Return when it is worth to try again: after the pause, the probes, or the current step of the ramp."""
        match self.breaker.state:
            case BreakerState.OPEN:
                return self.breaker.next_try
            case BreakerState.RAMPING:
                return min(self.breaker.next_try, now + RAMP_STEP)
            case _:
                return now + PROBE_PAUSE

    def is_idle(self, now: float) -> bool:
        """Return whether the gate remembers nothing that a new one would not know."""
        return self.state(now) is None and self.budget.is_idle(now)
