"""HTTP/1.1 connections of the HTTP executor: one request after another, and nothing that a call does not need.

The sessions in `dial` open the connections and check every address; aiohttp's requests and responses cost more than the rest
of a call together (decision 0051). A connection belongs to one reach and one origin. It is used again only if its last answer
was read to its end and said so.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import NamedTuple

import httptools

from horai.core.callbacks import ANSWER_LIMIT, Answer
from horai.engine.executors.origins import TargetAddress

HEAD_LIMIT = 64 * 1024
"""The longest status line and headers, in bytes, that are read."""
SWITCHING_PROTOCOLS, NO_CONTENT, NOT_MODIFIED = 101, 204, 304


class Disconnected(Exception):
    """The target closed the connection before the end of the headers."""


class NotHttp(Exception):
    """The target's bytes are no answer of HTTP."""


class NotProcessed(Exception):
    """The target said that it has not begun to process the request."""


class CallRequest(NamedTuple):
    """A request. The headers were checked: none of them contains a line break."""

    method: str
    address: TargetAddress
    headers: Mapping[str, str]
    body: bytes

    def to_bytes(self) -> bytes:
        """Return the request as HTTP/1.1 sends it."""
        lines = [f"{self.method} {self.address.path} HTTP/1.1", f"Host: {self.address.host}"]
        lines += [f"{name}: {value}" for name, value in self.headers.items()]
        head = "\r\n".join((*lines, f"Content-Length: {len(self.body)}", "\r\n"))
        return head.encode("latin-1") + self.body


def answer_timer(waiter: "asyncio.Future[Answer]", deadline: float) -> asyncio.TimerHandle:
    """Raise TimeoutError in the call that waits for an answer at `deadline`, by the clock of the loop."""
    return asyncio.get_running_loop().call_at(deadline, _expire, waiter)


class HttpConnection(asyncio.Protocol):
    """An open connection. `close` closes it and everything that belongs to it."""

    def __init__(self, transport: asyncio.Transport, close: Callable[[], None]) -> None:
        self._transport = transport
        self._close = close
        self.is_reusable = True
        self.idle_since = 0.0
        self._waiter: asyncio.Future[Answer] | None = None
        self._parser = self._new_parser()
        self._begin()
        self._dialled = transport.get_protocol()
        transport.set_protocol(self)

    def _new_parser(self) -> httptools.HttpResponseParser:
        parser = httptools.HttpResponseParser(self)
        parser.set_dangerous_leniencies(
            lenient_headers=True, lenient_optional_cr_before_lf=True, lenient_spaces_after_chunk_size=True
        )
        return parser

    def _begin(self) -> None:
        """Forget the last answer."""
        self._headers: dict[str, str] = {}
        self._body = b""
        self._status = 0
        self._head_size = 0

    async def exchange(self, request: CallRequest, deadline: float) -> Answer:
        """Send a request and return its answer. Raise TimeoutError at `deadline`, by the clock of the loop.

        Cancelling it, or any error, closes the connection: an answer that comes later has no reader.
        """
        waiter: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiter = waiter
        timer = answer_timer(waiter, deadline)
        try:
            self._transport.write(request.to_bytes())
            return await waiter
        except BaseException:
            self.abort()
            raise
        finally:
            timer.cancel()
            self._waiter = None

    def abort(self) -> None:
        """Close the connection at once, also if a request has been sent in part."""
        self.is_reusable = False
        self._transport.abort()
        self._close()

    def close(self) -> None:
        """Close an idle connection."""
        self.is_reusable = False
        self._close()

    def data_received(self, data: bytes) -> None:
        if self._waiter is None:  # it answers no request
            self.abort()
            return
        if not self._status:
            self._head_size += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self.is_reusable = False
        except httptools.HttpParserError:
            self._fail(NotHttp())
        if not self._status and self._head_size > HEAD_LIMIT:
            self._fail(NotHttp())

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_reusable = False
        if not self._status:
            self._fail(Disconnected())
        else:
            self._finish("broke off" if self._is_bounded() else None)
        self._dialled.connection_lost(exc)  # its session waits for this when it closes
        self._close()

    def on_message_begin(self) -> None:
        if self._waiter is None or self._waiter.done():  # more than one answer to a request
            self.is_reusable = False

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers.setdefault(name.decode("latin-1").lower(), value.decode("utf-8", "surrogateescape"))

    def on_headers_complete(self) -> None:
        self._status = self._parser.get_status_code()

    def on_body(self, body: bytes) -> None:
        self._body += body
        if len(self._body) > ANSWER_LIMIT:
            self.is_reusable = False
            self._finish(f"is longer than {ANSWER_LIMIT // 1024} kB")
            self.abort()

    def on_message_complete(self) -> None:
        if self._status < 200 and self._status != SWITCHING_PROTOCOLS:  # the final answer follows
            self._begin()
            return
        if not self._parser.should_keep_alive() or self._transport.get_write_buffer_size():
            self.is_reusable = False
        self._finish(None)

    def _is_bounded(self) -> bool:
        """Return whether the headers say where the body ends; otherwise it ends with the connection."""
        if self._status in {NO_CONTENT, NOT_MODIFIED}:
            return True
        return "content-length" in self._headers or "transfer-encoding" in self._headers

    def _finish(self, fault: str | None) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(Answer(self._status, self._headers, self._body, fault))
            self._begin()

    def _fail(self, error: Exception) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_exception(error)


def _expire(waiter: "asyncio.Future[Answer]") -> None:
    if not waiter.done():
        waiter.set_exception(TimeoutError())
