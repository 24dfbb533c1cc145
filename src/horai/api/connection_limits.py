"""Counts the connections and the body bytes of one server, and decides whether one more fits."""

import resource
from collections import Counter
from typing import Protocol

from horai.api.abuse_log import Abuse, AbuseLog
from horai.core.settings import ServerLimits


class ConnectionState(Protocol):
    """A connection as the door sees it."""

    address: str

    def evict(self) -> None:
        """Close the connection to make room for another."""
        ...


class HeldBody:
    """The body bytes of one request: how many arrived, and how many of them count towards the server's limit."""

    __slots__ = ("counted", "size")

    def __init__(self) -> None:
        self.size = 0
        self.counted = 0


class ConnectionLimits:
    """The limits that all connections of a server share.

    When the connections reach their limit, the oldest one without a request in progress is closed: idle and half-open
    connections never lock other clients out. A connection is refused only when all have requests in progress.
    """

    def __init__(self, limits: ServerLimits, tally: AbuseLog | None = None) -> None:
        self.limits = limits
        self.tally = tally or AbuseLog()
        self.connections = min(limits.connections, _descriptors() // 2)
        self.per_address = min(limits.connections_per_address, self.connections * 3 // 4)
        self.bytes_held = 0
        self._guests: set[ConnectionState] = set()
        self._open: Counter[str] = Counter()
        self._idle: dict[ConnectionState, None] = {}

    def admit(self, guest: ConnectionState) -> bool:
        """Count a new connection, after closing an idle one if the limit is reached. False: there is no room."""
        if self._open[guest.address] >= self.per_address and not self._evict(guest.address):
            return False
        if len(self._guests) >= self.connections and not self._evict(None):
            return False
        self._open[guest.address] += 1
        self._guests.add(guest)
        self._idle[guest] = None
        return True

    def leave(self, guest: ConnectionState) -> None:
        """Uncount a connection; does nothing for one that is not counted."""
        if guest not in self._guests:
            return
        self._guests.discard(guest)
        self._idle.pop(guest, None)
        self._open[guest.address] -= 1
        if not self._open[guest.address]:
            del self._open[guest.address]

    def set_busy(self, guest: ConnectionState) -> None:
        """Keep the connection: it has a request in progress."""
        self._idle.pop(guest, None)

    def set_idle(self, guest: ConnectionState) -> None:
        """Allow the connection to be closed for another: it has no request in progress."""
        if guest in self._guests:
            self._idle[guest] = None

    def hold(self, held: HeldBody, size: int) -> bool:
        """Count `size` more bytes of a body. False: they do not fit, and are not counted."""
        counted = max(held.size + size - self.limits.body_free, 0) - held.counted
        if counted > 0 and self.bytes_held + counted > self.limits.bodies_in_memory:
            return False
        held.size += size
        held.counted += counted
        self.bytes_held += counted
        return True

    def release(self, held: HeldBody) -> None:
        """Uncount the bytes of a finished request."""
        self.bytes_held -= held.counted
        held.size = held.counted = 0

    def _evict(self, address: str | None) -> bool:
        """Close the oldest idle connection, of this address or of any."""
        for guest in self._idle:
            if address is None or guest.address == address:
                self.leave(guest)
                self.tally.note(Abuse.TOO_MANY_CONNECTIONS, guest.address)
                guest.evict()
                return True
        return False


def _descriptors() -> int:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 2**31 if soft == resource.RLIM_INFINITY else soft
