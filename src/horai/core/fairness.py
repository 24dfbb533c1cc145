"""Whose turn it is: strict priority bands with ageing, weighted between tenants, then queue by queue.

Pure: `now` is a monotonic time in seconds. A place is one scan of a claimer, a lane in a shard; here it is only a value.
A place that was picked is out of line until it comes back with `ready`.
"""

from collections import deque
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from typing import Generic, TypeVar

BANDS = 4
AGEING_SECONDS = 30.0
"""Whoever has waited this long unserved moves up one band: nothing starves."""

P = TypeVar("P", bound=Hashable)


@dataclass(frozen=True, slots=True)
class QueuePosition:
    """Where a place stands in line."""

    band: int
    tenant: int
    queue: str
    weight: int = 1


@dataclass(slots=True, eq=False)
class _Queue(Generic[P]):
    """The places of one queue of one tenant, in the order of their turns. `band` is where it stands, risen or not."""

    standing: QueuePosition
    waits_since: float
    band: int
    places: deque[P] = field(default_factory=deque[P])


@dataclass(slots=True)
class _Tenant(Generic[P]):
    """One tenant's queues in one band. `credit` is what it was owed and not given, in rows."""

    weight: int
    credit: float = 0.0
    queues: deque[_Queue[P]] = field(default_factory=deque["_Queue[P]"])

    def take(self, count: int) -> list[P]:
        """The next `count` places, one queue after the other."""
        taken: list[P] = []
        while self.queues and len(taken) < count:
            queue = self.queues.popleft()
            taken.append(queue.places.popleft())
            if queue.places:
                self.queues.append(queue)
        return taken


class Contention:
    """Who has been in line lately: whether one alone, or several that would wait for each other's batches."""

    LATELY_SECONDS = 1.0

    def __init__(self) -> None:
        self._met: dict[tuple[int, int], float] = {}

    def meet(self, band: int, tenant: int, now: float) -> None:
        """A tenant has something due in a band."""
        self._met[band, tenant] = now

    def is_mixed(self, now: float) -> bool:
        """Whether more than one was here in the last second: then batches are small, so that nobody waits for a large one."""
        if len(self._met) > 1:
            self._met = {who: at for who, at in self._met.items() if at >= now - self.LATELY_SECONDS}
        return len(self._met) > 1


class FairQueue(Generic[P]):
    """The places that have something due, and who of them is next."""

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
        """The place has something due and gets in line, at the end of its queue."""
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
        """Up to `places` places of the most urgent band and how many rows each may take, `rows` in all."""
        self._age(now)
        for band in self._bands:
            chosen = list(self._pick_of(band, rows, places))
            if chosen:
                for place, _ in chosen:
                    self._served(place, now)
                return chosen
        return []

    def _pick_of(self, band: dict[int, _Tenant[P]], rows: int, places: int) -> Iterator[tuple[P, int]]:
        """Shares by weight; what a tenant was not given for want of whole rows it is owed."""
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
        """Out of line; a queue that had risen goes back to its own band."""
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
        """The place is nobody's business here any more."""
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
        """Once a second: whole queues move up, one band for each `AGEING_SECONDS` they have waited."""
        if now < self._aged_at + 1.0:
            return
        self._aged_at = now
        for queue in self._queues.values():
            risen = max(queue.standing.band - int((now - queue.waits_since) / AGEING_SECONDS), 0)
            if risen < queue.band:
                self._bands[queue.band][queue.standing.tenant].queues.remove(queue)
                queue.band = risen
                self._enter(queue)
