"""The delay before a failed or lost attempt is tried again.

The default delays are those of seed 002 §15: 500 ms · 2^min(n, 8) plus U[100, 800) ms, at most 300 s, where n is the
number of the failure (1, 2, …). With them the longest delay is 128.8 s: the cap only matters for a larger `base`.

A lost attempt (its node died) says nothing about the instance, so losses have their own count, limit and longer delays.
Unless `jitter` is `none`, these are spread over half their length, so that instances that were lost together do not run
together again.
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
LOSS_FACTOR = 8
"""The delay after the first loss is at most `base` · 8, and at least half of that: 2 to 4 s by default."""
ALONE_AFTER = 2
"""An instance that was lost this often runs alone in a process: if it killed its nodes, it kills only that process."""


class Jitter(StrEnum):
    """The spread of retries, so that the retries after one outage do not run in step."""

    ADDITIVE = "additive"
    """The jitter of the seed: adds 100 to 800 ms."""
    FULL = "full"
    """Uniform between zero and the whole delay: spreads best."""
    NONE = "none"


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """The number and delays of retries after failures (`max_retry`) and losses (`max_lost`)."""

    max_retry: int = 5
    base: timedelta = timedelta(milliseconds=500)
    cap: timedelta = timedelta(seconds=300)
    jitter: Jitter = Jitter.ADDITIVE
    max_lost: int = 20
    poll: timedelta | None = None
    """The time until a sensor asks again, if the condition is not met. Such an answer is no failure. None: no sensor."""

    def is_spent(self, retry_count: int) -> bool:
        """Return whether an instance that has failed `retry_count` times is dead: at the sixth failure by default."""
        return retry_count > self.max_retry

    def is_lost_for_good(self, lost: int) -> bool:
        """Return whether an instance that was lost `lost` times is dead: at the 21st loss by default."""
        return lost > self.max_lost


def backoff(policy: RetryPolicy, failure: int, dice: Dice) -> timedelta:
    """Return the wait after the `failure`-th failure (1 for the first)."""
    delay = policy.base * (2 ** min(failure, EXPONENT_CAP))
    match policy.jitter:
        case Jitter.ADDITIVE:
            spread = dice(SPREAD_LOW.total_seconds(), SPREAD_HIGH.total_seconds())
            return min(delay + timedelta(seconds=spread), policy.cap)
        case Jitter.FULL:
            return timedelta(seconds=dice(0.0, min(delay, policy.cap).total_seconds()))
        case Jitter.NONE:
            return min(delay, policy.cap)


def loss_backoff(policy: RetryPolicy, loss: int, dice: Dice) -> timedelta:
    """Return the wait after the `loss`-th loss (1 for the first): uniform in the upper half of base · 8 · 2^(n-1).

    At most `cap`: by default 2 to 4 s, 4 to 8 s, …, 150 to 300 s. Without jitter, the longest of these.
    """
    longest = min(policy.base * LOSS_FACTOR * (2 ** min(loss - 1, EXPONENT_CAP)), policy.cap)
    if policy.jitter is Jitter.NONE:
        return longest
    return timedelta(seconds=dice(longest.total_seconds() / 2, longest.total_seconds()))
