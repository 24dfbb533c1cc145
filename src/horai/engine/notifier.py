"""The notifier: the stage that sends this process's wakes to the other processes.

A caller only adds a wake to a batch and never waits for the database. The first wake after a quiet period is sent at
once, later ones together at the end of an interval. A failed send is repeated: an idle connection may have been cut
long ago, and without the wakes only a sweep of the other processes would find the rows. While the database is away,
wakes are merged into fewer and broader ones.
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
    """The stage that sends wakes. A wake costs at most one statement; a quiet period costs none."""

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
        """Return the backend pid that listeners see as the sender of our notifications; None before the first."""
        return self._backend_pid

    def tell(self, wake: Wake) -> None:
        """Add a wake to the batch. Only the first wake of an interval signals the loop; the others are sent with it."""
        if self._bundle.is_empty:
            self.signal.set()
        self._bundle.add(wake)

    async def step(self, now: datetime) -> datetime:
        """Send the batch when its interval is over."""
        if self._bundle.is_empty:
            return now + IDLE
        ready_at = self._debounce.ready_at(now)
        if ready_at > now:
            return ready_at
        self._debounce = self._debounce.after(now, self._bundle.wakes)
        await self._send()
        return now + IDLE if self._bundle.is_empty else self._debounce.ready_at(now)

    async def flush(self) -> None:
        """Send the batch without waiting for its interval. Call this once the loop has ended.

        Other processes need these wakes to find the rows that this one leaves.
        """
        try:
            while not self._bundle.is_empty:
                await self._send()
        except Exception as error:
            log.warning("final wakes not sent; sweeps will find their rows", error=repr(error))

    async def _send(self) -> None:
        taken = self._bundle.take()
        try:
            connection = await self.line.get()
            self._backend_pid = connection.get_server_pid()
            await notify(connection, to_text(taken))
        except BaseException:
            for wake in taken:  # it may have been heard: sending it twice does no harm
                self._bundle.add(wake)
            raise
        self.sent += 1
