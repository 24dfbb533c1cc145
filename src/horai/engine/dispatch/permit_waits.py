"""Scans of limited queues that wait for permits, with the start of each wait.

Each priority is claimed by a statement of its own. A permit that becomes free between two statements would go to the
less urgent row: the later statement also reads the more urgent scans that were short of permits, and the database gives
the permits to the most urgent rows. A scan that waits moves up like a queue in line, so that no row starves.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

from horai.core.fairness import AGEING_SECONDS
from horai.engine.dispatch.scans import Scan, ScanQuota, Scans

Ahead = Mapping[int, Sequence[Scan]]
"""By limited queue, the scans whose rows may take its permits before those of a claim."""
NOTHING_AHEAD: Ahead = {}


class PermitWaits:
    """The scans that gave fewer rows than they were asked for and were not found dry since, by limited queue."""

    def __init__(self, scans: Scans) -> None:
        self._scans = scans
        self._since: dict[int, dict[Scan, float]] = {}

    def note(self, quotas: Sequence[ScanQuota], found: Mapping[Scan, int], now: float) -> None:
        """Note the result of a claim from a limited queue."""
        for scan, rows in quotas:
            given = found.get(scan, 0)
            if given < rows:
                waiting = self._since.setdefault(self._scans[scan.lane].queue_id, {})
                waiting[scan] = now if given else waiting.get(scan, now)

    def note_dry(self, scans: Iterable[Scan]) -> None:
        """Note that these scans have no due rows, or are no longer claimed here."""
        if not self._since:
            return
        for scan in scans:
            queue_id = self._scans[scan.lane].queue_id
            waiting = self._since.get(queue_id, {})
            if waiting.pop(scan, None) is not None and not waiting:
                del self._since[queue_id]

    def urgency(self, scan: Scan, now: float) -> int:
        """Return the priority of a scan; it rises by one for each `AGEING_SECONDS` that the scan has waited for a permit."""
        lane = self._scans[scan.lane]
        since = self._since.get(lane.queue_id, {}).get(scan, now)
        return max(int(lane.priority) - int((now - since) / AGEING_SECONDS), 0)

    def ahead_of(self, quotas: Sequence[ScanQuota], may_start: Callable[[Scan], bool], now: float) -> Ahead:
        """Return the waiting scans to read together with the picks: of their queues and slot owners, and more urgent or aged."""
        if not self._since:
            return NOTHING_AHEAD
        least: dict[int, int] = {}
        for scan, _ in quotas:
            queue_id = self._scans[scan.lane].queue_id
            least[queue_id] = max(least.get(queue_id, 0), self.urgency(scan, now))
        owners = {self._scans.owner_of(scan.lane) for scan, _ in quotas}
        picked = {scan for scan, _ in quotas}
        return {
            queue_id: [
                scan
                for scan in self._since[queue_id]
                if scan not in picked
                and self._goes_before(scan, least[queue_id], now)
                and self._scans.owner_of(scan.lane) in owners
                and may_start(scan)
            ]
            for queue_id in least.keys() & self._since.keys()
        }

    def _goes_before(self, scan: Scan, urgency: int, now: float) -> bool:
        """Return whether a scan is more urgent, or as urgent by its age: the row that is longest due comes first."""
        own = self.urgency(scan, now)
        return own < urgency or (own == urgency and own < int(self._scans[scan.lane].priority))
