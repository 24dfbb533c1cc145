"""The stretches of constant UTC offset of a zone.

`zoneinfo` tells the offset of an instant but not when it changes, so the changes of a year are found once, by checking
every few days of it, and cached. Instants are whole seconds since the epoch, UTC.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import pairwise
from zoneinfo import ZoneInfo

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
FIRST_YEAR, LAST_YEAR = 2, 9998
"""The years whose previous and next year exist too."""

_SECOND = timedelta(seconds=1)
_NONE = timedelta(0)
_STRIDE = 6 * 86_400
"""Shorter than any zone has kept an offset since 1970: the shortest stretch was a week (Recife, 2000)."""
_STRIDE_BEFORE = 3 * 86_400
"""Shorter than any zone kept an offset before: the shortest stretch was just under four days (Freetown, 1939)."""
_MARGIN = 2 * 86_400
"""No change moves a clock further, so an earlier change repeats no time of this year."""


@dataclass(frozen=True, slots=True)
class ClockChange:
    """A change of the offset from `before` to `after`, in seconds, at the instant `at`."""

    at: int
    before: int
    after: int

    @property
    def repeated(self) -> int:
        """Return how many seconds the clock goes back."""
        return max(0, self.before - self.after)


@dataclass(frozen=True, slots=True)
class Segment:
    """A stretch from `start` until `end` in which the wall clock is `offset` seconds ahead of UTC.

    No segment crosses the end of a UTC year.
    """

    start: int
    end: int
    offset: int
    lost_from: int | None
    """The first wall time that was skipped right before `start`; None if `start` does not end a gap."""
    repeats_until: int
    """Before this instant, wall times come for the second time: the last occurrence of an overlap."""
    repeated_from: int
    """From this instant on, wall times will come again: the first occurrence of an overlap."""


def segment_at(zone: ZoneInfo, instant: int) -> Segment:
    """Return the segment that contains `instant`, of a year from `FIRST_YEAR` to `LAST_YEAR`."""
    for segment in _segments_of(zone, (EPOCH + timedelta(seconds=instant)).year):
        if instant < segment.end:
            return segment
    raise AssertionError("the segments of a year cover it")


@lru_cache(maxsize=8192)
def _segments_of(zone: ZoneInfo, year: int) -> tuple[Segment, ...]:
    start, end = _new_year(year), _new_year(year + 1)
    changes = list(_changes(zone, start - _MARGIN, end + _MARGIN))
    before_all = _offset(zone, start - _MARGIN)
    after_all = changes[-1].after if changes else before_all
    outer = [
        ClockChange(start - _MARGIN, before_all, before_all),
        *changes,
        ClockChange(end + _MARGIN, after_all, after_all),
    ]
    segments = [_between(left, right, start, end) for left, right in pairwise(outer)]
    return tuple(segment for segment in segments if segment.start < segment.end)


def _between(left: ClockChange, right: ClockChange, year_start: int, year_end: int) -> Segment:
    ends_gap = left.after > left.before and left.at >= year_start
    return Segment(
        start=max(left.at, year_start),
        end=min(right.at, year_end),
        offset=left.after,
        lost_from=left.at + left.before if ends_gap else None,
        repeats_until=left.at + left.repeated,
        repeated_from=right.at - right.repeated,
    )


def _changes(zone: ZoneInfo, start: int, end: int) -> Iterator[ClockChange]:
    stride = _STRIDE if start >= 0 else _STRIDE_BEFORE
    before = _offset(zone, start)
    for seen in range(start, end, stride):
        after = _offset(zone, seen + stride)
        if after != before:
            yield ClockChange(_first_with(zone, after, seen, seen + stride), before, after)
            before = after


def _first_with(zone: ZoneInfo, offset: int, low: int, high: int) -> int:
    """Return the first instant with `offset`, given that `low` has another one and `high` has it."""
    while high - low > 1:
        middle = (low + high) // 2
        if _offset(zone, middle) == offset:
            high = middle
        else:
            low = middle
    return high


def _offset(zone: ZoneInfo, instant: int) -> int:
    offset = datetime.fromtimestamp(instant, zone).utcoffset() or _NONE
    return offset.days * 86_400 + offset.seconds


def _new_year(year: int) -> int:
    return (datetime(year, 1, 1, tzinfo=UTC) - EPOCH) // _SECOND
