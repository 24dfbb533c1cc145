"""Interval: the data interval of an instance, a run or an update."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Interval:
    """A data interval: `start` belongs to it, `end` does not. Both are UTC."""

    start: datetime
    end: datetime
