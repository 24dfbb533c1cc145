"""HTTP/1.1 on one connection, with limits on size and time that hold before a route is reached.

uvicorn's protocol reads headers of any size, waits for them without a limit, and accepts any number of connections.
`LimitedProtocol` refuses such requests with a problem document (400, 408, 431, 503) and closes the connection.
"""

from typing import Any, cast

import httptools
from starlette.types import Receive, Scope, Send
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from horai.api.abuse_log import Abuse
from horai.api.connection_limits import ConnectionLimits, HeldBody
from horai.api.problems import problem
from horai.api.request_turns import METER, RequestMeter
from horai.core.errors import Busy, HeadersTooLarge, HoraiError, Malformed, TooSlow
from horai.operations.loop_time import metered
from horai.text import Hint, Refused

PIECE = 16 * 1024
"""Bytes given to the parser at a time. The protocol checks limits between two pieces."""
FRAMING_PER_BYTE = 16
"""Bytes of chunk sizes and trailers allowed per byte of a body, in addition to the limit of the headers."""
PIPELINED = 16
"""Requests that may wait behind the one in progress."""
LINGER = 1.0
"""Seconds for a refused client to read the answer, and for an answered one to finish its body."""
HELD = "horai.held"
SOCKET_PATH = b"/api/v1/worker"


class LimitedProtocol(HttpToolsProtocol):
    """One connection. The limits and the counts of all connections are in `app.state.door`."""

    def __init__(self, config: Config, *args: Any, **kwargs: Any) -> None:
        super().__init__(config, *args, **kwargs)
        self._door: ConnectionLimits = cast("Any", config.app).state.door
        self._inner = self.app
        self.app = self._serve
        self.address = ""
        self._is_refused = False
        self._refusal: tuple[Abuse, HoraiError] | None = None
        self._is_open = False  # a message has begun and is not complete
        self._has_head = False  # its headers are complete
        self._messages = 0
        self._head = 0
        self._body = 0
        self._framing = 0
        self._held = HeldBody()
        self._since = 0.0
        self._answered_at: float | None = None
        self._timer: Any = None

    def connection_made(self, transport: Any) -> None:
        """Admit the connection, or refuse it with 503."""
        super().connection_made(transport)
        self.address = self.client[0] if self.client else ""
        self._since = self.loop.time()
        if self._door.admit(self):
            self._watch()
            return
        says = Refused.NO_ROOM_FOR_CONNECTION(most=self._door.connections, per_address=self._door.per_address)
        error = Busy(says, Hint.CLOSE_CONNECTIONS(), extra={"retryAfter": "5"})
        self._refuse(Abuse.TOO_MANY_CONNECTIONS, error, linger=False)

    def connection_lost(self, exc: Exception | None) -> None:
        """Release the connection's count and its body bytes."""
        if self._is_open and self._has_head and not self._is_refused and not self.cycle.response_complete:
            self._door.tally.note(Abuse.DISCONNECT, self.address)
        super().connection_lost(exc)
        self._door.leave(self)
        for cycle, _ in self.pipeline:
            self._release(cycle.scope)
        self.pipeline.clear()
        if self._timer is not None:
            self._timer.cancel()

    def evict(self) -> None:
        """Close the connection to make room for another; a half-sent request gets 408."""
        if self._is_refused or not self._is_open or self._has_head:
            self.transport.abort()
        else:
            self._refuse(None, self._headers_too_slow(), linger=False)

    def data_received(self, data: bytes) -> None:
        """Feed the parser, and check the limits between the pieces."""
        if self._is_refused:
            return
        self._unset_keepalive_if_required()
        if not self._is_open:
            self._since = self.loop.time()
        for start in range(0, len(data), PIECE):
            self._feed(data if len(data) <= PIECE else data[start : start + PIECE])
            if self._is_refused:
                return
        if self._is_open:
            self._watch()

    def _feed(self, piece: bytes) -> None:
        messages, body, was_open = self._messages, self._body, self._is_open
        try:
            cast("Any", self.parser).feed_data(piece)
        except httptools.HttpParserUpgrade:
            if self._should_upgrade():
                self._hand_over()
            return  # any other request is served by HTTP/1.1, as RFC 9110 allows
        except httptools.HttpParserError:
            refusal = self._refusal or (Abuse.NOT_HTTP, Malformed(Refused.NOT_HTTP(), Hint.CHECK_CLIENT()))
            self._refuse(*refusal)
            return
        if messages == self._messages:
            self._framing += len(piece) - (self._body - body)
        elif not was_open:
            self._framing = len(piece) - self._body
        if self._is_open and self._framing > self._door.limits.header_bytes + FRAMING_PER_BYTE * self._body:
            self._refuse(Abuse.LARGE_HEADERS, self._headers_too_large())

    def _should_upgrade(self) -> bool:
        """Return whether the request opens a WebSocket. Only the path of workers has one."""
        return self.url.partition(b"?")[0] == SOCKET_PATH and super()._should_upgrade()

    def _hand_over(self) -> None:
        """Leave the connection to the protocol of WebSockets, which has limits of its own."""
        if self._timer is not None:
            self._timer.cancel()
        self._door.leave(self)
        self._is_open = False
        self.handle_websocket_upgrade()

    def on_message_begin(self) -> None:
        """Start counting for one more request."""
        super().on_message_begin()
        self._messages += 1
        self._is_open, self._has_head, self._answered_at = True, False, None
        self._head = self._body = self._framing = 0
        self._held = HeldBody()

    def on_url(self, url: bytes) -> None:
        """Count the URL with the headers."""
        self._count_head(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Count a field. Ignore trailers: they must not become headers of the request."""
        self._count_head(len(name) + len(value) + 4)
        if self._has_head:
            return
        if len(self.headers) >= self._door.limits.header_fields:
            self._stop(Abuse.LARGE_HEADERS, self._headers_too_large())
        super().on_header(name, value)

    def _count_head(self, size: int) -> None:
        self._head += size
        if self._head > self._door.limits.header_bytes:
            self._stop(Abuse.LARGE_HEADERS, self._headers_too_large())

    def on_headers_complete(self) -> None:
        """Start the request, and the time limit of its body."""
        self._has_head = True
        if len(self.pipeline) >= PIPELINED:
            self._stop(Abuse.NOT_HTTP, Malformed(Refused.NOT_HTTP(), Hint.CHECK_CLIENT()))
        self._since = self.loop.time()
        self._door.set_busy(self)
        self.scope[HELD] = self._held  # pyright: ignore[reportGeneralTypeIssues]
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Pass a part of the body on if the bodies of all requests fit into their limit."""
        self._body += len(body)
        if not self.cycle.response_complete and not self._door.hold(self._held, len(body)):
            says = Refused.NO_ROOM_FOR_BODY(most=self._door.limits.bodies_in_memory)
            self._stop(Abuse.TOO_MANY_BODIES, Busy(says, Hint.SEND_ONE_AT_A_TIME(), extra={"retryAfter": "5"}))
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Note that the request is complete."""
        self._is_open = False
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Give the client `LINGER` seconds to finish a body that the server no longer reads."""
        super().on_response_complete()
        if self.cycle.response_complete:
            self._door.set_idle(self)
            if self._is_open:
                self._answered_at = self.loop.time()
                self._watch()

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        meter = scope[METER] = RequestMeter()
        try:
            await metered(cast("Any", self._inner)(scope, receive, send), meter.charge)
        finally:
            meter.close()
            self._release(scope)

    def _release(self, scope: Any) -> None:
        self._door.release(scope[HELD])

    def _watch(self) -> None:
        """Set a timer for the deadline of the headers or the body."""
        if self._timer is None:
            self._timer = self.loop.call_at(self._deadline(), self._check_time)

    def _deadline(self) -> float:
        limits = self._door.limits
        if self._answered_at is not None:
            return self._answered_at + LINGER
        if not self._has_head or not self._is_open:
            return self._since + limits.header_time.total_seconds()
        return self._since + limits.body_time.total_seconds() + self._body / limits.body_rate

    def _check_time(self) -> None:
        self._timer = None
        if self._is_refused or (self._messages and not self._is_open):
            return
        if self.flow.read_paused:  # the server does not read: the client is not to blame
            self._since = self.loop.time()
        if self.loop.time() < self._deadline():
            self._watch()
        elif self._answered_at is not None:
            self.transport.close()
        elif not self._messages:
            self._door.tally.note(Abuse.SLOW_HEADERS, self.address)
            self.transport.close()
        elif not self._has_head:
            self._refuse(Abuse.SLOW_HEADERS, self._headers_too_slow())
        else:
            limits = self._door.limits
            says = Refused.BODY_TOO_SLOW(seconds=f"{limits.body_time.total_seconds():g}", rate=limits.body_rate)
            self._refuse(Abuse.SLOW_BODY, TooSlow(says, Hint.SEND_FASTER()))

    def _headers_too_slow(self) -> TooSlow:
        seconds = f"{self._door.limits.header_time.total_seconds():g}"
        return TooSlow(Refused.HEADERS_TOO_SLOW(seconds=seconds), Hint.SEND_FASTER())

    def _headers_too_large(self) -> HeadersTooLarge:
        limits = self._door.limits
        says = Refused.HEADERS_TOO_LARGE(bytes=limits.header_bytes, fields=limits.header_fields)
        return HeadersTooLarge(says, Hint.SEND_FEWER_HEADERS())

    def _stop(self, kind: Abuse, error: HoraiError) -> None:
        """Refuse from inside the parser. The parser does not pass exceptions on, so `_feed` answers."""
        self._refusal = (kind, error)
        raise error

    def _refuse(self, kind: Abuse | None, error: HoraiError, *, linger: bool = True) -> None:
        """Answer with a problem, unless a response has started, and close the connection.

        The kernel discards a response if unread data is left at the close; with `linger` the client can read it first.
        """
        self._is_refused = True
        if kind is not None:
            self._door.tally.note(kind, self.address)
        current = cast("RequestResponseCycle | None", self.cycle)
        is_answering = current is not None and not current.response_complete and current.response_started
        if current is not None and not current.response_complete:
            current.disconnected = True
            current.message_event.set()
        if is_answering or self.pipeline or self._answered_at is not None:
            self.transport.abort()
            return
        self.transport.write(_written(error))
        if not linger:
            self.transport.close()
            return
        self._door.set_idle(self)
        self.transport.write_eof()
        self.flow.pause_reading()
        self.loop.call_later(LINGER, self.transport.abort)


def _written(error: HoraiError) -> bytes:
    """Return the complete response to a request that no route has seen."""
    response = problem(error)
    headers = [*response.raw_headers, (b"connection", b"close")]
    lines = b"".join(b"%b: %b\r\n" % field for field in headers)
    return STATUS_LINE[response.status_code] + lines + b"\r\n" + bytes(response.body)
