"""The scans of this process: which ones it has, when each has due rows, and where each continues.

A scan is the claimer's read of one lane in one shard. Lanes with a handler are claimed in every shard, HTTP lanes only
in the shards that this node has leased. Cursors start where everything earlier has been claimed, so that dead index
entries cost nothing. Only a late commit or a row that was locked can lie behind a cursor: a wake moves the cursor back,
a straggler pass checks the last seconds again, and a sweep checks everything.
"""

from bisect import bisect_right, insort
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import NamedTuple, Protocol, cast

from horai.core.controls import ControlBoard
from horai.core.limits import SHARDS
from horai.db.claim_lanes import Lane
from horai.db.claims import ClaimedRow, Position
from horai.engine.dispatch.in_flight import SlotOwner
from horai.time.wheel import Wheel

START = datetime(1970, 1, 1, tzinfo=UTC)
TICK = timedelta(milliseconds=1)
MICROSECOND = timedelta(microseconds=1)
BEFORE_ALL = -1
HTTP = ""


class Scan(NamedTuple):
    """A lane in a shard."""

    shard: int
    lane: int


ScanQuota = tuple[Scan, int]
"""A scan and how many rows it may give."""


@dataclass(frozen=True, slots=True)
class Reach:
    """The lanes that a process claims from, among those it can run; None means any."""

    tenant_id: int | None = None
    queues: frozenset[str] | None = None

    def covers(self, lane: Lane) -> bool:
        """Return whether the process claims from this lane."""
        return self.tenant_id in {None, lane.tenant_id} and (self.queues is None or lane.queue in self.queues)

    def owner_of(self, lane: Lane) -> SlotOwner:
        """Return the owner of the slots that rows of a lane take."""
        return SlotOwner(lane.handler, lane.tenant_id)


class ClaimReach(Protocol):
    """The lanes that a process claims from, and the owners of the slots that their rows take."""

    def covers(self, lane: Lane) -> bool:
        """Return whether the process claims from this lane."""
        ...

    def owner_of(self, lane: Lane) -> SlotOwner:
        """Return the owner of the slots that rows of a lane take."""
        ...


EVERYWHERE = Reach()


def to_micros(instant: datetime) -> int:
    """Return the microseconds since `START`, the unit of timers."""
    return (instant - START) // MICROSECOND


def from_micros(micros: int) -> datetime:
    """Return the instant of a timer."""
    return START + micros * MICROSECOND


LONGEST_COMING = 64
"""Due times of a scan to remember. Those after them are asked for again."""
LIMIT_MEMORY = timedelta(minutes=10)
"""Time after which a limit that has ended no longer explains the wait of a row."""


class Scans:
    """The claimer's memory of lanes, cursors and timers. The table is the truth, this is a cache."""

    def __init__(
        self,
        handlers: Container[str],
        now: datetime,
        reach: ClaimReach = EVERYWHERE,
        controls: ControlBoard | None = None,
    ) -> None:
        self._handlers = handlers
        self._reach = reach
        self._owner_of = reach.owner_of
        self.controls = controls or ControlBoard()
        self._closed: set[int] = set()
        self.limited_at: dict[int, datetime] = {}
        """When a limit, a pause or a control last kept due rows of a lane from starting."""
        self._shards: frozenset[int] = frozenset()
        self._lanes: dict[int, Lane] = {}
        self._seen: set[int] = set()
        self._pools: set[int] = set()
        self._cursors: dict[Scan, tuple[datetime, int]] = {}
        self._timers: Wheel[Scan] = Wheel(TICK, to_micros(now))
        self._wakes: dict[Scan, tuple[datetime, int]] = {}
        self._coming: dict[Scan, list[datetime]] = {}
        """The next due times of scans, in order, as far as they are known: of claimable rows behind the cursor."""
        self._woken: set[Scan] = set()
        """The scans that were woken since the last look began: its answer may miss a row."""
        self.has_new_limit = False
        """True if a queue or its tenant got its first limit: its running calls were given permits that this process does not know."""
        self.unknown: dict[Scan, None] = {}
        """Scans whose next due time is not known here and has to be queried."""

    def __getitem__(self, lane: int) -> Lane:
        return self._lanes[lane]

    def claims_from(self, lane: int) -> bool:
        """Return whether this process claims from the lane."""
        return lane in self._lanes

    def owner_of(self, lane: int) -> SlotOwner:
        """Return the owner of the slots that rows of a lane take."""
        return self._owner_of(self._lanes[lane])

    def count_tenants(self) -> int:
        """Return how many tenants have lanes that this process claims from."""
        return len({lane.tenant_id for lane in self._lanes.values()})

    def knows(self, lane: int) -> bool:
        """Return whether the lane has been read, runnable here or not. Ids cannot tell: they commit out of order."""
        return lane in self._seen

    def learn(self, lanes: Iterable[Lane]) -> None:
        """Update the lanes, and mark the scans of new or changed lanes as unknown."""
        for lane in lanes:
            self._seen.add(lane.id)
            known = self._lanes.get(lane.id)
            if lane.handler in self._handlers and self._reach.covers(lane) and known != lane:
                self._lanes[lane.id] = lane
                self.mark_unknown(self._of_lane(lane))
                if known is not None and not known.is_limited:
                    self.has_new_limit = self.has_new_limit or lane.is_limited
                if lane.pool_id is not None:
                    self._pools.add(lane.pool_id)

    def is_closed(self, lane_id: int) -> bool:
        """Return whether no instance of the lane may start: its queue is paused, or a control holds its priority."""
        lane = self._lanes[lane_id]
        return lane.limits.paused or self.controls.current.holds(lane.priority, lane.tenant_id)

    def note_opened(self, now: datetime) -> None:
        """Note which lanes were closed until now, after lanes or controls have changed."""
        closed = {lane for lane in self._lanes if self.is_closed(lane)}
        self.limited_at |= dict.fromkeys(self._closed - closed, now)
        for lane in [lane for lane, at in self.limited_at.items() if at < now - LIMIT_MEMORY]:
            del self.limited_at[lane]
        self._closed = closed

    def own(self, shards: frozenset[int]) -> list[Scan]:
        """Claim HTTP in these shards from now on. Forget the scans of lost shards and return them."""
        lost = self._shards - shards
        gained = shards - self._shards
        self._shards = shards
        http = [lane.id for lane in self._lanes.values() if lane.handler == HTTP]
        gone = [Scan(shard, lane) for lane in http for shard in lost]
        for scan in gone:
            self._forget(scan)
        self.mark_unknown(Scan(shard, lane) for lane in http for shard in gained)
        return gone

    def _forget(self, scan: Scan) -> None:
        self._cursors.pop(scan, None)
        self._timers.discard(scan)
        self._coming.pop(scan, None)
        self.unknown.pop(scan, None)

    def is_ours(self, scan: Scan) -> bool:
        """Return whether this process claims from this scan."""
        lane = self._lanes.get(scan.lane)
        return lane is not None and (lane.handler != HTTP or scan.shard in self._shards)

    def _of_lane(self, lane: Lane) -> Iterator[Scan]:
        return (Scan(shard, lane.id) for shard in (self._shards if lane.handler == HTTP else range(SHARDS)))

    def all(self) -> Iterator[Scan]:
        """Return every scan of this process."""
        return (scan for lane in self._lanes.values() for scan in self._of_lane(lane))

    def of_queue(self, queue_id: int) -> Iterator[Scan]:
        """Return this process's scans of a queue."""
        return (scan for lane in self._lanes.values() if lane.queue_id == queue_id for scan in self._of_lane(lane))

    def of_pool(self, pool_id: int) -> Iterator[Scan]:
        """Return this process's scans of the queues that share a pool; none, at no cost, if it is no pool."""
        if pool_id not in self._pools:
            return iter(())
        return (scan for lane in self._lanes.values() if lane.pool_id == pool_id for scan in self._of_lane(lane))

    def is_set_within(self, scan: Scan, latest: datetime) -> bool:
        """Return whether the scan has a timer that goes off by `latest`."""
        known = self._timers.at(scan)
        return known is not None and known <= to_micros(latest)

    def mark_unknown(self, scans: Iterable[Scan]) -> None:
        """Mark the next due times of these scans as unknown."""
        for scan in scans:
            self.unknown[scan] = None
            self._coming.pop(scan, None)

    def forget_coming(self) -> None:
        """Use no due times that were read before: wakes were lost."""
        self._coming.clear()

    def begin_look(self, scans: Iterable[Scan]) -> list[Position]:
        """Return where the scans of a look at their next due times begin."""
        self._woken.clear()
        return [self.position(scan) for scan in scans]

    def expect(self, scan: Scan, coming: list[datetime]) -> None:
        """Note the next due times that a look has found."""
        if scan not in self._woken and scan not in self.unknown:
            self._coming[scan] = coming

    def next_expected(self, scan: Scan) -> datetime | None:
        """Return the next due time behind the cursor; None if it is not known."""
        coming = self._coming.get(scan)
        if not coming:
            return None
        del coming[: bisect_right(coming, self._cursors.get(scan, (START, BEFORE_ALL))[0])]
        return coming[0] if coming else None

    def set_timer(self, scan: Scan, due: datetime) -> bool:
        """Set the scan's timer to `due`, unless it goes off earlier already. Return whether the timer changed."""
        known = self._timers.at(scan)
        micros = to_micros(due)
        if not self.is_ours(scan) or (known is not None and known <= micros):
            return False
        self._timers.put(scan, micros)
        return True

    def wake(self, shard: int | None, lane: int, due: datetime, after: int = BEFORE_ALL) -> bool:
        """Note that a row of this lane, with an id above `after`, is claimable from `due` on.

        Return whether the claimer has to look earlier than planned.
        """
        known = self._lanes.get(lane)
        if known is None:
            return False
        scans = self._of_lane(known) if shard is None else (Scan(shard, lane),)
        is_news = False
        for scan in scans:
            self.back_to(scan, (due, after))
            self._wakes[scan] = min((due, after), self._wakes.get(scan, (due, after)))
            self._woken.add(scan)
            if (coming := self._coming.get(scan)) and due < coming[-1]:
                insort(coming, due)
                del coming[LONGEST_COMING:]
            is_news = self.set_timer(scan, due) or is_news
        return is_news

    def back_to(self, scan: Scan, position: tuple[datetime, int]) -> None:
        """Move the scan's cursor back to `position` if it is past it."""
        cursor = self._cursors.get(scan)
        if cursor is not None and cursor > position:
            self._cursors[scan] = position

    def next_at(self) -> datetime | None:
        """Return when the earliest timer goes off."""
        earliest = self._timers.next_at()
        return None if earliest is None else from_micros(earliest)

    def take_due(self, now: datetime) -> list[Scan]:
        """Return the scans that are due now and clear their timers."""
        return list(self._timers.advance(to_micros(now)))

    def position(self, scan: Scan) -> Position:
        """Return where the scan continues."""
        due, after = self._cursors.get(scan, (START, BEFORE_ALL))
        return Position(scan.shard, scan.lane, due, after)

    def starts(self, scans: Iterable[Scan]) -> list[Position]:
        """Return where the scans of a claim that begins now continue."""
        self._wakes.clear()
        return [self.position(scan) for scan in scans]

    def advance(self, claimed: Iterable[ClaimedRow]) -> dict[Scan, int]:
        """Move the cursors behind the claimed rows. Return how many rows each scan gave.

        A claim may not have seen a row whose wake arrived while it was under way: no cursor passes over such a row.
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
        self._stay_before_wakes()
        return cast("dict[Scan, int]", found)

    def pass_over(self, scan: Scan, position: tuple[datetime, int]) -> None:
        """Move the scan's cursor behind rows that may not run now, as found by a read that began with `starts`."""
        self._cursors[scan] = max(self._cursors.get(scan, position), position)
        self._stay_before_wakes()

    def _stay_before_wakes(self) -> None:
        for scan, position in self._wakes.items():
            self.back_to(scan, position)
