"""The connections of the HTTP executor that wait for their next call.

An HTTP/1.1 connection waits while it has no call. An HTTP/2 connection takes calls while it has others, as many as its target allows.
"""

import asyncio
from collections import defaultdict, deque

from horai.core.addresses import TenantReach
from horai.engine.executors.http2_connection import Http2Connection
from horai.engine.executors.http_connection import HttpConnection

Connection = HttpConnection | Http2Connection
Place = tuple[TenantReach, str]
"""Where a connection leads: the reach that it was dialled for, and an origin."""


class IdleConnections:
    """Connections without calls wait for `keep` seconds at most. The one used last is used first."""

    def __init__(self, keep: float) -> None:
        self._keep = keep
        self._idle: defaultdict[Place, deque[HttpConnection]] = defaultdict(deque[HttpConnection])
        self._shared: defaultdict[Place, list[Http2Connection]] = defaultdict(list[Http2Connection])
        self._timer: asyncio.TimerHandle | None = None

    def take(self, place: Place) -> Connection | None:
        """Return a connection that takes a call now, or None."""
        if (shared := self._take_shared(place)) is not None:
            return shared
        line = self._idle.get(place)
        while line:
            connection = line.pop()
            if connection.is_reusable:
                return connection
        return None

    def _take_shared(self, place: Place) -> Http2Connection | None:
        return next((each for each in self._shared.get(place, ()) if each.is_reusable), None)

    def share(self, place: Place, connection: Http2Connection) -> Http2Connection:
        """Share a new connection. Close it and return another one that takes a call, if calls that were faster have shared one."""
        if (shared := self._take_shared(place)) is not None:
            connection.close()
            return shared
        self._shared[place].append(connection)
        return connection

    def keep(self, place: Place, connection: Connection) -> None:
        """Keep a connection whose call has ended, if it can be used again."""
        loop = asyncio.get_running_loop()
        connection.idle_since = loop.time()
        if isinstance(connection, Http2Connection):
            if not connection.is_open and not connection.is_used:
                connection.close()
        elif connection.is_reusable:
            self._idle[place].append(connection)
        else:
            connection.close()
            return
        if self._timer is None:
            self._timer = loop.call_later(self._keep, self._close_old)

    def _close_old(self) -> None:
        """Close connections that were idle for too long, and look again when the next one will have been."""
        loop = asyncio.get_running_loop()
        now = loop.time()
        latest = now - self._keep
        self._timer = None
        oldest: list[float] = []
        for place, line in [*self._idle.items()]:
            while line and (line[0].idle_since <= latest or not line[0].is_reusable):
                line.popleft().close()
            if line:
                oldest.append(line[0].idle_since)
            else:
                del self._idle[place]
        for place, shared in [*self._shared.items()]:
            old = [each for each in shared if not each.is_used and (each.idle_since <= latest or not each.is_open)]
            for connection in old:
                shared.remove(connection)
                connection.close()
            if shared:
                oldest.append(min(now if each.is_used else each.idle_since for each in shared))
            else:
                del self._shared[place]
        if oldest:
            self._timer = loop.call_at(min(oldest) + self._keep, self._close_old)

    def close(self) -> None:
        """Close all idle connections."""
        if self._timer is not None:
            self._timer.cancel()
        while self._shared:
            _, shared = self._shared.popitem()
            for connection in shared:
                connection.close()
        while self._idle:
            _, line = self._idle.popitem()
            for connection in line:
                connection.close()
