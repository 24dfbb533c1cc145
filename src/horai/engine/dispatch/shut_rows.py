"""Rows of jobs whose host is shut: the cursors of this process pass over them until the host may be called again.

Without this, a million due rows of a host that is down would be claimed and released again and again, and the rows of other
hosts behind them would wait. Passing over only reads: the rows stay as they are, for this node and for any that takes over.
"""

import math
from collections.abc import Sequence
from datetime import datetime, timedelta

from horai.db import claims
from horai.db.clock import DatabaseClock
from horai.db.pool import Platform
from horai.engine.dispatch.host_gates import HostGates
from horai.engine.dispatch.scans import Scan, ScanQuota, Scans

ROWS_A_READ = 2000
"""The most rows that one read passes over, of all its scans: the rows of other tenants wait for it. A scan with
more shut rows ahead waits for its next turn, like any other."""
FIRST_ROWS = 8
"""Rows that are read of a scan first. As long as all of them are shut, the next read is four times as long."""
RESTS_A_READ = 4
"""Cursors that went back pass over all rows again. They go back after a rest of this many times the seconds that the last
reads took: passing over takes at most a fifth of the dispatcher's time, however many hosts are shut."""


class ShutRowPasser:
    """The rows that cursors have passed over, and for which jobs."""

    def __init__(self, scans: Scans, gates: HostGates, clock: DatabaseClock) -> None:
        self._scans = scans
        self._gates = gates
        self._clock = clock
        self._passed_from: dict[Scan, tuple[datetime, int]] = {}
        self._job_ids: set[int] = set()
        self._limits: dict[Scan, int] = {}
        """The rows to read of scans whose last read found only shut rows."""
        self._seconds_read = 0.0
        self._rests_until = -math.inf

    def split(self, quotas: Sequence[ScanQuota]) -> tuple[list[ScanQuota], list[ScanQuota]]:
        """Return the scans of lanes without shut jobs, and the others."""
        lanes = self._gates.shut_jobs().lanes
        if not lanes:
            return [*quotas], []
        clear = [quota for quota in quotas if quota[0].lane not in lanes]
        return clear, [quota for quota in quotas if quota[0].lane in lanes]

    async def pass_over(self, connection: Platform, quotas: Sequence[ScanQuota]) -> list[ScanQuota]:
        """Move cursors behind the rows of shut jobs. Return the scans to claim from."""
        shut = self._gates.shut_jobs()
        scans = [scan for scan, _ in quotas if scan.lane in shut.lanes]
        if not scans:
            return [*quotas]
        job_ids = set[int]().union(*(shut.lanes[scan.lane] for scan in scans))
        positions = self._scans.starts(scans)
        most = max(ROWS_A_READ // len(scans), 1)
        limits = {scan: min(self._limits.get(scan, FIRST_ROWS), most) for scan in scans}
        began = self._gates.monotonic()
        try:
            found = await claims.shut_rows_ahead(connection, positions, job_ids, [*limits.values()])
        except BaseException:
            self._scans.mark_unknown(scan for scan, _ in quotas)
            raise
        ended = self._gates.monotonic()
        self._seconds_read += ended - began
        self._rests_until = ended + RESTS_A_READ * self._seconds_read
        self._job_ids |= job_ids
        self._gates.note_limited(job_ids)
        starts = {Scan(position.shard, position.lane): (position.due, position.id) for position in positions}
        unfinished: set[Scan] = set()
        for shard, lane, due, id_, passed in found:
            scan = Scan(shard, lane)
            self._passed_from[scan] = min(self._passed_from.get(scan, starts[scan]), starts[scan])
            self._scans.pass_over(scan, (due, id_))
            if passed >= limits[scan]:
                unfinished.add(scan)
                self._limits[scan] = limits[scan] * 4
                self._scans.set_timer(scan, self._clock.now())
        for scan in limits.keys() - unfinished:
            self._limits.pop(scan, None)
        return [quota for quota in quotas if quota[0] not in unfinished]

    def go_back(self) -> None:
        """Move the cursors back as soon as one of the jobs is no longer shut and the rest after the last reads is over."""
        if not self._passed_from or self._gates.monotonic() < self._rests_until or not self._may_any_run():
            return
        now = self._clock.now()
        for scan, position in self._passed_from.items():
            self._scans.back_to(scan, position)
            self._scans.set_timer(scan, now)
        self._gates.note_limited(self._job_ids)
        self._passed_from.clear()
        self._job_ids.clear()
        self._seconds_read = 0.0

    def _may_any_run(self) -> bool:
        return not self._job_ids <= self._gates.shut_jobs().job_ids

    def next_at(self) -> datetime | None:
        """Return when to call `go_back` at the latest; None if no row was passed over."""
        if not self._passed_from:
            return None
        rest = max(self._rests_until - self._gates.monotonic(), 0.0)
        shut = 0.0 if self._may_any_run() else self._gates.shut_jobs().seconds
        return self._clock.now() + timedelta(seconds=max(rest, shut))
