"""Which scans are this process's, when each has something due, and where each goes on.

A place is a lane in a shard: one scan of the claimer. Lanes with a handler are claimed in every shard, those of HTTP in
the shards that this node has leased. Cursors start where everything earlier has been claimed, so that dead index entries
cost nothing. Only a late commit or a row that was locked can lie behind one: a wake moves it back, a straggler pass
looks again over the last seconds, a sweep over everything.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import NamedTuple, cast

from horai.core.settings import SHARDS
from horai.db.claims import ClaimedRow, Position
from horai.db.jobs import Lane
from horai.time.wheel import Wheel

START = datetime(1970, 1, 1, tzinfo=UTC)
TICK = timedelta(milliseconds=1)
BEFORE_ALL = -1
HTTP = ""


class Scan(NamedTuple):
    """A lane in a shard."""

    shard: int
    lane: int


@dataclass(frozen=True, slots=True)
class Reach:
    """Which lanes are a process's to claim from, of those it can run: None for any."""

    tenant_id: int | None = None
    queues: frozenset[str] | None = None

    def covers(self, lane: Lane) -> bool:
        """Whether it claims here."""
        return self.tenant_id in {None, lane.tenant_id} and (self.queues is None or lane.queue in self.queues)


EVERYWHERE = Reach()


def to_millis(instant: datetime) -> int:
    """Whole milliseconds, rounded up: a timer set by it does not go off early."""
    return math.ceil((instant - START) / TICK)


class Scans:
    """The claimer's memory; nothing here is the truth."""

    def __init__(self, handlers: frozenset[str], now: datetime, reach: Reach = EVERYWHERE) -> None:
        self._handlers = handlers
        self._reach = reach
        self._shards: frozenset[int] = frozenset()
        self._lanes: dict[int, Lane] = {}
        self._seen: set[int] = set()
        self._cursors: dict[Scan, tuple[datetime, int]] = {}
        self._timers: Wheel[Scan] = Wheel(TICK, to_millis(now))
        self._woken: dict[Scan, tuple[datetime, int]] = {}
        self.has_new_limit = False
        """Whether a queue has got its first limit: what runs of it has been given slots that nobody here knows of."""
        self.unknown: dict[Scan, None] = {}
        """Places whose next due nobody here knows: it has to be asked for."""

    def __getitem__(self, lane: int) -> Lane:
        return self._lanes[lane]

    def handler_of(self, lane: int) -> str:
        """What runs the rows of a lane."""
        return self._lanes[lane].handler

    def knows(self, lane: int) -> bool:
        """Whether it has been read, runnable here or not. Not by its number: ids commit out of order."""
        return lane in self._seen

    def learn(self, lanes: Iterable[Lane]) -> None:
        """Takes note of lanes as they are now; the places of those that are new or changed are unknown ground."""
        for lane in lanes:
            self._seen.add(lane.id)
            known = self._lanes.get(lane.id)
            if lane.handler in self._handlers and self._reach.covers(lane) and known != lane:
                self._lanes[lane.id] = lane
                self.ask(self._places_of(lane))
                if known is not None and known.limits.max_concurrency is None:
                    self.has_new_limit = self.has_new_limit or lane.limits.max_concurrency is not None

    def own(self, shards: frozenset[int]) -> list[Scan]:
        """HTTP is claimed in these shards from now on. Those that were lost are forgotten and returned."""
        lost = self._shards - shards
        gained = shards - self._shards
        self._shards = shards
        http = [lane.id for lane in self._lanes.values() if lane.handler == HTTP]
        gone = [Scan(shard, lane) for lane in http for shard in lost]
        for place in gone:
            self._forget(place)
        self.ask(Scan(shard, lane) for lane in http for shard in gained)
        return gone

    def _forget(self, place: Scan) -> None:
        self._cursors.pop(place, None)
        self._timers.discard(place)
        self.unknown.pop(place, None)

    def is_ours(self, place: Scan) -> bool:
        """Whether this process claims here."""
        lane = self._lanes.get(place.lane)
        return lane is not None and (lane.handler != HTTP or place.shard in self._shards)

    def _places_of(self, lane: Lane) -> Iterator[Scan]:
        return (Scan(shard, lane.id) for shard in (self._shards if lane.handler == HTTP else range(SHARDS)))

    def places(self) -> Iterator[Scan]:
        """Every place that is ours."""
        return (place for lane in self._lanes.values() for place in self._places_of(lane))

    def places_of_queue(self, queue_id: int) -> Iterator[Scan]:
        """Our places of a queue."""
        return (place for lane in self._lanes.values() if lane.queue_id == queue_id for place in self._places_of(lane))

    def ask(self, places: Iterable[Scan]) -> None:
        """Nobody knows when these have something next."""
        self.unknown |= dict.fromkeys(places)

    def arm(self, place: Scan, due: datetime) -> bool:
        """Looks at the place at `due`, or earlier if it was going to anyway; whether this is news."""
        known = self._timers.at(place)
        millis = to_millis(due)
        if not self.is_ours(place) or (known is not None and known <= millis):
            return False
        self._timers.put(place, millis)
        return True

    def wake(self, shard: int | None, lane: int, due: datetime, after: int = BEFORE_ALL) -> bool:
        """A row of this lane, with an id above `after`, is claimable from `due` on.

        Tells whether the claimer has to look earlier than it would.
        """
        known = self._lanes.get(lane)
        if known is None:
            return False
        places = self._places_of(known) if shard is None else (Scan(shard, lane),)
        is_news = False
        for place in places:
            self.back_to(place, (due, after))
            self._woken[place] = min((due, after), self._woken.get(place, (due, after)))
            is_news = self.arm(place, due) or is_news
        return is_news

    def back_to(self, place: Scan, position: tuple[datetime, int]) -> None:
        """The scan of this place goes on after `position` again, if it is already past it."""
        cursor = self._cursors.get(place)
        if cursor is not None and cursor > position:
            self._cursors[place] = position

    def next_at(self) -> datetime | None:
        """When the earliest timer goes off."""
        earliest = self._timers.next_at()
        return None if earliest is None else START + earliest * TICK

    def take_due(self, now: datetime) -> list[Scan]:
        """The places to look at now; each has to be armed again afterwards."""
        return list(self._timers.advance(to_millis(now)))

    def position(self, place: Scan) -> Position:
        """Where the scan of a place goes on."""
        due, after = self._cursors.get(place, (START, BEFORE_ALL))
        return Position(place.shard, place.lane, due, after)

    def starts(self, places: Iterable[Scan]) -> list[Position]:
        """Where the scans of a claim that begins now go on."""
        self._woken.clear()
        return [self.position(place) for place in places]

    def advance(self, claimed: Iterable[ClaimedRow]) -> dict[Scan, int]:
        """Moves the cursors behind what was claimed; how many rows each place gave.

        A row whose wake came while the claim was under way may not have been seen by it: no cursor passes over that.
        """
        found: dict[tuple[int, int], int] = {}
        cursors = cast("dict[tuple[int, int], tuple[datetime, int]]", self._cursors)  # a plain tuple is made faster
        for row in claimed:
            row_id = row[0][0]
            place = (row_id % SHARDS, row[1])
            reached = (row[2], row_id)
            if place in found:
                found[place] += 1
                cursors[place] = max(cursors[place], reached)
            else:
                found[place] = 1
                cursors[place] = max(cursors.get(place, reached), reached)
        for woken, position in self._woken.items():
            self.back_to(woken, position)
        return cast("dict[Scan, int]", found)
