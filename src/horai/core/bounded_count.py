"""Counts with a bound: the number of rows that match, or the least number of them."""

from dataclasses import dataclass

COUNTED = 100_000
"""Rows of a table that a count reads at most; it reads one more to know whether there are others."""


@dataclass(frozen=True, slots=True)
class BoundedCount:
    """The number of matching rows. With `more`, it is the least number: not all rows were read."""

    count: int
    more: bool

    @classmethod
    def of(cls, matched: int, looked_at: int, bound: int) -> "BoundedCount":
        """Return the count of a statement that reads `bound` rows and one more: `matched` of the rows it looked at."""
        return cls(min(matched, bound), looked_at > bound)
