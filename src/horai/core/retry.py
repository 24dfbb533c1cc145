"""When a failed attempt is tried again.

The default delays are those of seed 002 §15: 500 ms · 2^min(n, 8) plus U[100, 800) ms, at most 300 s, where n is the
number of the failure (1, 2, …). With them the longest delay is 128.8 s: the cap only matters for a larger `base`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

Dice = Callable[[float, float], float]
"""`dice(low, high)` is uniform in [low, high). Production passes `random.uniform`, tests a constant."""

EXPONENT_CAP = 8
SPREAD_LOW = timedelta(milliseconds=100)
SPREAD_HIGH = timedelta(milliseconds=800)


class Jitter(StrEnum):
    """How retries of one outage are kept from marching in step."""

    ADDITIVE = "additive"
    """The seed's: 100 to 800 ms on top."""
    FULL = "full"
    """Anywhere between nothing and the whole delay: spreads best."""
    NONE = "none"


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often and how patiently a failing instance is tried again."""

    max_retry: int = 5
    base: timedelta = timedelta(milliseconds=500)
    cap: timedelta = timedelta(seconds=300)
    jitter: Jitter = Jitter.ADDITIVE

    def is_spent(self, retry_count: int) -> bool:
        """Whether an instance that has failed `retry_count` times is dead: at the sixth failure by default."""
        return retry_count > self.max_retry


def backoff(policy: RetryPolicy, failure: int, dice: Dice) -> timedelta:
    """The wait after the `failure`-th failure (1 for the first)."""
    delay = policy.base * (2 ** min(failure, EXPONENT_CAP))
    match policy.jitter:
        case Jitter.ADDITIVE:
            spread = dice(SPREAD_LOW.total_seconds(), SPREAD_HIGH.total_seconds())
            return min(delay + timedelta(seconds=spread), policy.cap)
        case Jitter.FULL:
            return timedelta(seconds=dice(0.0, min(delay, policy.cap).total_seconds()))
        case Jitter.NONE:
            return min(delay, policy.cap)
