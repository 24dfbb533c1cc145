"""The announcer of events: it wakes the recorder of the outbox when this process has written outcomes."""

import time
from collections.abc import Callable

from horai.core.controls import ControlBoard
from horai.core.wakes import EventsWake
from horai.db.wakeups import Wakeups

SHORTEST_PAUSE = 1.0
"""Seconds between two wakes. The recorder looks again a second after it found events, so it misses none in between."""


class EventAnnouncer:
    """Publishes a wake at most once a second, and only while events are recorded."""

    def __init__(self, board: ControlBoard, wakeups: Wakeups, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._board = board
        self._wakeups = wakeups
        self._monotonic = monotonic
        self._last: float | None = None

    def note(self) -> None:
        """Announce that there may be new events."""
        if not self._board.current.records_events:
            return
        now = self._monotonic()
        if self._last is None or now - self._last >= SHORTEST_PAUSE:
            self._last = now
            self._wakeups.publish(EventsWake())
