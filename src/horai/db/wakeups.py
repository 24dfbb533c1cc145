"""Wakes: hints to this process, and through the notifier to the others, that there is or will be work.

A wake is a hint, never a promise: the row is the truth, and the sweep finds work that no wake announced. Send a wake
after the commit of the change that it announces, from the thread of the event loop. Listeners in this process are
called at once and only record the wake; other processes receive it a little later, or never.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from datetime import datetime
from typing import Any, TypeVar

from horai.core.limits import SHARDS
from horai.core.wakes import (
    ENTRIES,
    AlertsWake,
    AssetsWake,
    AuditWake,
    CallsWake,
    CatchupWake,
    EventsWake,
    EverywhereWake,
    ExpiriesWake,
    KeyWake,
    LaneWake,
    LocalWake,
    MoveWaitingWake,
    NodesWake,
    OverlapWake,
    ParkedKeysWake,
    RunsWake,
    Wake,
)
from horai.db.claims import Claimable

W = TypeVar("W", bound=Wake | LocalWake)
_NAMELESS = (
    *(MoveWaitingWake(), CatchupWake(), NodesWake(), AuditWake(), EventsWake(), AlertsWake()),
    *(ParkedKeysWake(), AssetsWake(), ExpiriesWake()),
)
"""The kinds that a wake for everything includes. Listeners of the other kinds need names, so they listen for it too."""


def lane_wakes(claimable: Iterable[Claimable]) -> Iterator[LaneWake]:
    """Yield one wake per (shard, lane) with its earliest due time; one for the whole lane above `ENTRIES` shards."""
    rows = list(claimable)
    if len(rows) == 1:  # the common case: one row per request
        yield LaneWake(rows[0].id % SHARDS, rows[0].lane, rows[0].due)
        return
    lanes: dict[int, dict[int, datetime]] = {}
    for row in rows:
        due_by_shard = lanes.setdefault(row.lane, {})
        shard = row.id % SHARDS
        due_by_shard[shard] = min(row.due, due_by_shard.get(shard, row.due))
    for lane, due_by_shard in lanes.items():
        if len(due_by_shard) > ENTRIES:
            yield LaneWake(None, lane, min(due_by_shard.values()))
        else:
            yield from (LaneWake(shard, lane, due) for shard, due in due_by_shard.items())


class Wakeups:
    """The bus that passes each wake to the listeners of its kind."""

    def __init__(self) -> None:
        self._listeners: defaultdict[type[Wake | LocalWake], list[Callable[[Any], None]]] = defaultdict(list)
        self._notifiers: list[Callable[[Wake], None]] = []
        self.on_made: Callable[[Iterable[int]], None] | None = None
        """Called with the ids of new instances after their commit, if traces are on."""

    def subscribe(self, kind: type[W], listener: Callable[[W], None]) -> None:
        """Call `listener` with every wake of this kind, from this process or from others."""
        self._listeners[kind].append(listener)

    def pass_on_to(self, notifier: Callable[[Wake], None]) -> None:
        """Call `notifier` with every wake that this process publishes, not with those that it receives from others."""
        self._notifiers.append(notifier)

    def announce(self, claimable: Iterable[Claimable]) -> None:
        """Publish the wakes of rows that became claimable."""
        for wake in lane_wakes(claimable):
            self.publish(wake)

    def announce_new(self, made: Collection[Claimable]) -> None:
        """Publish the wakes of new instances, and record their fires if traces are on."""
        self.announce(made)
        if self.on_made is not None:
            self.on_made([row.id for row in made])

    def publish(self, wake: Wake | LocalWake) -> None:
        """Send a wake to the listeners of this process and, unless it is local, through the notifier to the others."""
        if isinstance(wake, LaneWake) and not wake.lane:
            return  # no process claims from the parking lane
        self.deliver(wake)
        if not isinstance(wake, OverlapWake | RunsWake | KeyWake | CallsWake):
            for notifier in self._notifiers:
                notifier(wake)

    def deliver(self, wake: Wake | LocalWake) -> None:
        """Send a wake only to the listeners of this process."""
        for listener in self._listeners[type(wake)]:
            listener(wake)
        if isinstance(wake, EverywhereWake):
            for included in _NAMELESS:
                self.deliver(included)


class HeldWakeups(Wakeups):
    """A bus that keeps the wakes of a transaction; `release` publishes them after its commit."""

    def __init__(self, receiver: Wakeups) -> None:
        super().__init__()
        self._held: list[Wake | LocalWake] = []
        self._made: list[int] = []
        self._receiver = receiver
        if receiver.on_made is not None:
            self.on_made = self._made.extend

    def publish(self, wake: Wake | LocalWake) -> None:
        """Keep the wake until `release`."""
        self._held.append(wake)

    def release(self) -> None:
        """Publish all kept wakes, in order, and record the fires of new instances."""
        for wake in self._held:
            self._receiver.publish(wake)
        self._held.clear()
        if self._made and self._receiver.on_made is not None:
            self._receiver.on_made(self._made)
        self._made.clear()
