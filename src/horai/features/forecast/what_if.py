"""The effect of jobs that do not exist yet on a forecast, minute by minute."""

from collections.abc import Sequence
from dataclasses import dataclass
from operator import add

from horai.features.forecast.crowds import Crowd, forecast
from horai.features.forecast.minutes import ForecastWindow

MOST_JOBS = 10_000_000
"""The most hypothetical jobs."""


@dataclass(frozen=True, slots=True)
class WhatIf:
    """The fires per minute of the existing jobs (`before`), of the hypothetical ones (`added`), and of both (`after`)."""

    window: ForecastWindow
    before: Sequence[int]
    added: Sequence[int]

    @property
    def after(self) -> list[int]:
        """Return the fires of all jobs in each minute."""
        return list(map(add, self.before, self.added))


def what_if(window: ForecastWindow, before: Sequence[int], crowd: Crowd) -> WhatIf:
    """Add a crowd of hypothetical jobs to the fires per minute of a window."""
    return WhatIf(window, before, forecast([crowd], window).per_minute)


def busiest_minute(per_minute: Sequence[int]) -> int | None:
    """Return the index of the first minute with the most fires; None if there are no fires."""
    most = max(range(len(per_minute)), key=per_minute.__getitem__)
    return most if per_minute[most] else None


def minutes_above(per_minute: Sequence[int], most: int) -> int:
    """Count the minutes with more than `most` fires."""
    return sum(fires > most for fires in per_minute)
