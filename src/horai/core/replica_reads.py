"""The rule for reads from a replica: a replica answers if it shows all that its reader must see.

Pure: `now` and all times are those of a monotonic clock in seconds, passed by the caller. A *position* is the end of the
primary's log at a time: a replica that has replayed it shows every transaction that was committed before that time. So the
newest position that a replica has replayed bounds its lag, also while the primary is idle and no transaction tells the time.
"""

from collections import deque
from collections.abc import Hashable
from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class PrimaryPosition:
    """The primary's end of log, and the lease of a node in its row at that time.

    Logs of two timelines can have the same length. The row of a node tells them apart: the node renews its lease on the
    primary only, so a replica of another timeline never shows it.
    """

    taken_at: float
    """The time before the primary was asked."""
    lsn: int
    timeline: str | None
    """None if the service hides it."""
    incarnation: int
    lease_until: datetime


@dataclass(frozen=True, slots=True)
class ReplayedPosition:
    """The end of the log that a replica has replayed, and the lease that it shows."""

    lsn: int
    incarnation: int
    lease_until: datetime | None
    """None if the replica has no row of that node."""

    def covers(self, position: PrimaryPosition) -> bool:
        """Return whether the replica shows every transaction that was committed before `position`."""
        if self.incarnation != position.incarnation or self.lease_until is None:
            return False
        return self.lsn >= position.lsn and self.lease_until >= position.lease_until


class PositionLog:
    """The positions of the last `reach` seconds, oldest first."""

    def __init__(self, reach: float) -> None:
        self._reach = reach
        self._positions: deque[PrimaryPosition] = deque()
        self._timeline: str | None = None
        self._moved_with: tuple[int, datetime] | None = None

    @property
    def newest(self) -> PrimaryPosition | None:
        """Return the last position; None before the first, and after a change of the timeline."""
        return self._positions[-1] if self._positions else None

    def add(self, position: PrimaryPosition) -> None:
        """Add a position. After a change of the timeline, positions count once the node has renewed its lease on it."""
        if self._timeline not in {None, position.timeline}:
            self._positions.clear()
            self._moved_with = (position.incarnation, position.lease_until)
        self._timeline = position.timeline
        if self._moved_with == (position.incarnation, position.lease_until):
            return
        self._moved_with = None
        self._positions.append(position)
        while self._positions[0].taken_at < position.taken_at - self._reach:
            self._positions.popleft()

    def covered(self, replayed: ReplayedPosition, now: float) -> PrimaryPosition | None:
        """Return the newest position that the replica covers; None if none of the last `reach` seconds is covered."""
        found = next((position for position in reversed(self._positions) if replayed.covers(position)), None)
        return None if found is None or found.taken_at < now - self._reach else found


class LastWrites:
    """The time of each caller's last write, for `reach` seconds: a replica that lags longer is not used at all."""

    def __init__(self, reach: float) -> None:
        self._reach = reach
        self._times: dict[Hashable, float] = {}

    def note(self, caller: Hashable, now: float) -> None:
        """Record that a write of the caller has just ended, or that it was told of a change."""
        self._times.pop(caller, None)
        self._times[caller] = now
        while (oldest := next(iter(self._times))) != caller and self._times[oldest] < now - self._reach:
            del self._times[oldest]

    def of(self, caller: Hashable) -> float:
        """Return the time of the last write; 0 without one."""
        return self._times.get(caller, 0.0)
