"""HTTP/2 connections of the HTTP executor: many requests at once on one connection.

A target offers HTTP/2 while TLS is agreed on (ALPN). The state of streams, header compression and windows is that of the package
`h2`. A call that ends early resets its own stream, and the other calls of the connection go on.
"""

import asyncio
from collections.abc import Callable

import h2.config
import h2.connection
import h2.errors
import h2.events
import h2.exceptions
import h2.settings

from horai.core.callbacks import ANSWER_LIMIT, Answer
from horai.engine.executors.http_connection import CallRequest, Disconnected, NotHttp, NotProcessed, answer_timer

MOST_STREAMS = 100
"""Requests at once on one connection, if the target allows more."""
FRAME_HEAD = 9
"""Bytes before the content of a frame. The first three of them are the size of the content."""
_PROTOCOL_ERRORS = (h2.exceptions.ProtocolError, ValueError)


class _Stream:
    """A request that waits for its answer."""

    def __init__(self, waiter: "asyncio.Future[Answer]", body: bytes) -> None:
        self.waiter = waiter
        self.unsent = memoryview(body)
        self.status = 0
        self.headers: dict[str, str] = {}
        self.body = b""

    def finish(self, fault: str | None) -> None:
        if not self.waiter.done():
            self.waiter.set_result(Answer(self.status, self.headers, self.body, fault))

    def fail(self, error: Exception) -> None:
        """End without an answer, or with the part of it that came."""
        if self.status:
            self.finish("broke off")
        elif not self.waiter.done():
            self.waiter.set_exception(error)


class Http2Connection(asyncio.Protocol):
    """An open connection. `close` closes it and everything that belongs to it."""

    def __init__(self, transport: asyncio.Transport, close: Callable[[], None]) -> None:
        self._transport = transport
        self._close = close
        self.idle_since = 0.0
        self._is_open = True
        self._streams: dict[int, _Stream] = {}
        self._unread = b""
        self._settled = asyncio.Event()
        self._state = h2.connection.H2Connection(h2.config.H2Configuration(client_side=True, header_encoding="utf-8"))
        self._dialled = transport.get_protocol()
        transport.set_protocol(self)
        self._state.initiate_connection()
        self._state.update_settings({h2.settings.SettingCodes.ENABLE_PUSH: 0})
        self._flush()

    @property
    def is_reusable(self) -> bool:
        """Return whether the connection takes another request now."""
        return self._is_open and len(self._streams) < min(
            MOST_STREAMS, self._state.remote_settings.max_concurrent_streams
        )

    @property
    def is_open(self) -> bool:
        """Return whether the connection takes requests, now or when another has ended."""
        return self._is_open

    @property
    def is_used(self) -> bool:
        """Return whether a request waits for its answer."""
        return bool(self._streams)

    async def settled(self) -> None:
        """Return when the target has told how many requests it takes, or is gone."""
        await self._settled.wait()

    async def exchange(self, request: CallRequest, deadline: float) -> Answer:
        """Send a request and return its answer. Raise TimeoutError at `deadline`, by the clock of the loop.

        Cancelling it, or an error of this request, resets its stream only.
        """
        waiter: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        stream = _Stream(waiter, request.body)
        timer = answer_timer(waiter, deadline)
        number = 0
        try:
            number = self._state.get_next_available_stream_id()
            self._state.send_headers(number, _headers_of(request), end_stream=not request.body)
            self._streams[number] = stream
            self._send(number, stream)
            self._flush()
            return await waiter
        except _PROTOCOL_ERRORS as error:
            self.abort()
            raise NotHttp from error
        finally:
            timer.cancel()
            if self._streams.pop(number, None) is not None:
                self._reset(number)

    def _send(self, number: int, stream: _Stream) -> None:
        """Send as much of the body as the target takes now."""
        while stream.unsent:
            size = min(
                len(stream.unsent), self._state.local_flow_control_window(number), self._state.max_outbound_frame_size
            )
            if size <= 0:
                return
            part, stream.unsent = stream.unsent[:size], stream.unsent[size:]
            self._state.send_data(number, bytes(part), end_stream=not stream.unsent)

    def _reset(self, number: int) -> None:
        """Tell the target that no answer is wanted, if the stream has not ended."""
        if not self._is_open:
            return
        try:
            self._state.reset_stream(number, h2.errors.ErrorCodes.CANCEL)
        except _PROTOCOL_ERRORS:  # it has ended
            return
        self._flush()

    def _flush(self) -> None:
        if data := self._state.data_to_send():
            self._transport.write(data)

    def abort(self) -> None:
        """Close the connection at once. Its requests fail."""
        self._is_open = False
        self._transport.abort()
        self._close()

    def close(self) -> None:
        """Close the connection. Requests that wait fail."""
        if self._is_open:
            self._is_open = False
            self._state.close_connection()
            self._flush()
        self._close()

    def data_received(self, data: bytes) -> None:
        self._unread += data
        try:
            self._read_frames()
        except _PROTOCOL_ERRORS:
            self._fail_all(NotHttp())
            self.abort()
            return
        self._flush()

    def _read_frames(self) -> None:
        """Read whole frames, one by one. `h2` reads none after a farewell, although answers under way follow it."""
        while len(self._unread) >= FRAME_HEAD:
            size = FRAME_HEAD + int.from_bytes(self._unread[:3])
            if size > FRAME_HEAD + self._state.max_inbound_frame_size:
                raise ValueError(size)
            if len(self._unread) < size:
                return
            frame, self._unread = self._unread[:size], self._unread[size:]
            for event in self._state.receive_data(frame):
                self._handle(event)

    def _handle(self, event: h2.events.Event) -> None:
        match event:
            case h2.events.ConnectionTerminated():
                self._retire(event.last_stream_id or 0)
                self._state.state_machine.state = h2.connection.ConnectionState.CLIENT_OPEN
            case h2.events.RemoteSettingsChanged() | h2.events.WindowUpdated():
                if isinstance(event, h2.events.RemoteSettingsChanged):
                    self._settled.set()
                for number, stream in self._streams.items():
                    self._send(number, stream)
            case h2.events.DataReceived():
                self._state.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
                if (stream := self._streams.get(event.stream_id)) is not None:
                    self._receive(event.stream_id, stream, event.data)
            case h2.events.ResponseReceived() | h2.events.StreamEnded() | h2.events.StreamReset():
                if (stream := self._streams.get(event.stream_id)) is not None:
                    self._answer(event, event.stream_id, stream)
            case _:
                pass

    def _answer(
        self,
        event: h2.events.ResponseReceived | h2.events.StreamEnded | h2.events.StreamReset,
        number: int,
        stream: _Stream,
    ) -> None:
        match event:
            case h2.events.ResponseReceived():
                for name, value in event.headers:
                    stream.headers.setdefault(str(name), str(value))
                stream.status = int(stream.headers.pop(":status"))
            case h2.events.StreamEnded():
                del self._streams[number]
                stream.finish(None)
                if stream.unsent:  # it answered before it had read the request
                    self._reset(number)
            case h2.events.StreamReset():
                del self._streams[number]
                is_refused = event.error_code == h2.errors.ErrorCodes.REFUSED_STREAM
                stream.fail(NotProcessed() if is_refused else Disconnected())

    def _receive(self, number: int, stream: _Stream, data: bytes) -> None:
        stream.body += data
        if len(stream.body) > ANSWER_LIMIT:
            stream.finish(f"is longer than {ANSWER_LIMIT // 1024} kB")
            del self._streams[number]
            self._reset(number)

    def _retire(self, last: int) -> None:
        """Take no more requests: the target goes away. It has not processed the streams after `last`."""
        self._is_open = False
        for number in [number for number in self._streams if number > last]:
            self._streams.pop(number).fail(NotProcessed())

    def _fail_all(self, error: Exception) -> None:
        while self._streams:
            self._streams.popitem()[1].fail(error)

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_open = False
        self._settled.set()
        self._fail_all(Disconnected())
        self._dialled.connection_lost(exc)  # its session waits for this when it closes
        self._close()


def _headers_of(request: CallRequest) -> list[tuple[str, str]]:
    """Return the header fields of a request. Reserved ones, and with them those of HTTP/1.1 alone, were left out before."""
    return [
        (":method", request.method),
        (":scheme", request.address.url.scheme),
        (":authority", request.address.host),
        (":path", request.address.path),
        *((name.lower(), value) for name, value in request.headers.items()),
        ("content-length", str(len(request.body))),
    ]
