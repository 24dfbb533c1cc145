"""The definition of a figure: its samples, its lines in the table, and its targets."""

import statistics
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.sitting import Sitting

Sample = Mapping[str, float]
"""The measurements of one repetition, by name."""
Samples = Mapping[str, Sequence[float]]
"""The measurements of all repetitions, by name."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the table: the median of `name`, in parts of the median of `per` where there is one."""

    name: str
    unit: str
    per: str | None = None
    at_least: float | None = None
    at_most: float | None = None

    def median(self, samples: Samples) -> float:
        """The middle of what was measured."""
        return statistics.median(samples[self.name])

    def judged(self, samples: Samples) -> float:
        """Return the number that the target applies to: the ratio, or the figure itself."""
        if self.per is None:
            return self.median(samples)
        return self.median(samples) / (statistics.median(samples[self.per]) or 1e-9)

    def holds(self, samples: Samples) -> bool | None:
        """Return true if the target is met; None without a target."""
        if self.at_least is None and self.at_most is None:
            return None
        judged = self.judged(samples)
        return (self.at_least is None or judged >= self.at_least) and (self.at_most is None or judged <= self.at_most)

    @property
    def target(self) -> str:
        """Return the target as the table shows it."""
        if self.at_least is not None and self.at_most is not None:
            return f"{self.at_least:g} – {self.at_most:g}"
        if self.at_least is not None:
            return f"≥ {self.at_least:g}"
        return f"≤ {self.at_most:g}" if self.at_most is not None else ""


@dataclass(frozen=True, slots=True)
class Scenario:
    """A figure by name. `needs` are the scenarios it is compared with: they are sampled beside it, in turn."""

    name: str
    about: str
    sample: Callable[[Sitting], Awaitable[Sample]]
    lines: tuple[Line, ...]
    needs: tuple[str, ...] = ()
    by_name_only: bool = False
    """Too long for a run of everything."""
