"""Which lanes this process can run, when each has something due, and where the scan of each goes on.

Cursors start where everything earlier has been claimed, so that dead index entries cost nothing. Only a late commit or
a row that was locked can lie behind one: a wake moves it back, a straggler pass looks again over the last seconds, a
sweep over everything.
"""

import math
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from horai.core.definition import Priority
from horai.core.wheel import Wheel
from horai.db.claims import Claimed, Position
from horai.db.jobs import Lane

START = datetime(1970, 1, 1, tzinfo=UTC)
TICK = timedelta(milliseconds=1)
BEFORE_ALL = -1


def to_millis(instant: datetime) -> int:
    """Whole milliseconds, rounded up: a timer set by it does not go off early."""
    return math.ceil((instant - START) / TICK)


class Lanes:
    """The claimer's memory; nothing here is the truth."""

    def __init__(self, shards: Iterable[int], handlers: frozenset[str], now: datetime) -> None:
        self._shards = tuple(shards)
        self._handlers = handlers
        self._lanes: dict[int, Lane] = {}
        self._seen: set[int] = set()
        self._cursors: dict[tuple[int, int], tuple[datetime, int]] = {}
        self._timers: Wheel[int] = Wheel(TICK, to_millis(now))

    def knows(self, lane: int) -> bool:
        """Whether it has been read, runnable here or not. Not by its number: ids commit out of order."""
        return lane in self._seen

    def learn(self, lanes: Iterable[Lane], now: datetime) -> None:
        """Takes note of lanes; those that can be run here are looked at once."""
        for lane in lanes:
            if lane.id not in self._seen:
                self._seen.add(lane.id)
                if lane.handler in self._handlers:
                    self._lanes[lane.id] = lane
                    self.arm(lane.id, now)

    def arm(self, lane: int, due: datetime) -> bool:
        """Looks at the lane at `due`, or earlier if it was going to anyway; whether this is news."""
        known = self._timers.at(lane)
        if lane not in self._lanes or (known is not None and known <= to_millis(due)):
            return False
        self._timers.put(lane, to_millis(due))
        return True

    def wake(self, lane: int, due: datetime) -> bool:
        """A row of this lane is claimable from `due` on; whether the claimer has to look earlier than it would."""
        self._back_to(lane, due)
        return self.arm(lane, due)

    def back_to_all(self, moment: datetime, now: datetime) -> None:
        """Every scan starts again at `moment`, now."""
        for lane in self._lanes:
            self._back_to(lane, moment)
            self.arm(lane, now)

    def _back_to(self, lane: int, moment: datetime) -> None:
        for shard in self._shards:
            cursor = self._cursors.get((shard, lane))
            if cursor is not None and cursor[0] >= moment:
                self._cursors[shard, lane] = (moment, BEFORE_ALL)

    def next_at(self) -> datetime | None:
        """When the earliest timer goes off."""
        earliest = self._timers.next_at()
        return None if earliest is None else START + earliest * TICK

    def take_due(self, now: datetime) -> list[list[int]]:
        """Hands out the lanes to look at now, the most urgent priority first; each has to be armed again afterwards."""
        bands: dict[Priority, list[int]] = {}
        for lane in self._timers.advance(to_millis(now)):
            bands.setdefault(self._lanes[lane].priority, []).append(lane)
        return [bands[priority] for priority in sorted(bands)]

    def positions(self, lanes: Iterable[int]) -> list[Position]:
        """Where the scans of these lanes go on."""
        return [self.position(shard, lane) for lane in lanes for shard in self._shards]

    def position(self, shard: int, lane: int) -> Position:
        """Where one scan goes on."""
        return Position(shard, lane, *self._cursors.get((shard, lane), (START, BEFORE_ALL)))

    def advance(self, claimed: Iterable[Claimed]) -> None:
        """Moves the cursors behind what was claimed."""
        for row in claimed:
            place = (row.shard, row.lane)
            self._cursors[place] = max(self._cursors.get(place, (START, BEFORE_ALL)), (row.due, row.held.id))
