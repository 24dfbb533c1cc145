"""A response without an end: server-sent events for as long as both sides are connected."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable

import msgspec
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from horai.features.overview.feed import Feed, Reader
from horai.features.overview.topics import Topic
from horai.features.overview.wire_events import ChangeOut

MEDIA_TYPE = "text/event-stream"
HEARTBEAT = 15.0
"""Seconds of silence after which a comment is sent: proxies close connections that are silent for long."""
PATIENCE = 20.0
"""Seconds for which a reader may leave sent data unread; then it is dropped, and may reconnect."""
RETRY = b"retry: 2000\n\n"


class Stream(Response):
    """The response that sends a reader of the feed its messages."""

    media_type = MEDIA_TYPE

    def __init__(
        self,
        feed: Feed,
        reader: Reader,
        may_read: Callable[[], Awaitable[bool]],
        *,
        heartbeat: float = HEARTBEAT,
        patience: float = PATIENCE,
    ) -> None:
        super().__init__(None, 200, {"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        del self.headers["content-length"]
        self._feed = feed
        self._reader = reader
        self._may_read = may_read
        self._heartbeat = heartbeat
        self._patience = patience

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send messages until the reader disconnects, is too slow or loses its key, or the server stops."""
        leaving = asyncio.create_task(self._until_gone(receive))
        try:
            async with asyncio.timeout(self._patience):
                await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            await self._send(send, RETRY)
            while (topics := await self._reader.news(self._heartbeat)) is not None and await self._may_read():
                await self._send(send, self._message(topics))
            await self._send(send, b"", is_last=True)
        except (TimeoutError, OSError):
            return  # too slow, or disconnected: the server aborts an incomplete response
        finally:
            self._feed.leave(self._reader)
            leaving.cancel()

    def _message(self, topics: Iterable[Topic]) -> bytes:
        named = sorted(topics)
        if not named:
            return b": still here\n\n"
        data = msgspec.json.encode(ChangeOut.encode(topics=named))
        return b"event: change\nid: %b\ndata: %b\n\n" % (self._feed.id_of(self._reader).encode(), data)

    async def _send(self, send: Send, body: bytes, *, is_last: bool = False) -> None:
        async with asyncio.timeout(self._patience):
            await send({"type": "http.response.body", "body": body, "more_body": not is_last})

    async def _until_gone(self, receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self._reader.end()
