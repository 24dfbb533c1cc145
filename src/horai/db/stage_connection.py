"""A loop's own connection, which comes back by itself after the database was away."""

from datetime import timedelta

from horai.db.pool import COMMAND_TIMEOUT, IDLE_TIMEOUT, LOOP_LOCK_TIMEOUT, Dedicated, Plans, close, connect


class StageConnection:
    """One dedicated connection, opened at first need and again after `drop`."""

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
        self._connection: Dedicated | None = None

    async def get(self) -> Dedicated:
        """The connection, alive as far as anybody knows."""
        if self._connection is None or self._connection.is_closed():
            self._connection = await connect(
                self._url, self._application, self._command_timeout, self._lock_timeout, self._idle_timeout, self._plans
            )
        return self._connection

    def drop(self) -> None:
        """Cuts the connection at once: after an error nobody knows what it still has under way."""
        if self._connection is not None:
            self._connection.terminate()
            self._connection = None

    async def close(self) -> None:
        """Ends the connection, if there is one."""
        if self._connection is not None and not self._connection.is_closed():
            await close(self._connection)
        self._connection = None
