"""Passes this process's wakes on to the other processes.

Whoever wakes only leaves a note: nobody waits for the database here. The first note after a calm is sent at once, the
next ones together at the end of an interval. What could not be sent is sent again: a line that has lain idle may have been
cut long ago, and the others would find the rows by a sweep only. With the database away the notes become few and broad.
"""

import asyncio
from datetime import datetime, timedelta

import structlog

from horai.core.debounce import Debounce
from horai.core.wake_batch import WakeBatch
from horai.core.wakes import Wake, to_text
from horai.db.notify import notify
from horai.db.stage_connection import StageConnection

log = structlog.get_logger(__name__)

IDLE = timedelta(minutes=1)


class Notifier:
    """The stage that sends. A wake costs it one statement at most; a calm none."""

    name = "notifier"

    def __init__(self, line: StageConnection) -> None:
        self.line = line
        self.signal = asyncio.Event()
        self.sent = 0
        self._bundle = WakeBatch()
        self._debounce = Debounce()
        self._backend_pid: int | None = None

    @property
    def backend_pid(self) -> int | None:
        """Who our notifications come from, as listeners see it; None before the first."""
        return self._backend_pid

    def tell(self, wake: Wake) -> None:
        """Leaves a note. Only the first of an interval rouses the loop: the others leave with it."""
        if self._bundle.is_empty:
            self.signal.set()
        self._bundle.add(wake)

    async def step(self, now: datetime) -> datetime:
        """Sends what is noted, when its time has come."""
        if self._bundle.is_empty:
            return now + IDLE
        ready_at = self._debounce.ready_at(now)
        if ready_at > now:
            return ready_at
        self._debounce = self._debounce.after(now, self._bundle.wakes)
        await self._send()
        return now + IDLE if self._bundle.is_empty else self._debounce.ready_at(now)

    async def flush(self) -> None:
        """Sends what is noted without waiting for its time, once the loop has ended: what is left behind is for others."""
        try:
            while not self._bundle.is_empty:
                await self._send()
        except Exception as error:
            log.warning("the last wakes were not sent; sweeps find what they were for", error=repr(error))

    async def _send(self) -> None:
        taken = self._bundle.take()
        try:
            connection = await self.line.get()
            self._backend_pid = connection.get_server_pid()
            await notify(connection, to_text(taken))
        except BaseException:
            for wake in taken:  # whether it was heard, nobody knows: twice does no harm
                self._bundle.add(wake)
            raise
        self.sent += 1
