"""Limits on the connections and on the body bytes of one server."""

import resource
from collections import Counter
from typing import Protocol

from horai.api.abuse_log import Abuse, AbuseLog
from horai.core.settings import ServerLimits


class ConnectionState(Protocol):
    """A connection that `ConnectionLimits` counts."""

    address: str

    def evict(self) -> None:
        """Close the connection to make room for another."""
        ...


class HeldBody:
    """The body of one request: the bytes that arrived, and the bytes that count towards the server's limit."""

    __slots__ = ("counted", "size")

    def __init__(self) -> None:
        self.size = 0
        self.counted = 0


class ConnectionLimits:
    """The limits that all connections of a server share.

    When the limit is reached, the server closes the oldest connection without a request in progress: idle and half-open
    connections never lock other clients out. It refuses a new connection only when all have requests in progress.
    """

    def __init__(self, limits: ServerLimits, tally: AbuseLog | None = None) -> None:
        self.limits = limits
        self.tally = tally or AbuseLog()
        self.connections = min(limits.connections, _descriptors() // 2)
        self.per_address = min(limits.connections_per_address, self.connections * 3 // 4)
        self.bytes_held = 0
        self.sockets = min(limits.workers, _descriptors() // 4)
        self._open_sockets = 0
        self._guests: set[ConnectionState] = set()
        self._open: Counter[str] = Counter()
        self._idle: dict[ConnectionState, None] = {}

    def admit(self, guest: ConnectionState) -> bool:
        """Count a new connection; return False if there is no room. At the limit, close an idle one first."""
        if self._open[guest.address] >= self.per_address and not self._evict(guest.address):
            return False
        if len(self._guests) >= self.connections and not self._evict(None):
            return False
        self._open[guest.address] += 1
        self._guests.add(guest)
        self._idle[guest] = None
        return True

    def leave(self, guest: ConnectionState) -> None:
        """Stop counting a connection. Does nothing if it is not counted."""
        if guest not in self._guests:
            return
        self._guests.discard(guest)
        self._idle.pop(guest, None)
        self._open[guest.address] -= 1
        if not self._open[guest.address]:
            del self._open[guest.address]

    def admit_socket(self) -> bool:
        """Count a WebSocket; return False, without counting it, if there is no room for one more."""
        if self._open_sockets >= self.sockets:
            return False
        self._open_sockets += 1
        return True

    def leave_socket(self) -> None:
        """Stop counting a WebSocket."""
        self._open_sockets -= 1

    def set_busy(self, guest: ConnectionState) -> None:
        """Protect the connection from eviction: it has a request in progress."""
        self._idle.pop(guest, None)

    def set_idle(self, guest: ConnectionState) -> None:
        """Allow eviction of the connection: it has no request in progress."""
        if guest in self._guests:
            self._idle[guest] = None

    def hold(self, held: HeldBody, size: int) -> bool:
        """Count `size` more bytes of a body. Return False, without counting them, if they do not fit."""
        counted = max(held.size + size - self.limits.body_free, 0) - held.counted
        if counted > 0 and self.bytes_held + counted > self.limits.bodies_in_memory:
            return False
        held.size += size
        held.counted += counted
        self.bytes_held += counted
        return True

    def release(self, held: HeldBody) -> None:
        """Stop counting the bytes of a finished request."""
        self.bytes_held -= held.counted
        held.size = held.counted = 0

    def _evict(self, address: str | None) -> bool:
        """Close the oldest idle connection of this address, or of any; return False if there is none."""
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
