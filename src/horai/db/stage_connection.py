"""The connection of a loop, or of several that take turns, which reopens itself after the database was unavailable."""

import asyncio
import time
from datetime import timedelta

from horai.db.pool import COMMAND_TIMEOUT, IDLE_TIMEOUT, LOOP_LOCK_TIMEOUT, Plans, Platform, close, connect

REST_AFTER = 30.0
"""Seconds without use after which a connection that may rest is closed."""


class StageConnection:
    """One dedicated connection, opened at first use and again after `drop` and `rest`.

    Stages that share it step in its `turn`, so that no statement of one is in a transaction of another. `may_rest` is for
    stages that do nothing until there is work.
    """

    def __init__(
        self,
        url: str,
        application: str,
        command_timeout: timedelta = COMMAND_TIMEOUT,
        lock_timeout: timedelta = LOOP_LOCK_TIMEOUT,
        idle_timeout: timedelta = IDLE_TIMEOUT,
        plans: Plans = Plans.KEPT,
        *,
        may_rest: bool = False,
    ) -> None:
        self.turn = asyncio.Lock()
        self._may_rest = may_rest
        self._used_at = 0.0
        self._url = url
        self._application = application
        self._command_timeout = command_timeout
        self._lock_timeout = lock_timeout
        self._idle_timeout = idle_timeout
        self._plans = plans
        self._connection: Platform | None = None

    @property
    def is_open(self) -> bool:
        """Return whether the connection is open, as far as this process knows."""
        return self._connection is not None and not self._connection.is_closed()

    async def get(self) -> Platform:
        """Return the open connection; reconnect if it was closed."""
        self._used_at = time.monotonic()
        if self._connection is None or self._connection.is_closed():
            self._connection = await connect(
                self._url, self._application, self._command_timeout, self._lock_timeout, self._idle_timeout, self._plans
            )
        return self._connection

    async def rest(self) -> None:
        """Close the connection if it may rest and has not been used for `REST_AFTER`. Call this between steps."""
        if self._may_rest and self._connection is not None and time.monotonic() - self._used_at >= REST_AFTER:
            await self.close()

    def drop(self) -> None:
        """Terminate the connection at once: after an error it may still have a statement in progress."""
        if self._connection is not None:
            self._connection.terminate()
            self._connection = None

    async def close(self) -> None:
        """Close the connection, if it is open."""
        connection, self._connection = self._connection, None
        if connection is not None and not connection.is_closed():
            await close(connection)
