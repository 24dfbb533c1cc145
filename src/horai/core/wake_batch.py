"""The wakes that leave in one notification: each by name while they are few, more broadly when they are many."""

from collections.abc import Sequence
from datetime import datetime

from horai.core.wakes import (
    ENTRIES,
    AlertsWake,
    AssetsWake,
    AuditWake,
    CatchupWake,
    DataKeysWake,
    EventsWake,
    EverywhereWake,
    ExpiriesWake,
    KeysWake,
    LaneWake,
    MoveWaitingWake,
    NodesWake,
    OutcomeWake,
    ParkedKeysWake,
    QueueWake,
    ScheduleWake,
    Wake,
)

OUTCOMES_KEPT = 1_000
"""Ended claims that wait for room in a payload; holders of further claims learn of the end from their own sweeps."""

_EVERYWHERE = EverywhereWake()


class WakeBatch:
    """The wakes of one interval, each sent once and for its earliest time."""

    def __init__(self) -> None:
        self.wakes = 0
        self.outcomes_dropped = 0
        self._lanes: dict[int, dict[int | None, datetime]] = {}
        self._schedules: dict[int, datetime] = {}
        self._others: dict[Wake, None] = {}
        self._outcomes: dict[OutcomeWake, None] = {}

    @property
    def is_empty(self) -> bool:
        """Return whether there is nothing to send."""
        return not (self._lanes or self._schedules or self._others or self._outcomes)

    def add(self, wake: Wake) -> None:
        """Add a wake; the number of remembered wakes is bounded."""
        self.wakes += 1
        match wake:
            case LaneWake(shard, lane, due):
                self._add_lane(shard, lane, due)
            case ScheduleWake(schedule_id, fire_time):
                self._schedules[schedule_id] = min(fire_time, self._schedules.get(schedule_id, fire_time))
            case OutcomeWake():
                self._add_outcome(wake)
                return
            case (
                QueueWake()
                | MoveWaitingWake()
                | CatchupWake()
                | NodesWake()
                | KeysWake()
                | DataKeysWake()
                | AuditWake()
                | EventsWake()
                | AlertsWake()
                | ParkedKeysWake()
                | AssetsWake()
                | ExpiriesWake()
                | EverywhereWake()
            ):
                self._others[wake] = None
        if _EVERYWHERE in self._others or self._names() > ENTRIES:
            self._lanes.clear()
            self._schedules.clear()
            self._others = {_EVERYWHERE: None}

    def _names(self) -> int:
        return len(self._lanes) + len(self._schedules) + len(self._others)

    def _add_lane(self, shard: int | None, lane: int, due: datetime) -> None:
        places = self._lanes.setdefault(lane, {})
        if shard is None or None in places:
            self._lanes[lane] = {None: min(due, *places.values())} if places else {None: due}
        else:
            places[shard] = min(due, places.get(shard, due))

    def _add_outcome(self, wake: OutcomeWake) -> None:
        """Add an outcome, which cannot be broadened.

        It waits for room in a payload; beyond the limit, its holder waits for a sweep.
        """
        if len(self._outcomes) < OUTCOMES_KEPT:
            self._outcomes[wake] = None
        else:
            self.outcomes_dropped += 1

    def take(self) -> list[Wake]:
        """Take the wakes of one payload. Only outcomes are left for the next."""
        room = ENTRIES - min(len(self._outcomes), ENTRIES // 2)
        looks = self._looks(room)
        told = list(self._outcomes)[: ENTRIES - len(looks)]
        for outcome in told:
            del self._outcomes[outcome]
        self._lanes, self._schedules, self._others, self.wakes = {}, {}, {}, len(self._outcomes)
        return [*looks, *told]

    def _looks(self, room: int) -> Sequence[Wake]:
        """Return everything but outcomes: by shard and lane, else by lane, else as one wake."""
        rest = [ScheduleWake(*each) for each in self._schedules.items()] + list(self._others)
        exact = [LaneWake(shard, lane, due) for lane, places in self._lanes.items() for shard, due in places.items()]
        if len(exact) + len(rest) <= room:
            return [*exact, *rest]
        whole = [LaneWake(None, lane, min(places.values())) for lane, places in self._lanes.items()]
        if len(whole) + len(rest) <= room:
            return [*whole, *rest]
        return [_EVERYWHERE]
