"""The claims of this process that are not yet settled: they bound its work, and a sweep must not release them."""

import asyncio
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from horai.core.health import EngineHealth
from horai.core.prefetch import Prefetch
from horai.core.shares import Shares, SlotCounts
from horai.core.tenant_shares import TenantSlots
from horai.db.claims import Claim, ClaimedRow


class SlotOwner(NamedTuple):
    """The handler and the tenant whose shares of the slots a claim counts towards."""

    handler: str
    tenant: int


OF_NO_LANE = SlotOwner("", 0)


class InFlight:
    """The claims in flight. `limit` bounds them; `freed` is set when there is room again.

    A claim counts towards the share of its tenant while it is in flight and, without a `crew`, towards that of its handler.
    A crew runs a limited number of calls at once and counts them itself: the process then holds, per handler, at most the
    running calls plus as many as they will soon have made room for.
    """

    def __init__(
        self, limit: int, health: EngineHealth, crew: SlotCounts | None = None, handlers: Iterable[str] = frozenset()
    ) -> None:
        self._limit = limit
        self._is_crewed = crew is not None
        self._own = Shares(limit, handlers)
        self._shares: SlotCounts = self._own if crew is None else crew
        self._tenants = TenantSlots(limit)
        self._paces: defaultdict[str, Prefetch] = defaultdict(lambda: Prefetch(time.monotonic()))
        self._health = health
        self._held: dict[tuple[int, int], tuple[Claim, SlotOwner]] = {}
        self._counts: Counter[str] = Counter()
        self.freed: asyncio.Event | None = None
        self._wanted: set[str] = set()
        self._wanted_by: set[SlotOwner] = set()
        self._emptied = asyncio.Event()
        self._emptied.set()

    def __len__(self) -> int:
        return len(self._held)

    @property
    def room(self) -> int:
        """Return how many more rows may be claimed, of any handler. A caller that gets 0 is woken when that changes."""
        room = self._limit - len(self._held)
        if self._is_crewed:
            waiting = len(self._held) - sum(self._shares.running(handler) for handler in self._counts)
            now = time.monotonic()
            soon = sum(pace.ahead(now) for pace in self._paces.values())
            room = min(room, self._shares.free + soon - waiting)
            if room <= 0:
                room = self._widest()
        if room <= 0:
            self._wanted.update(self._shares.handlers, self._counts)
        return room

    def _widest(self) -> int:
        """Return the largest room of a handler: an idle handler does not wait for rows of other handlers."""
        return max((self._room_of(handler) for handler in self._shares.handlers), default=0)

    def serve_tenants(self, count: int) -> None:
        """Set how many tenants the process serves. With more than one, each of them leaves slots for the others."""
        self._tenants.is_shared = count > 1

    def room_of(self, owner: SlotOwner) -> int:
        """Return how many more rows of this owner may be claimed. A caller that gets 0 is woken when that changes."""
        room = self._room_of_owner(owner)
        if room <= 0:
            self._wanted_by.add(owner)
        return room

    def _room_of_owner(self, owner: SlotOwner) -> int:
        return min(self._room_of(owner.handler), self._tenants.room(owner.tenant))

    def _room_of(self, handler: str) -> int:
        room = self._shares.room(handler)
        if self._is_crewed:
            waiting = max(self._counts[handler] - self._shares.running(handler), 0)  # a thread may outlast its claim
            room += self._paces[handler].ahead(time.monotonic()) - waiting
        return min(room, self._limit - len(self._held))

    def add(self, claimed: Sequence[ClaimedRow], owner_of: Callable[[int], SlotOwner] = lambda _: OF_NO_LANE) -> None:
        """Add claimed rows. `owner_of` returns the owner of a lane."""
        by_lane = Counter([row[1] for row in claimed])
        owners = {lane: owner_of(lane) for lane in by_lane}
        self._held |= {(row[0][0], row[0][3]): (row[0], owners[row[1]]) for row in claimed}
        for lane, calls in by_lane.items():
            handler, tenant = owners[lane]
            self._tenants.begin(tenant, calls)
            if not self._is_crewed:
                self._own.begin(handler, calls)
            elif not self._counts[handler]:
                self._paces[handler].resume(time.monotonic())
            self._counts[handler] += calls
        self._changed()

    def worked(self, ended: Iterable[Claim]) -> None:
        """Record that the calls of these claims have ended and wait to be settled."""
        if self._is_crewed:
            now = time.monotonic()
            calls = Counter(
                [known[1].handler for held in ended if (known := self._held.get((held[0], held[3]))) is not None]
            )
            for handler, count in calls.items():
                self._paces[handler].note(now, count)
            self.wake()

    def drop(self, ended: Iterable[Claim]) -> None:
        """Remove claims that are settled or no longer belong to this node."""
        known = [known for held in ended if (known := self._held.pop((held[0], held[3]), None)) is not None]
        for (handler, tenant), calls in Counter([owner for _, owner in known]).items():
            self._tenants.end(tenant, calls)
            self._counts[handler] -= calls
            if not self._is_crewed:
                self._own.end(handler, calls)
        self._changed()
        self.wake()

    def wake(self) -> None:
        """Wake the caller that was told that there is no room, if there is room now."""
        if any(self._room_of(handler) > 0 for handler in self._wanted) or any(
            self._room_of_owner(owner) > 0 for owner in self._wanted_by
        ):
            self._wanted.clear()
            self._wanted_by.clear()
            if self.freed is not None:
                self.freed.set()

    def _changed(self) -> None:
        self._health.in_flight = len(self._held)
        if self._held:
            self._emptied.clear()
        else:
            self._emptied.set()

    def find(self, instance_id: int, fence: int) -> Claim | None:
        """Return the claim with this fence if it is in flight."""
        known = self._held.get((instance_id, fence))
        return None if known is None else known[0]

    def owner_of(self, instance_id: int, fence: int) -> SlotOwner | None:
        """Return the owner of the claim with this fence if it is in flight."""
        known = self._held.get((instance_id, fence))
        return None if known is None else known[1]

    def tenants_of(self, held: Iterable[Claim]) -> Mapping[int, int]:
        """Return how many of these claims each tenant has."""
        found = (self._held.get((claim[0], claim[3])) for claim in held)
        return Counter([known[1].tenant for known in found if known is not None])

    def known(self) -> frozenset[tuple[int, int]]:
        """Return the claims in flight now, as (instance id, fence), to compare with a read that begins now."""
        return frozenset(self._held)

    async def emptied(self) -> None:
        """Wait until no claim is in flight."""
        await self._emptied.wait()
