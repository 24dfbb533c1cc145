"""What becomes of a slot that comes while its job is still at work.

Every slot of a job that does not `allow` overlap is born held back, in the parking lane, and one decision over all its
rows lets it go or ends it. Only slots are decided on; whatever else the job has under way without a key (a run started
by hand) is work that slots yield to and never replace.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import IntEnum

MOST_QUEUED = 1_000
"""So many slots may wait for one job; those that come later are cancelled."""


class Overlap(IntEnum):
    """What a slot does when it meets an earlier one."""

    allow = 0
    """Runs beside it."""
    skip = 1
    """Is cancelled."""
    queue = 2
    """Waits until it has ended."""
    replace = 3
    """Takes its place; one that was made late, after a newer one, is cancelled."""


@dataclass(frozen=True, slots=True)
class Row:
    """A live instance of a job. `is_held`: in the parking lane. `is_begun`: it was tried before."""

    id: int
    fire_time: datetime
    is_held: bool
    is_slot: bool
    is_begun: bool = False


@dataclass(frozen=True, slots=True)
class OverlapDecision:
    """Which of a job's rows are let go, and which end with the reason OVERLAP."""

    released: tuple[int, ...] = ()
    cancelled: tuple[int, ...] = ()


def decide(overlap: Overlap, rows: Sequence[Row]) -> OverlapDecision:
    """What becomes of the held slots of a job, given all its live rows without a key."""
    at_work = [row for row in rows if not row.is_held]
    held = sorted((row for row in rows if row.is_held and row.is_slot), key=_turn)
    if not held:
        return OverlapDecision()
    match overlap:
        case Overlap.allow:
            return OverlapDecision(released=_ids(held))
        case Overlap.skip:
            let_go, late = (held[:0], held) if at_work else (held[:1], held[1:])
            return OverlapDecision(_ids(let_go), _ids(late))
        case Overlap.queue:
            let_go, waiting = (held[:0], held) if at_work else (held[:1], held[1:])
            return OverlapDecision(_ids(let_go), _ids(waiting[MOST_QUEUED:]))
        case Overlap.replace:
            *others, newest = sorted((row for row in rows if row.is_slot), key=lambda row: (row.fire_time, row.id))
            is_by_hand = any(not row.is_slot for row in at_work)
            return OverlapDecision((newest.id,) if newest.is_held and not is_by_hand else (), _ids(others))


def _turn(row: Row) -> tuple[bool, datetime, int]:
    """What was begun goes on first, then the oldest."""
    return not row.is_begun, row.fire_time, row.id


def _ids(rows: Sequence[Row]) -> tuple[int, ...]:
    return tuple(row.id for row in rows)
