"""Credits: how many more calls the sessions of remote workers may be given. Pure.

A pool is the work of one handler in one queue of one tenant. Sessions of a tenant that serve the same handlers, within the
same limits and queues, form a group: a thousand equal workers are one group, so no figure is computed per session.
"""

from collections import Counter, OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

ANY = ""
"""The handlers without a limit of their own, which share the slots of a session."""


class WorkPool(NamedTuple):
    """The work of one handler in one queue of one tenant."""

    tenant_id: int
    queue: str
    handler: str

    @property
    def name(self) -> str:
        """Return the key under which the engine counts the pool."""
        return f"{self.tenant_id}/{self.queue}/{self.handler}"


@dataclass(frozen=True, slots=True)
class WorkOffer:
    """The work that a session takes: handlers with their limits (0: none), of these queues (None: of all)."""

    tenant_id: int
    handlers: frozenset[tuple[str, int]]
    queues: frozenset[str] | None

    @property
    def caps(self) -> Mapping[str, int]:
        """Return the handlers that have a limit of their own."""
        return {name: cap for name, cap in self.handlers if cap}


class SessionSlots:
    """The slots of one session. A slot is taken from the lease of a call until the worker reports it.

    `is_open` is false while the session may get no work: its connection is lost, or the worker is silent or drains.
    """

    __slots__ = ("by_handler", "counted", "group", "held", "is_open", "total")

    def __init__(self, group: "OfferGroup", total: int) -> None:
        self.group = group
        self.total = total
        self.held = 0
        self.by_handler: Counter[str] = Counter()
        self.is_open = False
        self.counted: dict[str, int] = {}

    def room_for(self, handler: str) -> int:
        """Return how many more calls of a handler the session takes."""
        if not self.is_open:
            return 0
        cap = self.group.caps.get(handler)
        room = self.total - self.held
        return max(room if cap is None else min(room, cap - self.by_handler[handler]), 0)


class OfferGroup:
    """The sessions with equal offers, and their common room."""

    def __init__(self, offer: WorkOffer) -> None:
        self.offer = offer
        self.caps = offer.caps
        self.names = frozenset(name for name, _ in offer.handlers)
        self.sessions: set[SessionSlots] = set()
        self.room: Counter[str] = Counter()
        self._ready: dict[str, OrderedDict[SessionSlots, None]] = {name: OrderedDict() for name in (ANY, *self.caps)}

    def covers(self, pool: WorkPool) -> bool:
        """Return whether the sessions take work of a pool."""
        offer = self.offer
        is_queue = offer.queues is None or pool.queue in offer.queues
        return offer.tenant_id == pool.tenant_id and is_queue and pool.handler in self.names

    def room_for(self, handler: str) -> int:
        """Return how many more calls of a handler the sessions take together."""
        return self.room[handler if handler in self.caps else ANY]

    def refresh(self, slots: SessionSlots) -> None:
        """Update the room of the group after a change of one session."""
        for name, ready in self._ready.items():
            now, before = slots.room_for(name), slots.counted.get(name, 0)
            slots.counted[name] = now
            self.room[name] += now - before
            if not now:
                ready.pop(slots, None)
            elif slots not in ready:
                ready[slots] = None

    def next_session(self, handler: str) -> SessionSlots | None:
        """Return the session with room whose turn it is, and put it last in turn."""
        ready = self._ready[handler if handler in self.caps else ANY]
        slots = next(iter(ready), None)
        if slots is not None:
            ready.move_to_end(slots)
        return slots


class CreditBook:
    """The credits of all sessions. The engine claims no more work of a pool than there is room for."""

    def __init__(self) -> None:
        self._groups: dict[WorkOffer, OfferGroup] = {}
        self._pools: dict[str, WorkPool] = {}
        self._covering: dict[str, tuple[OfferGroup, ...]] = {}
        self._running: Counter[str] = Counter()

    @property
    def handlers(self) -> Iterable[str]:
        """Return the names of the pools that were seen."""
        return self._pools.keys()

    @property
    def free(self) -> int:
        """Return how many slots are free, of any handler."""
        return sum(group.room[ANY] for group in self._groups.values())

    @property
    def names(self) -> frozenset[str]:
        """Return the handlers of all sessions."""
        return frozenset(name for group in self._groups.values() for name in group.names)

    def running(self, handler: str) -> int:
        """Return how many calls of a pool run at workers."""
        return self._running[handler]

    def room(self, handler: str) -> int:
        """Return how many more calls of a pool the sessions take."""
        pool = self._pools.get(handler)
        return 0 if pool is None else sum(group.room_for(pool.handler) for group in self._groups_of(pool))

    def covers(self, pool: WorkPool) -> bool:
        """Return whether a session takes work of a pool."""
        return any(group.covers(pool) for group in self._groups.values())

    def pool_named(self, name: str) -> WorkPool:
        """Return a pool that was seen."""
        return self._pools[name]

    def see(self, pool: WorkPool) -> str:
        """Note a pool, and return its name."""
        self._pools.setdefault(pool.name, pool)
        return pool.name

    def enter(self, offer: WorkOffer, total: int) -> tuple[SessionSlots, bool]:
        """Add a session, closed at first. Return its slots, and whether no other session has the same offer."""
        is_new = offer not in self._groups
        group = self._groups.setdefault(offer, OfferGroup(offer))
        slots = SessionSlots(group, total)
        group.sessions.add(slots)
        if is_new:
            self._covering.clear()
        return slots, is_new

    def leave(self, slots: SessionSlots) -> None:
        """Remove a session."""
        self.set_open(slots, is_open=False)
        group = slots.group
        group.sessions.discard(slots)
        if not group.sessions and self._groups.pop(group.offer, None) is not None:
            self._covering.clear()

    def set_open(self, slots: SessionSlots, *, is_open: bool) -> None:
        """Let the session have work, or not."""
        slots.is_open = is_open
        slots.group.refresh(slots)

    def set_total(self, slots: SessionSlots, total: int) -> None:
        """Change how many calls the session takes at once."""
        slots.total = total
        slots.group.refresh(slots)

    def choose(self, pool: WorkPool) -> SessionSlots | None:
        """Return a session with room for a call of this pool, or None."""
        for group in self._groups_of(pool):
            if group.room_for(pool.handler) > 0:
                return group.next_session(pool.handler)
        return None

    def take(self, slots: SessionSlots, handler: str) -> None:
        """Take a slot of a session."""
        slots.held += 1
        slots.by_handler[handler] += 1
        slots.group.refresh(slots)

    def give_back(self, slots: SessionSlots, handler: str) -> None:
        """Give a slot of a session back."""
        slots.held -= 1
        slots.by_handler[handler] -= 1
        slots.group.refresh(slots)

    def begin(self, pool: WorkPool) -> None:
        """Count a call that runs at a worker."""
        self._running[pool.name] += 1

    def end(self, pool: WorkPool) -> None:
        """Stop counting a call."""
        self._running[pool.name] -= 1

    def _groups_of(self, pool: WorkPool) -> tuple[OfferGroup, ...]:
        known = self._covering.get(pool.name)
        if known is None:
            known = tuple(group for group in self._groups.values() if group.covers(pool))
            self._covering[pool.name] = known
        return known
