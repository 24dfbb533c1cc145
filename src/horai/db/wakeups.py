"""Tells this process, and through the herald the others, that there is or will be something to do.

A wake is a hint, never a promise: the row is the truth and the sweep finds what no wake announced. Wakes are sent
after the commit of what they announce, from the event loop's own thread. Whoever listens here is told at once and only
takes note; the others hear a little later, or never.
"""

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import assert_never

from horai.core.settings import SHARDS
from horai.core.wakes import (
    ENTRIES,
    CatchupWake,
    EverywhereWake,
    LaneWake,
    MoveWaitingWake,
    NodesWake,
    OutcomeWake,
    QueueWake,
    ScheduleWake,
    Wake,
)
from horai.db.claims import Claimable

LaneListener = Callable[[int | None, int, datetime], None]
ScheduleListener = Callable[[int, datetime], None]
OutcomeListener = Callable[[int, int], None]
QueueListener = Callable[[int], None]
GateListener = Callable[[Iterable[int]], None]
RunListener = Callable[[Iterable[int]], None]
PlainListener = Callable[[], None]


def lane_wakes(woken: Iterable[Claimable]) -> Iterator[LaneWake]:
    """One wake per (shard, lane) for its earliest due; one for the whole lane where many of its shards have something."""
    rows = list(woken)
    if len(rows) == 1:  # most are, one for each request
        yield LaneWake(rows[0].id % SHARDS, rows[0].lane, rows[0].due)
        return
    lanes: dict[int, dict[int, datetime]] = {}
    for row in rows:
        places = lanes.setdefault(row.lane, {})
        shard = row.id % SHARDS
        places[shard] = min(row.due, places.get(shard, row.due))
    for lane, places in lanes.items():
        if len(places) > ENTRIES:
            yield LaneWake(None, lane, min(places.values()))
        else:
            yield from (LaneWake(shard, lane, due) for shard, due in places.items())


class Wakeups:
    """Passes each kind of wake to those who listen to it."""

    def __init__(self) -> None:
        self._lanes: list[LaneListener] = []
        self._schedules: list[ScheduleListener] = []
        self._outcomes: list[OutcomeListener] = []
        self._queues: list[QueueListener] = []
        self._gates: list[GateListener] = []
        self._runs: list[RunListener] = []
        self._relanes: list[PlainListener] = []
        self._catchups: list[PlainListener] = []
        self._nodes: list[PlainListener] = []
        self._nameless = {MoveWaitingWake: self._relanes, CatchupWake: self._catchups, NodesWake: self._nodes}
        self._everything: list[PlainListener] = []
        self._heralds: list[Callable[[Wake], None]] = []

    def listen(self, listener: LaneListener) -> None:
        """From now on `listener` hears of every lane: (shard or None for any, lane, due)."""
        self._lanes.append(listener)

    def listen_to_schedules(self, listener: ScheduleListener) -> None:
        """From now on `listener` hears of every new or woken schedule."""
        self._schedules.append(listener)

    def listen_to_outcomes(self, listener: OutcomeListener) -> None:
        """From now on `listener` hears of every claim that was ended from outside: (instance id, fence)."""
        self._outcomes.append(listener)

    def listen_to_queues(self, listener: QueueListener) -> None:
        """From now on `listener` hears of every queue that may let more through than before."""
        self._queues.append(listener)

    def listen_to_gates(self, listener: GateListener) -> None:
        """From now on `listener` hears of jobs whose held slots may have to be decided on."""
        self._gates.append(listener)

    def listen_to_runs(self, listener: RunListener) -> None:
        """From now on `listener` hears of instances whose end or replay a run of a workflow may wait for."""
        self._runs.append(listener)

    def listen_to_relanes(self, listener: PlainListener) -> None:
        """From now on `listener` hears when rows have to be moved to other lanes."""
        self._relanes.append(listener)

    def listen_to_catchups(self, listener: PlainListener) -> None:
        """From now on `listener` hears when a job has late slots to be made."""
        self._catchups.append(listener)

    def listen_to_nodes(self, listener: PlainListener) -> None:
        """From now on `listener` hears when a node comes or goes."""
        self._nodes.append(listener)

    def listen_to_everything(self, listener: PlainListener) -> None:
        """From now on `listener` hears when wakes were lost or too many to name: lanes, schedules, queues, whatever."""
        self._everything.append(listener)

    def pass_on_to(self, herald: Callable[[Wake], None]) -> None:
        """From now on `notifier` is told of what this process sends, not of what it hears from others."""
        self._heralds.append(herald)

    def announce(self, woken: Iterable[Claimable]) -> None:
        """Tells of rows that became claimable."""
        for wake in lane_wakes(woken):
            self.send(wake)

    def wake(self, lane: int, due: datetime, shard: int | None = None) -> None:
        """Tells of one lane, in any shard unless one is named."""
        self.send(LaneWake(shard, lane, due))

    def wake_schedule(self, schedule_id: int, fire_time: datetime) -> None:
        """Tells of a schedule's coming fire."""
        self.send(ScheduleWake(schedule_id, fire_time))

    def claim_ended(self, instance_id: int, fence: int) -> None:
        """Tells the holder of a claim that it was ended from outside."""
        self.send(OutcomeWake(instance_id, fence))

    def queue_changed(self, queue_id: int) -> None:
        """Tells that a queue has other limits, is paused or resumed, or has a free slot."""
        self.send(QueueWake(queue_id))

    def gates_asked(self, job_ids: Iterable[int]) -> None:
        """Tells, in this process alone, that a run of these jobs has ended or a slot of theirs is held."""
        for listener in self._gates:
            listener(job_ids)

    def runs_asked(self, instance_ids: Iterable[int]) -> None:
        """Tells, in this process alone, that these instances have ended, were replayed, or have started a run."""
        for listener in self._runs:
            listener(instance_ids)

    def relane_asked(self) -> None:
        """Tells that a job's rows have to be moved."""
        self.send(MoveWaitingWake())

    def catchups_asked(self) -> None:
        """Tells that a job has late slots: only who makes them has to look."""
        self.send(CatchupWake())

    def nodes_changed(self) -> None:
        """Tells that a node has come or gone."""
        self.send(NodesWake())

    def rescan_all(self) -> None:
        """Tells that anything may be there to do, in every process."""
        self.send(EverywhereWake())

    def send(self, wake: Wake) -> None:
        """Tell those who listen in this process, and through the herald the others."""
        if isinstance(wake, LaneWake) and not wake.lane:
            return  # the parking lane concerns nobody
        self.hear(wake)
        for herald in self._heralds:
            herald(wake)

    def hear(self, wake: Wake) -> None:
        """Tells those who listen in this process, and nobody else."""
        match wake:
            case LaneWake(shard, lane, due):
                for listener in self._lanes:
                    listener(shard, lane, due)
            case ScheduleWake(schedule_id, fire_time):
                for listener in self._schedules:
                    listener(schedule_id, fire_time)
            case OutcomeWake(instance_id, fence):
                for listener in self._outcomes:
                    listener(instance_id, fence)
            case QueueWake(queue_id):
                for listener in self._queues:
                    listener(queue_id)
            case MoveWaitingWake() | CatchupWake() | NodesWake():
                _call(self._nameless[type(wake)])
            case EverywhereWake():
                _call((*self._everything, *self._relanes, *self._catchups, *self._nodes))
            case _:
                assert_never(wake)


def _call(listeners: Iterable[PlainListener]) -> None:
    for listener in listeners:
        listener()


class HeldWakeups(Wakeups):
    """Keeps the wakes of a transaction until `release`, which sends them after its commit."""

    def __init__(self, receiver: Wakeups) -> None:
        super().__init__()
        self._held: list[Callable[[], None]] = []
        self._receiver = receiver

    def gates_asked(self, job_ids: Iterable[int]) -> None:
        """Keep it, to be told after the commit."""
        known = tuple(job_ids)
        self._held.append(lambda: self._receiver.gates_asked(known))

    def runs_asked(self, instance_ids: Iterable[int]) -> None:
        """Keep it, to be told after the commit."""
        known = tuple(instance_ids)
        self._held.append(lambda: self._receiver.runs_asked(known))

    def send(self, wake: Wake) -> None:
        """Keep it, to be sent after the commit."""
        self._held.append(lambda: self._receiver.send(wake))

    def release(self) -> None:
        """Send all that was kept, in its order."""
        for tell in self._held:
            tell()
        self._held.clear()
