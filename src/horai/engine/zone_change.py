"""Recomputation of the schedules of a node's shards by the zone rules of this node.

Rules change with the package `tzdata`, and so only with the start of a process; the nodes of a cluster may differ
during a deployment. A node that takes shards therefore looks for cursors that were computed by other rules. The trigger
does not make a slot of such a cursor before it is recomputed. It is harmless if several nodes do this at once, or in
turns with different rules: a cursor is guarded as in the trigger, and its mark prevents a repeated slot.
"""

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta

import structlog

from horai.core.timing import Rhythm
from horai.db import zone_change
from horai.db.pool import Platform
from horai.db.zone_change import Move, StaleSchedule
from horai.time.zone_change import recomputed
from horai.time.zones import version

log = structlog.get_logger(__name__)

PORTION = 10_000
"""Schedules that one step reads: a few milliseconds."""
BATCH = 500
"""Stale schedules that one step recomputes."""
PORTION_PAUSE = timedelta(milliseconds=20)
"""The pause after a portion without a stale schedule: the pass leaves the processor to the first fires of a node."""
HELD_PAUSE = timedelta(seconds=1)
"""The pause after a pass that met locked rows."""


class ZoneChange:
    """A pass over the schedules of some shards, one portion per step: a table of millions delays no fire."""

    def __init__(self) -> None:
        self.next_at: datetime | None = None
        """The time of the next step; None when every schedule is computed by this node's rules."""
        self._behind = 0
        self._is_anything_held = False
        self._moved = 0

    def begin(self, now: datetime) -> None:
        """Start a pass over all schedules: shards have been taken."""
        self.next_at = now
        self._behind, self._is_anything_held, self._moved = 0, False, 0

    async def step(self, connection: Platform, shards: Collection[int], now: datetime) -> dict[int, datetime]:
        """Read one portion and recompute a batch if the step is due. Return the next fire of each schedule that has moved."""
        if self.next_at is None or now < self.next_at:
            return {}
        last, found = await zone_change.stale_schedules(connection, self._behind, shards, PORTION)
        ids = found[:BATCH]
        moves = list[Move]()
        if ids:
            async with connection.transaction():
                stale = await zone_change.lock_stale_schedules(connection, ids)
                moves = await _move(connection, stale)
            self._is_anything_held |= len(stale) < len(ids)
        moved = _places([move for move in moves if move.next_fire != move.cursor.fire_time])
        self._moved += len(moved)
        behind = last if len(found) <= BATCH else ids[-1]
        if behind is None:
            self._end(now)
        else:
            self._behind = behind
            self.next_at = now if ids else now + PORTION_PAUSE
        return moved

    def _end(self, now: datetime) -> None:
        if self._moved:
            log.info("schedules follow other zone rules", tzdata=version(), moved=self._moved)
        is_anything_held = self._is_anything_held
        self.begin(now + HELD_PAUSE)
        if not is_anything_held:
            self.next_at = None


async def rezone_now(connection: Platform, ids: Sequence[int]) -> dict[int, datetime]:
    """Recompute schedules that the caller has locked. Return the next fire of each one that fires again."""
    return _places(await _move(connection, await zone_change.lock_stale_schedules(connection, ids)))


async def _move(connection: Platform, stale: Sequence[StaleSchedule]) -> list[Move]:
    """Write the recomputed cursors. Return those that were written."""
    moves = [move for each in stale if (move := _recomputed(each)) is not None]
    done = await zone_change.rezone_schedules(connection, moves) if moves else set[int]()
    return [move for move in moves if move.cursor.schedule_id in done]


def _recomputed(stale: StaleSchedule) -> Move | None:
    """Return the recomputed cursor, or None for a schedule that cannot be read here, which stays as it is.

    A schedule cannot be read if, for example, these rules lack its zone.
    """
    try:
        schedule = Rhythm.from_spec(stale.spec).schedule
        return Move(stale.cursor, recomputed(schedule, stale.cursor.fire_time, stale.mark))
    except ValueError as error:
        log.warning(
            "schedule could not be recomputed", schedule=stale.cursor.schedule_id, error=str(error), tzdata=version()
        )
        return None


def _places(moves: Sequence[Move]) -> dict[int, datetime]:
    return {move.cursor.schedule_id: move.next_fire for move in moves if move.next_fire is not None}
