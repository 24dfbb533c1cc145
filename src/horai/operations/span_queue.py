"""The queue of ended spans: a thread of its own exports them in batches.

Adding a span never blocks: a full queue drops it, and so does a collector that does not answer. Drops are counted.
"""

import threading
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import structlog

log = structlog.get_logger(__name__)

CAPACITY = 20_000
"""Spans that wait at most: about 20 MB."""
BATCH = 512
WAIT = 1.0
"""Seconds that a span waits for others before its batch is sent."""
SAY_EVERY = 60.0
"""Seconds between two log lines about dropped spans."""


class SpanQueue:
    """Ended spans on their way to the collector. `send` exports a batch and returns whether the collector took it."""

    def __init__(self, send: Callable[[Sequence[Any]], bool], capacity: int = CAPACITY) -> None:
        self._send = send
        self._capacity = capacity
        self._waiting: list[Any] = []
        self._changed = threading.Condition()
        self._is_closed = False
        self._said_at = -SAY_EVERY
        self._unsaid = 0
        self.exported = 0
        self.dropped = 0
        self._thread = threading.Thread(target=self._work, name="horai-spans", daemon=True)
        self._thread.start()

    def put(self, span: Any) -> None:
        """Add a span, from any thread. Drop it if the queue is full or closed."""
        with self._changed:
            if len(self._waiting) >= self._capacity or self._is_closed:
                self.dropped += 1
                self._unsaid += 1
                return
            self._waiting.append(span)
            if len(self._waiting) == BATCH:
                self._changed.notify()

    def close(self, within: timedelta) -> None:
        """Export the waiting spans for at most this time. Spans that are left then are dropped."""
        with self._changed:
            self._is_closed = True
            self._changed.notify()
        self._thread.join(within.total_seconds())
        if self._thread.is_alive():
            with self._changed:
                self.dropped += len(self._waiting)
                self._waiting.clear()
            log.warning("spans were not exported before the stop", dropped=self.dropped)

    def _work(self) -> None:
        while (batch := self._next()) is not None:
            if batch:
                self._export(batch)

    def _next(self) -> list[Any] | None:
        """Wait for a batch; return None when the queue is closed and empty."""
        with self._changed:
            if len(self._waiting) < BATCH and not self._is_closed:
                self._changed.wait(WAIT)
            batch, self._waiting = self._waiting[:BATCH], self._waiting[BATCH:]
            return None if self._is_closed and not batch else batch

    def _export(self, batch: list[Any]) -> None:
        try:
            is_sent = self._send(batch)
        except Exception as error:  # the thread goes on: the next batch may succeed
            log.warning("spans could not be encoded", error=repr(error))
            is_sent = False
        with self._changed:
            if is_sent:
                self.exported += len(batch)
            else:
                self.dropped += len(batch)
                self._unsaid += len(batch)
        if self._unsaid and time.monotonic() - self._said_at >= SAY_EVERY:
            log.warning("spans were dropped: is the collector running?", dropped=self._unsaid)
            self._said_at, self._unsaid = time.monotonic(), 0
