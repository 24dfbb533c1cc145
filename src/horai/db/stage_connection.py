"""The connection of one loop, which reopens itself after the database was unavailable."""

from datetime import timedelta

from horai.db.pool import COMMAND_TIMEOUT, IDLE_TIMEOUT, LOOP_LOCK_TIMEOUT, Plans, Platform, close, connect


class StageConnection:
    """One dedicated connection, opened at first use and again after `drop`."""

    def __init__(
        self,
        url: str,
        application: str,
        command_timeout: timedelta = COMMAND_TIMEOUT,
        lock_timeout: timedelta = LOOP_LOCK_TIMEOUT,
        idle_timeout: timedelta = IDLE_TIMEOUT,
        plans: Plans = Plans.KEPT,
    ) -> None:
        self._url = url
        self._application = application
        self._command_timeout = command_timeout
        self._lock_timeout = lock_timeout
        self._idle_timeout = idle_timeout
        self._plans = plans
        self._connection: Platform | None = None

    async def get(self) -> Platform:
        """Return the open connection; reconnect if it was closed."""
        if self._connection is None or self._connection.is_closed():
            self._connection = await connect(
                self._url, self._application, self._command_timeout, self._lock_timeout, self._idle_timeout, self._plans
            )
        return self._connection

    def drop(self) -> None:
        """Terminate the connection at once: after an error it may still have a statement in progress."""
        if self._connection is not None:
            self._connection.terminate()
            self._connection = None

    async def close(self) -> None:
        """Close the connection, if it is open."""
        if self._connection is not None and not self._connection.is_closed():
            await close(self._connection)
        self._connection = None
