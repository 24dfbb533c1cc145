"""Rows of jobs whose host is shut: the cursors of this process pass over them until the host may be called again.

Without this, a million due rows of a host that is down would be claimed and released again and again, and the rows of other
hosts behind them would wait. Passing over only reads: the rows stay as they are, for this node and for any that takes over.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from horai.db import claims
from horai.db.clock import DatabaseClock
from horai.db.pool import Platform
from horai.engine.dispatch.claimer import ScanQuota
from horai.engine.dispatch.host_gates import HostGates
from horai.engine.dispatch.scans import Scan, Scans

READ_AT_ONCE = 500
"""Rows per scan that are read at once. A scan with more shut rows ahead waits for its next turn, like any other."""


class ShutRowPasser:
    """The rows that cursors have passed over, and for which jobs."""

    def __init__(self, scans: Scans, gates: HostGates, clock: DatabaseClock) -> None:
        self._scans = scans
        self._gates = gates
        self._clock = clock
        self._passed_from: dict[Scan, tuple[datetime, int]] = {}
        self._job_ids: set[int] = set()

    async def pass_over(self, connection: Platform, quotas: Sequence[ScanQuota]) -> list[ScanQuota]:
        """Move cursors behind the rows of shut jobs. Return the scans to claim from."""
        shut = self._gates.shut_jobs()
        scans = [scan for scan, _ in quotas if scan.lane in shut.lanes]
        if not scans:
            return [*quotas]
        job_ids = set[int]().union(*(shut.lanes[scan.lane] for scan in scans))
        positions = self._scans.starts(scans)
        try:
            found = await claims.shut_rows_ahead(connection, positions, job_ids, READ_AT_ONCE)
        except BaseException:
            self._scans.mark_unknown(scan for scan, _ in quotas)
            raise
        self._job_ids |= job_ids
        starts = {Scan(position.shard, position.lane): (position.due, position.id) for position in positions}
        unfinished: set[Scan] = set()
        for shard, lane, due, id_, passed in found:
            scan = Scan(shard, lane)
            self._passed_from[scan] = min(self._passed_from.get(scan, starts[scan]), starts[scan])
            self._scans.pass_over(scan, (due, id_))
            if passed >= READ_AT_ONCE:
                unfinished.add(scan)
                self._scans.set_timer(scan, self._clock.now())
        return [quota for quota in quotas if quota[0] not in unfinished]

    def go_back(self) -> None:
        """Move the cursors back as soon as one of the jobs is no longer shut."""
        if not self._passed_from or self._job_ids <= self._gates.shut_jobs().job_ids:
            return
        now = self._clock.now()
        for scan, position in self._passed_from.items():
            self._scans.back_to(scan, position)
            self._scans.set_timer(scan, now)
        self._passed_from.clear()
        self._job_ids.clear()

    def next_at(self) -> datetime | None:
        """Return when to call `go_back` at the latest; None if no row was passed over."""
        if not self._passed_from:
            return None
        return self._clock.now() + timedelta(seconds=self._gates.shut_jobs().seconds)
