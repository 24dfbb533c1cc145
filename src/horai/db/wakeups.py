"""Wakes: hints to this process, and through the notifier to the others, that there is or will be work.

A wake is a hint, never a promise: the row is the truth, and the sweep finds work that no wake announced. Send a wake
after the commit of the change that it announces, from the thread of the event loop. Listeners in this process are
called at once and only record the wake; other processes receive it a little later, or never.
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
    """Yield one wake per (shard, lane) with its earliest due time; one for the whole lane above `ENTRIES` shards."""
    rows = list(woken)
    if len(rows) == 1:  # the common case: one row per request
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
    """The bus that passes each kind of wake to its listeners."""

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
        self._notifiers: list[Callable[[Wake], None]] = []

    def listen(self, listener: LaneListener) -> None:
        """Call `listener` with (shard or None for any, lane, due) for every wake of a lane."""
        self._lanes.append(listener)

    def listen_to_schedules(self, listener: ScheduleListener) -> None:
        """Call `listener` with (schedule id, fire time) for every new or woken schedule."""
        self._schedules.append(listener)

    def listen_to_outcomes(self, listener: OutcomeListener) -> None:
        """Call `listener` with (instance id, fence) for every claim that was ended from outside."""
        self._outcomes.append(listener)

    def listen_to_queues(self, listener: QueueListener) -> None:
        """Call `listener` with the id of every queue that may admit more than before."""
        self._queues.append(listener)

    def listen_to_gates(self, listener: GateListener) -> None:
        """Call `listener` with the ids of jobs whose held slots may need a decision."""
        self._gates.append(listener)

    def listen_to_runs(self, listener: RunListener) -> None:
        """Call `listener` with the ids of instances whose end or replay a workflow run may wait for."""
        self._runs.append(listener)

    def listen_to_relanes(self, listener: PlainListener) -> None:
        """Call `listener` when waiting rows have to be moved to other lanes."""
        self._relanes.append(listener)

    def listen_to_catchups(self, listener: PlainListener) -> None:
        """Call `listener` when a job has late slots to create."""
        self._catchups.append(listener)

    def listen_to_nodes(self, listener: PlainListener) -> None:
        """Call `listener` when a node starts or stops."""
        self._nodes.append(listener)

    def listen_to_everything(self, listener: PlainListener) -> None:
        """Call `listener` when wakes were lost or too many to list: of lanes, schedules, queues or any other kind."""
        self._everything.append(listener)

    def pass_on_to(self, notifier: Callable[[Wake], None]) -> None:
        """Call `notifier` with every wake that this process sends, not with those that it receives from others."""
        self._notifiers.append(notifier)

    def announce(self, woken: Iterable[Claimable]) -> None:
        """Announce rows that became claimable."""
        for wake in lane_wakes(woken):
            self.send(wake)

    def wake(self, lane: int, due: datetime, shard: int | None = None) -> None:
        """Wake one lane, in any shard unless `shard` is given."""
        self.send(LaneWake(shard, lane, due))

    def wake_schedule(self, schedule_id: int, fire_time: datetime) -> None:
        """Announce the next fire time of a schedule."""
        self.send(ScheduleWake(schedule_id, fire_time))

    def claim_ended(self, instance_id: int, fence: int) -> None:
        """Tell the node that holds a claim that it was ended from outside."""
        self.send(OutcomeWake(instance_id, fence))

    def queue_changed(self, queue_id: int) -> None:
        """Announce that a queue has other limits, was paused or resumed, or has a free permit."""
        self.send(QueueWake(queue_id))

    def gates_asked(self, job_ids: Iterable[int]) -> None:
        """Announce, only in this process, that a run of these jobs has ended or one of their slots is held."""
        for listener in self._gates:
            listener(job_ids)

    def runs_asked(self, instance_ids: Iterable[int]) -> None:
        """Announce, only in this process, that these instances have ended, were replayed, or have started a run."""
        for listener in self._runs:
            listener(instance_ids)

    def relane_asked(self) -> None:
        """Announce that waiting rows of a job have to be moved."""
        self.send(MoveWaitingWake())

    def catchups_asked(self) -> None:
        """Announce that a job has late slots. Only the catch-up stage listens."""
        self.send(CatchupWake())

    def nodes_changed(self) -> None:
        """Announce that a node has started or stopped."""
        self.send(NodesWake())

    def rescan_all(self) -> None:
        """Make every process scan for all kinds of work."""
        self.send(EverywhereWake())

    def send(self, wake: Wake) -> None:
        """Send a wake to the listeners of this process, and through the notifier to the others."""
        if isinstance(wake, LaneWake) and not wake.lane:
            return  # no process claims from the parking lane
        self.hear(wake)
        for notifier in self._notifiers:
            notifier(wake)

    def hear(self, wake: Wake) -> None:
        """Send a wake only to the listeners of this process."""
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
    """A bus that keeps the wakes of a transaction; `release` sends them after its commit."""

    def __init__(self, receiver: Wakeups) -> None:
        super().__init__()
        self._held: list[Callable[[], None]] = []
        self._receiver = receiver

    def gates_asked(self, job_ids: Iterable[int]) -> None:
        """Keep the announcement until `release`."""
        known = tuple(job_ids)
        self._held.append(lambda: self._receiver.gates_asked(known))

    def runs_asked(self, instance_ids: Iterable[int]) -> None:
        """Keep the announcement until `release`."""
        known = tuple(instance_ids)
        self._held.append(lambda: self._receiver.runs_asked(known))

    def send(self, wake: Wake) -> None:
        """Keep the wake until `release`."""
        self._held.append(lambda: self._receiver.send(wake))

    def release(self) -> None:
        """Send all kept wakes, in order."""
        for tell in self._held:
            tell()
        self._held.clear()
