"""The room of hosts: a node claims as many rows of an HTTP lane as the hosts of its jobs accept, and not more.

A lane does not tell the hosts of its rows; those of the last seconds stand for them. While all of them are full, the scans
of the lane wait for the end of a call, at most `LONGEST_WAIT` seconds: a row of another host may be behind. Then a few rows
are claimed, and those whose host is still full are given back.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime

from horai.core.calls import Target
from horai.core.job import Recipe
from horai.db.claims import ClaimedRow
from horai.db.jobs import Runnable
from horai.engine.dispatch.scans import HTTP, Scan, ScanQuota, Scans
from horai.engine.executors.bulkhead import HostRoom
from horai.engine.executors.origins import host_of

LONGEST_WAIT = 0.1
SEEN_FOR = 10.0
"""Seconds for which a host counts as one of its lane after the last claim of a row."""
FIRST_ROWS = 32
"""Rows of a lane whose hosts are not known, or were full for `LONGEST_WAIT` seconds."""
NO_ROOM = HostRoom(0, 0)
LEAST_SHARE = 4
"""A host has room when at least one in this many of its places is free: rows are claimed by the dozen, not one by one."""


class HostRooms:
    """The rows that the hosts of each lane accept. Without `room_of`, nothing is limited."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.room_of: Callable[[str], HostRoom] | None = None
        """Returns how many calls a host accepts, and how many it has."""
        self.on_room: Callable[[], None] = lambda: None
        """Called when a host has room that a waiting scan may use."""
        self.monotonic = monotonic
        self._claimed: Counter[str] = Counter()
        """Claimed rows whose calls have not begun, by host."""
        self._seen: dict[int, dict[str, float]] = {}
        """The hosts of each lane, with the times of their last rows."""
        self._waiting: dict[int, dict[Scan, None]] = {}
        self._wait_until: dict[int, float] = {}

    def claimed(self, rows: Iterable[tuple[ClaimedRow, Runnable, Recipe]]) -> None:
        """Count rows that were claimed and admitted. `begun` must follow for each of them."""
        if self.room_of is None:
            return
        now = self.monotonic()
        for row, _, recipe in rows:
            if recipe.handler == HTTP:
                host = host_of(recipe.target)
                self._claimed[host] += 1
                self._seen.setdefault(row.lane, {})[host] = now

    def begun(self, target: Target) -> None:
        """Record that the call of a row begins, or never will."""
        if self.room_of is not None:
            host = host_of(target)
            self._claimed[host] -= 1
            if self._claimed[host] <= 0:
                del self._claimed[host]

    def ended(self, target: Target) -> None:
        """Record that a call has ended: scans may have waited for it."""
        if self._waiting and self._free(host_of(target)) > 0:
            self.on_room()

    def limit(self, quotas: Sequence[ScanQuota], scans: Scans, now: datetime) -> list[ScanQuota]:
        """Cut the picks of HTTP lanes to the room of their hosts. Scans without room wait."""
        if self.room_of is None:
            return [*quotas]
        kept: list[ScanQuota] = []
        taken: Counter[str] = Counter()
        first: dict[int, int] = {}
        for scan, rows in quotas:
            if scans[scan.lane].handler != HTTP:
                kept.append((scan, rows))
                continue
            hosts = self._hosts_of(scan.lane)
            room = max((self._free(host) - taken[host] for host in hosts), default=0)
            if scan.lane in first or not hosts or (room <= 0 and self._is_overdue(scan.lane)):
                room = first.setdefault(scan.lane, FIRST_ROWS)
                first[scan.lane] -= min(rows, room)
            if room > 0:
                kept.append((scan, min(rows, room)))
                taken.update(dict.fromkeys(hosts, min(rows, room)))
            else:
                self._wait(scan)
            if room < rows:
                scans.limited_at[scan.lane] = now
        for lane in {scan.lane for scan, _ in kept}:
            self._wait_until.pop(lane, None)
            if lane in self._waiting:
                self._wait_until[lane] = self.monotonic() + LONGEST_WAIT
        return kept

    def take_ready(self, scans: Scans, now: datetime) -> list[Scan]:
        """Return the waiting scans whose hosts have room, or which have waited long enough. They wait no longer."""
        ready: list[Scan] = []
        for lane in [lane for lane in self._waiting if self._is_overdue(lane) or self._has_room(lane)]:
            scans.limited_at[lane] = now
            ready += self._waiting.pop(lane)
        return ready

    def holds(self, scan: Scan) -> bool:
        """Return whether the scan waits for a host."""
        return scan in self._waiting.get(scan.lane, {})

    def discard(self, scan: Scan) -> None:
        """Let the scan wait no longer: this process does not claim from it."""
        self._waiting.get(scan.lane, {}).pop(scan, None)

    @property
    def next_wait(self) -> float | None:
        """Return the seconds until the first scan has waited long enough; None if none waits."""
        if not self._waiting:
            return None
        return max(min(self._wait_until[lane] for lane in self._waiting) - self.monotonic(), 0.0)

    def _wait(self, scan: Scan) -> None:
        self._waiting.setdefault(scan.lane, {})[scan] = None
        self._wait_until.setdefault(scan.lane, self.monotonic() + LONGEST_WAIT)

    def _is_overdue(self, lane: int) -> bool:
        until = self._wait_until.get(lane)
        return until is not None and until <= self.monotonic()

    def _has_room(self, lane: int) -> bool:
        hosts = self._hosts_of(lane)
        return not hosts or any(self._free(host) > 0 for host in hosts)

    def _hosts_of(self, lane: int) -> list[str]:
        """Return the hosts of the rows that were claimed of a lane in the last `SEEN_FOR` seconds."""
        seen = self._seen.get(lane)
        if seen is None:
            return []
        since = self.monotonic() - SEEN_FOR
        for host in [host for host, at in seen.items() if at < since]:
            del seen[host]
        return [*seen]

    def _free(self, host: str) -> int:
        """Return how many more rows of a host may be claimed; 0 if they are few."""
        accepts, load = self.room_of(host) if self.room_of is not None else NO_ROOM
        free = accepts - self._claimed[host] - load
        return free if free * LEAST_SHARE >= accepts else 0
