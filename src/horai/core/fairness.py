"""The order in which scans are served: priority bands with ageing, tenants by weight, then queue by queue.

Bands are strict. Pure: `now` is a monotonic time in seconds. A `place` is one scan of a claimer (a lane in a shard);
here it is only a value. A scan that was picked is out of line until the caller adds it again with `ready`.
"""

from collections import deque
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from typing import Generic, TypeVar

BANDS = 4
AGEING_SECONDS = 30.0
"""A queue that has waited this long without being served moves up one band, so that no queue starves."""

P = TypeVar("P", bound=Hashable)


@dataclass(frozen=True, slots=True)
class QueuePosition:
    """The position of a scan in line."""

    band: int
    tenant: int
    queue: str
    weight: int = 1


@dataclass(slots=True, eq=False)
class _Queue(Generic[P]):
    """The scans of one queue of one tenant, in serving order. `band` is its current band, raised by ageing or not."""

    standing: QueuePosition
    waits_since: float
    band: int
    places: deque[P] = field(default_factory=deque[P])


@dataclass(slots=True)
class _Tenant(Generic[P]):
    """The queues of one tenant in one band. `credit` is the number of rows that it was owed and not given."""

    weight: int
    credit: float = 0.0
    queues: deque[_Queue[P]] = field(default_factory=deque["_Queue[P]"])

    def take(self, count: int) -> list[P]:
        """Return the next `count` scans, one queue after the other."""
        taken: list[P] = []
        while self.queues and len(taken) < count:
            queue = self.queues.popleft()
            taken.append(queue.places.popleft())
            if queue.places:
                self.queues.append(queue)
        return taken


class Contention:
    """The tenants recently in line: one alone, or several that would wait for each other's batches."""

    LATELY_SECONDS = 1.0

    def __init__(self) -> None:
        self._met: dict[tuple[int, int], float] = {}

    def meet(self, band: int, tenant: int, now: float) -> None:
        """Record that a tenant has due rows in a band."""
        self._met[band, tenant] = now

    def is_mixed(self, now: float) -> bool:
        """Return whether more than one tenant or band was in line in the last second.

        If so, batches are small, so that no tenant waits for a large one.
        """
        if len(self._met) > 1:
            self._met = {who: at for who, at in self._met.items() if at >= now - self.LATELY_SECONDS}
        return len(self._met) > 1


class FairQueue(Generic[P]):
    """The scans that have due rows, and the order in which they are served."""

    def __init__(self, now: float = 0.0) -> None:
        self._bands: list[dict[int, _Tenant[P]]] = [{} for _ in range(BANDS)]
        self._queues: dict[tuple[int, int, str], _Queue[P]] = {}
        self._standings: dict[P, QueuePosition] = {}
        self._aged_at = now

    def __len__(self) -> int:
        return len(self._standings)

    def __contains__(self, place: P) -> bool:
        return place in self._standings

    def ready(self, place: P, standing: QueuePosition, now: float) -> None:
        """Add a scan that has due rows at the end of its queue."""
        if place in self._standings:
            return
        self._standings[place] = standing
        name = (standing.band, standing.tenant, standing.queue)
        queue = self._queues.get(name)
        if queue is None or not queue.places:
            queue = self._queues[name] = _Queue(standing, now, standing.band)
            self._enter(queue)
        else:
            self._bands[queue.band][standing.tenant].weight = standing.weight
        queue.places.append(place)

    def _enter(self, queue: _Queue[P]) -> None:
        standing, band = queue.standing, self._bands[queue.band]
        tenant = band.get(standing.tenant)
        if tenant is None:
            tenant = band[standing.tenant] = _Tenant(standing.weight)
        tenant.weight = standing.weight
        tenant.queues.append(queue)

    def pick(self, now: float, rows: int, places: int) -> list[tuple[P, int]]:
        """Return up to `places` scans of the most urgent band and how many rows each may take, `rows` in all."""
        self._age(now)
        for band in self._bands:
            chosen = list(self._pick_of(band, rows, places))
            if chosen:
                for place, _ in chosen:
                    self._served(place, now)
                return chosen
        return []

    def _pick_of(self, band: dict[int, _Tenant[P]], rows: int, places: int) -> Iterator[tuple[P, int]]:
        """Share rows by weight; a tenant keeps the fraction of a row that it was not given as credit."""
        waiting = [tenant for tenant in band.values() if tenant.queues]
        total = sum(tenant.weight for tenant in waiting)
        for tenant in waiting:
            tenant.credit = min(tenant.credit + rows * tenant.weight / total, rows)
        left_rows, left_places = rows, places
        for tenant in sorted(waiting, key=lambda tenant: -tenant.credit):
            if left_rows <= 0 or left_places <= 0:
                break
            share = min(max(round(tenant.credit), 1), left_rows)
            taken = tenant.take(min(max(places * tenant.weight // total, 1), share, left_places))
            tenant.credit -= share
            left_rows -= share
            left_places -= len(taken)
            each, more = divmod(share, len(taken))
            for number, place in enumerate(taken):
                yield place, each + (number < more)

    def _served(self, place: P, now: float) -> None:
        """Take a scan out of line; a queue that had moved up goes back to its own band."""
        standing = self._standings.pop(place)
        queue = self._queues.get((standing.band, standing.tenant, standing.queue))
        if queue is None:
            return
        queue.waits_since = now
        if not queue.places:
            del self._queues[standing.band, standing.tenant, standing.queue]
        elif queue.band != standing.band:
            self._bands[queue.band][standing.tenant].queues.remove(queue)
            queue.band = standing.band
            self._enter(queue)

    def discard(self, place: P) -> None:
        """Remove a scan, if it is in line."""
        standing = self._standings.pop(place, None)
        if standing is None:
            return
        name = (standing.band, standing.tenant, standing.queue)
        queue = self._queues[name]
        queue.places.remove(place)
        if not queue.places:
            del self._queues[name]
            self._bands[queue.band][standing.tenant].queues.remove(queue)

    def _age(self, now: float) -> None:
        """Move whole queues up, once a second: one band for each `AGEING_SECONDS` they have waited."""
        if now < self._aged_at + 1.0:
            return
        self._aged_at = now
        for queue in self._queues.values():
            risen = max(queue.standing.band - int((now - queue.waits_since) / AGEING_SECONDS), 0)
            if risen < queue.band:
                self._bands[queue.band][queue.standing.tenant].queues.remove(queue)
                queue.band = risen
                self._enter(queue)
