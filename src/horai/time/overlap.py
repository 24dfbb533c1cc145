"""The treatment of a slot that comes due while its job is still at work.

Every slot of a job that does not `allow` overlap is created held, in the parking lane, and one decision over all rows
of the job releases or cancels it. The decision covers only slots. Other work of the job without a key (a run started by
hand) is work that slots yield to and never replace.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import IntEnum

MOST_QUEUED = 1_000
"""The most slots that may wait for one job; those that come later are cancelled."""


class Overlap(IntEnum):
    """The behaviour of a slot that meets an earlier one."""

    allow = 0
    """Runs beside the earlier one."""
    skip = 1
    """Is cancelled."""
    queue = 2
    """Waits until the earlier one has ended."""
    replace = 3
    """Replaces the earlier one; a slot that was created late, after a newer one, is cancelled."""


@dataclass(frozen=True, slots=True)
class Row:
    """A live instance of a job. `is_held`: in the parking lane. `is_begun`: tried before."""

    id: int
    fire_time: datetime
    is_held: bool
    is_slot: bool
    is_begun: bool = False


@dataclass(frozen=True, slots=True)
class OverlapDecision:
    """The rows of a job to release, and the rows to cancel with the reason OVERLAP."""

    released: tuple[int, ...] = ()
    cancelled: tuple[int, ...] = ()


def decide(overlap: Overlap, rows: Sequence[Row]) -> OverlapDecision:
    """Decide about the held slots of a job, given all its live rows without a key."""
    at_work = [row for row in rows if not row.is_held]
    held = sorted((row for row in rows if row.is_held and row.is_slot), key=_turn)
    if not held:
        return OverlapDecision()
    match overlap:
        case Overlap.allow:
            return OverlapDecision(released=_ids(held))
        case Overlap.skip:
            released, late = (held[:0], held) if at_work else (held[:1], held[1:])
            return OverlapDecision(_ids(released), _ids(late))
        case Overlap.queue:
            released, waiting = (held[:0], held) if at_work else (held[:1], held[1:])
            return OverlapDecision(_ids(released), _ids(waiting[MOST_QUEUED:]))
        case Overlap.replace:
            *others, newest = sorted((row for row in rows if row.is_slot), key=lambda row: (row.fire_time, row.id))
            is_by_hand = any(not row.is_slot for row in at_work)
            return OverlapDecision((newest.id,) if newest.is_held and not is_by_hand else (), _ids(others))


def _turn(row: Row) -> tuple[bool, datetime, int]:
    """Return the sort key of a row: rows that were begun come first, then the oldest."""
    return not row.is_begun, row.fire_time, row.id


def _ids(rows: Sequence[Row]) -> tuple[int, ...]:
    return tuple(row.id for row in rows)
