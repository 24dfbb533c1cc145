"""Log lines about refused requests: one per kind and minute, with a count."""

import asyncio
from collections import Counter
from enum import StrEnum

import structlog

log = structlog.get_logger(__name__)

FIRST = 1.0
"""Seconds from the first event of a kind to its log line: a burst is one line."""
WINDOW = 60.0
"""Seconds between two lines of the same kind."""


class Abuse(StrEnum):
    """A reason to refuse or end a request before it is complete."""

    LARGE_HEADERS = "headers too large"
    SLOW_HEADERS = "headers too slow"
    SLOW_BODY = "body too slow"
    TOO_MANY_CONNECTIONS = "too many connections"
    TOO_MANY_BODIES = "too many bytes of bodies in memory"
    NOT_HTTP = "not valid HTTP"
    DISCONNECT = "client disconnected before its request was complete"


class AbuseLog:
    """A log of events that writes one line with a count per kind and window."""

    def __init__(self, first: float = FIRST, window: float = WINDOW) -> None:
        self._first = first
        self._window = window
        self._counts: Counter[Abuse] = Counter()
        self._addresses: dict[Abuse, str] = {}
        self._timers: dict[Abuse, asyncio.TimerHandle] = {}

    def note(self, kind: Abuse, address: str) -> None:
        """Count one event; `address` is the client's."""
        self._counts[kind] += 1
        self._addresses[kind] = address
        if kind not in self._timers:
            self._timers[kind] = asyncio.get_running_loop().call_later(self._first, self._tell, kind)

    def close(self) -> None:
        """Log the counts that have not been logged yet."""
        for kind, timer in self._timers.items():
            timer.cancel()
            self._log(kind)
        self._timers.clear()

    def _tell(self, kind: Abuse) -> None:
        if self._log(kind):
            self._timers[kind] = asyncio.get_running_loop().call_later(self._window, self._tell, kind)
        else:
            del self._timers[kind]

    def _log(self, kind: Abuse) -> bool:
        count = self._counts.pop(kind, 0)
        if count:
            log.warning("requests limited", kind=kind.value, count=count, last_address=self._addresses[kind])
        return count > 0
