"""Tells the claimers of this process that a lane has, or will have, something due.

A wake is a hint, never a promise: the row is the truth and the sweep finds what no wake announced. Wakes are sent
after the commit of what they announce.
"""

from collections.abc import Callable, Iterable
from datetime import datetime

from horai.db.claims import Woken

Listener = Callable[[int, datetime], None]


class Wakeups:
    """Passes (lane, due) to whoever listens."""

    def __init__(self) -> None:
        self._listeners: list[Listener] = []
        self._schedule_listeners: list[Listener] = []
        self._outcome_listeners: list[Callable[[int, int], None]] = []

    def listen(self, listener: Listener) -> None:
        """From now on `listener` hears of every lane."""
        self._listeners.append(listener)

    def listen_to_schedules(self, listener: Listener) -> None:
        """From now on `listener` hears of every new or woken schedule."""
        self._schedule_listeners.append(listener)

    def listen_to_outcomes(self, listener: Callable[[int, int], None]) -> None:
        """From now on `listener` hears of every outcome that was reported from outside."""
        self._outcome_listeners.append(listener)

    def outcome_reported(self, instance_id: int, fence: int) -> None:
        """Tells that nobody needs to wait for this outcome any more."""
        for listener in self._outcome_listeners:
            listener(instance_id, fence)

    def announce(self, woken: Iterable[Woken]) -> None:
        """Tells of rows that became claimable: one wake per lane, for its earliest due."""
        earliest: dict[int, datetime] = {}
        for row in woken:
            earliest[row.lane] = min(row.due, earliest.get(row.lane, row.due))
        for lane, due in earliest.items():
            self.wake(lane, due)

    def wake(self, lane: int, due: datetime) -> None:
        """Tells of one lane; the parking lane concerns nobody."""
        if lane:
            for listener in self._listeners:
                listener(lane, due)

    def wake_schedule(self, schedule_id: int, fire_time: datetime) -> None:
        """Tells of a schedule's coming fire."""
        for listener in self._schedule_listeners:
            listener(schedule_id, fire_time)
