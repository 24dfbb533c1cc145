"""Decide from a mark in the database whether live rows may have been added or moved since the last look at them.

Writers move the mark after their rows and before their commit. So a mark that has moved calls for a look at once, and for
further looks until every transaction that may have moved it has ended. Transaction ids tell when that is: a snapshot that
was taken after the mark was read has an upper bound above all of them.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ChangeMark:
    """The state of the mark: its value, and the bounds of a snapshot that was taken before it was read.

    Every transaction below `oldest_open` has ended. Every transaction that began to write before the snapshot is below `next_id`.
    """

    value: int
    oldest_open: int
    next_id: int


class ChangeDetector:
    """Remember the mark, and which transactions may still commit rows that it announced."""

    def __init__(self) -> None:
        self._value: int | None = None
        self._is_settled = False
        self._ended_below: int | None = None

    def is_look_due(self, mark: ChangeMark) -> bool:
        """Return whether rows may be there that no earlier look has seen. The caller looks after it has read the mark."""
        if mark.value != self._value:
            self._value, self._is_settled, self._ended_below = mark.value, False, None
            return True
        if self._is_settled:
            return False
        if self._ended_below is None:
            self._ended_below = mark.next_id
        self._is_settled = mark.oldest_open >= self._ended_below
        return True
