"""Change detection: a mark in the database tells whether live rows may have been added or moved since the last check.

Writers move the mark after they write their rows and before they commit. A moved mark therefore requires a check at
once, and further checks until every transaction that may have moved it has ended. Transaction ids tell when that is: a
snapshot taken after the mark was read has an upper bound above all of them.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ChangeMark:
    """The state of the mark: its value, and the bounds of a snapshot taken before the mark was read.

    Every transaction below `oldest_open` has ended. Every transaction that began to write before the snapshot is below
    `next_id`.
    """

    value: int
    oldest_open: int
    next_id: int


class ChangeDetector:
    """The last mark, and the transactions that may still commit rows that it announced."""

    def __init__(self) -> None:
        self._value: int | None = None
        self._is_settled = False
        self._ended_below: int | None = None

    def is_look_due(self, mark: ChangeMark) -> bool:
        """Return whether there may be rows that no earlier check has seen.

        The caller checks after it has read the mark.
        """
        if mark.value != self._value:
            self._value, self._is_settled, self._ended_below = mark.value, False, None
            return True
        if self._is_settled:
            return False
        if self._ended_below is None:
            self._ended_below = mark.next_id
        self._is_settled = mark.oldest_open >= self._ended_below
        return True
