"""The listener: the stage that hears wakes of other processes.

LISTEN can fail silently: a pooler gives the connection to another client, or the network drops it. So the listener
proves it again and again: the lease's heartbeat sends the node's incarnation on the channel. A process that has not
heard its own heartbeat for too long does not count as listening, even if its connection looks fine. Until it hears one
again, claimers sweep often.

Every client of the database may notify: a notification is only a hint, is parsed strictly, and is never passed on.
"""

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import structlog

from horai.core.wakes import EverywhereWake, beat_text, from_text, is_beat
from horai.db.notify import listen
from horai.db.pool import Platform
from horai.db.stage_connection import StageConnection
from horai.db.wakeups import Wakeups
from horai.engine.notifier import Notifier

log = structlog.get_logger(__name__)


class Listener:
    """The stage that hears. It sends the database only LISTEN, once per connection.

    `incarnation` returns the incarnation whose heartbeat is ours; `patience` is how long to go without hearing it.
    """

    name = "listener"

    def __init__(
        self,
        line: StageConnection,
        wakeups: Wakeups,
        notifier: Notifier,
        incarnation: Callable[[], int],
        patience: timedelta,
    ) -> None:
        self.line = line
        self.signal = asyncio.Event()
        self.ignored = 0
        self._wakeups = wakeups
        self._notifier = notifier
        self._incarnation = incarnation
        self._patience = patience
        self._connection: Platform | None = None
        self._is_proven = False
        self._was_beat_heard = False
        self._proven_at: datetime | None = None

    @property
    def is_listening(self) -> bool:
        """Return whether this process would hear a wake of another one, according to the last heartbeat."""
        return self._is_proven and self._connection is not None and not self._connection.is_closed()

    async def step(self, now: datetime) -> datetime:
        """Listen on the current connection, and drop a connection that has been silent for too long."""
        connection = await self.line.get()
        if connection is not self._connection or self._proven_at is None:
            self._is_proven = self._was_beat_heard = False
            await self._attach(connection)
            self._proven_at = now
        if self._was_beat_heard:
            self._was_beat_heard = False
            self._is_proven, self._proven_at = True, now
        self._proven_at = min(self._proven_at, now)  # a clock that was set back must not lengthen the patience
        if now < self._proven_at + self._patience:
            return self._proven_at + self._patience
        log.warning("own heartbeat not heard; reconnecting", patience=str(self._patience))
        self._is_proven = False
        self.line.drop()
        return now

    async def _attach(self, connection: Platform) -> None:
        """Start to listen, then wake all stages once: earlier notifications did not reach this process."""
        await listen(connection, self._hear)
        connection.add_termination_listener(self._ended)
        self._connection = connection
        self._wakeups.deliver(EverywhereWake())

    def _ended(self, connection: Any) -> None:
        if connection is self._connection:
            self._connection = None
            self.signal.set()

    def _hear(self, connection: Any, pid: int, _channel: str, payload: Any) -> None:
        if connection is not self._connection:
            return
        if payload == beat_text(self._incarnation()):
            self._was_beat_heard = True
            self.signal.set()
        elif pid != self._notifier.backend_pid:
            self._pass(str(payload))

    def _pass(self, payload: str) -> None:
        wakes = from_text(payload)
        self.ignored += not wakes and not is_beat(payload)
        for wake in wakes:
            self._wakeups.deliver(wake)
