"""WebSockets on the server's connections, with a limit on how many there are, and on how long one may stop reading.

The protocol of HTTP hands a connection over after its headers are read (protocol.py).
"""

import asyncio
from typing import Any, cast

from uvicorn.config import Config
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from horai.api.connection_limits import ConnectionLimits

UNREAD_WITHIN = 30.0
"""Seconds for which the buffers of a connection may be full. A peer that reads nothing does not answer a close either."""


class WorkerSocketProtocol(WebSocketsSansIOProtocol):
    """One WebSocket. The server counts the open ones in `app.state.door`."""

    def __init__(self, config: Config, *args: Any, **kwargs: Any) -> None:
        super().__init__(config, *args, **kwargs)
        self._door: ConnectionLimits = cast("Any", config.app).state.door
        self._is_counted = False
        self._unread: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Count the connection, or close it if there are too many."""
        super().connection_made(transport)
        self._is_counted = self._door.admit_socket()
        if not self._is_counted:
            transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop counting the connection."""
        super().connection_lost(exc)
        self._stop_timer()
        if self._is_counted:
            self._is_counted = False
            self._door.leave_socket()

    def pause_writing(self) -> None:
        """Abort the connection unless the peer reads again in time."""
        super().pause_writing()
        self._unread = asyncio.get_running_loop().call_later(UNREAD_WITHIN, self.transport.abort)

    def resume_writing(self) -> None:
        """Keep the connection: the peer reads."""
        super().resume_writing()
        self._stop_timer()

    def _stop_timer(self) -> None:
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None
