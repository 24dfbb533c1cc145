"""A TCP proxy between a node and its database, that can misbehave as networks do.

    pass        bytes flow
    delay       each piece waits a little, in both directions
    blackhole   nothing arrives, nothing is refused; what was sent meanwhile arrives afterwards, as TCP sends it again
    reset       every connection breaks at once, and so does every new one

`cut_after` loses one answer: the statement reaches the server and takes effect there, its answer never comes back. The
proxy reads the frontend's messages to find it: asyncpg prepares a statement once and from then on only names it.

`stall_before_commit` makes a blackhole of it with a transaction open: the server waits for a COMMIT that does not come.
`stall_after` does so when a statement has gone out: the server waits for the node to read a long answer.

`hold_ends` passes on the last words of a server and not the end of its connection, as a slow network does.

`Proxy(url, is_dropped)` keeps notifications from the node, by their payloads; all else arrives.
"""

import asyncio
import struct
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import parse_qs, urlsplit

Mode = Literal["pass", "delay", "blackhole", "reset"]

DELAY = 0.05
CHUNK = 65_536


@dataclass
class Trap:
    """Waits for a statement by its name, or for the COMMIT of a transaction with it; springs once."""

    statement: str
    at_commit: bool
    stalls: bool = False
    sprung: asyncio.Event = field(default_factory=asyncio.Event)


class Messages:
    """Cuts a stream into the messages of PostgreSQL's protocol."""

    def __init__(self, *, has_startup: bool) -> None:
        self._buffer = b""
        self._has_startup = has_startup

    def feed(self, data: bytes) -> list[tuple[bytes, bytes]]:
        """The (type, body) of every message that is complete now; the startup message has no type."""
        self._buffer += data
        found: list[tuple[bytes, bytes]] = []
        while (size := self._size()) is not None and len(self._buffer) >= size:
            message, self._buffer = self._buffer[:size], self._buffer[size:]
            found.append((b"", message[4:]) if self._has_startup else (message[:1], message[5:]))
            self._has_startup = False
        return found

    def _size(self) -> int | None:
        if self._has_startup:
            return struct.unpack("!I", self._buffer[:4])[0] if len(self._buffer) >= 4 else None
        return 1 + struct.unpack("!I", self._buffer[1:5])[0] if len(self._buffer) >= 5 else None


class Link:
    """One connection through the proxy."""

    def __init__(self, proxy: "Proxy", client: asyncio.StreamWriter, server: asyncio.StreamWriter) -> None:
        self._proxy = proxy
        self._client = client
        self._server = server
        self._prepared: dict[bytes, bytes] = {}
        self._in_transaction: list[bytes] = []
        self._frontend = Messages(has_startup=True)
        self._backend = Messages(has_startup=False)
        self._pending: Trap | None = None
        self._withheld = b""
        self._is_stalling = False

    async def upstream(self, reader: asyncio.StreamReader) -> None:
        """Client to server."""
        while data := await reader.read(CHUNK):
            for kind, body in self._frontend.feed(data):
                self._note(kind, body)
            await self._proxy.transit()
            self._server.write(data)
            await self._server.drain()
            if self._is_stalling:
                self._proxy.set_mode("blackhole")

    async def downstream(self, reader: asyncio.StreamReader) -> None:
        """Server to client; the answer that a trap waits for is withheld, and lost when it did something."""
        while data := await reader.read(CHUNK):
            await self._proxy.transit()
            if self._proxy.is_dropped is not None:
                data = self._what_is_heard(data, self._proxy.is_dropped)
            if self._pending is None:
                self._client.write(data)
                await self._client.drain()
                continue
            self._withheld += data
            kinds = [kind for kind, _ in Messages(has_startup=False).feed(self._withheld)]
            if b"Z" not in kinds:
                continue
            if self._pending.at_commit or b"D" in kinds:
                self._pending.sprung.set()
                self._proxy.trap = None
                self.abort()
                return
            self._client.write(self._withheld)  # it claimed nothing: not the answer to lose
            self._pending, self._withheld = None, b""
        if self._proxy.holds_ends:
            self._proxy.ended.set()
            await asyncio.Event().wait()

    def _what_is_heard(self, data: bytes, is_dropped: Callable[[str], bool]) -> bytes:
        """The messages that are complete by now, without the notifications that are dropped."""
        heard = b""
        for kind, body in self._backend.feed(data):
            if kind == b"A":
                payload = body[4:].split(b"\0")[1].decode()  # behind the pid of the sender and the channel
                if is_dropped(payload):
                    self._proxy.dropped.append(payload)
                    continue
                self._proxy.heard.append(payload)
            heard += kind + struct.pack("!I", len(body) + 4) + body
        return heard

    def _note(self, kind: bytes, body: bytes) -> None:
        """Follows what the client asks, to know when the trap's statement goes out."""
        match kind:
            case b"P":
                name, text, _ = body.split(b"\0", 2)
                self._prepared[name] = text
            case b"B":
                _, name, _ = body.split(b"\0", 2)
                text = self._prepared.get(name, b"")
                self._in_transaction.append(text)
                self._arm(text, is_commit=False)
            case b"Q":
                word = body.upper()
                if word.startswith((b"BEGIN", b"START")):
                    self._in_transaction.clear()
                if word.startswith(b"COMMIT"):
                    for text in self._in_transaction:
                        self._arm(text, is_commit=True)
            case _:
                pass

    def _arm(self, text: bytes, *, is_commit: bool) -> None:
        trap = self._proxy.trap
        if trap is None or trap.at_commit is not is_commit or f"/* {trap.statement} */".encode() not in text:
            return
        if not trap.stalls:
            self._pending = trap
            return
        self._proxy.trap = None
        trap.sprung.set()
        if trap.at_commit:
            self._proxy.set_mode("blackhole")  # before it goes out
        else:
            self._is_stalling = True

    def abort(self) -> None:
        """Breaks both halves; the client sees a reset."""
        for writer in (self._client, self._server):
            writer.transport.abort()


class Proxy:
    """Listens on 127.0.0.1 for a server that only has a unix socket."""

    def __init__(self, url: str, is_dropped: Callable[[str], bool] | None = None) -> None:
        self.is_dropped = is_dropped
        self.heard: list[str] = []
        self.dropped: list[str] = []
        """Payloads of notifications; kept only by a proxy that drops some."""
        parts = urlsplit(url)
        query = parse_qs(parts.query)
        self._socket = f"{query['host'][0]}/.s.PGSQL.{query['port'][0]}"
        self._user, self._database = parts.username, parts.path.lstrip("/")
        self._port = 0
        self._links: set[Link] = set()
        self._flows = asyncio.Event()
        self._flows.set()
        self._mode: Mode = "pass"
        self.trap: Trap | None = None
        self.holds_ends = False
        self.ended = asyncio.Event()
        """Set when the server has ended a connection whose end is held."""

    @property
    def url(self) -> str:
        """Return the URL that a node connects to."""
        return f"postgresql://{self._user}@127.0.0.1:{self._port}/{self._database}?sslmode=disable"

    def set_mode(self, mode: Mode) -> None:
        self._mode = mode
        if mode == "blackhole":
            self._flows.clear()
        else:
            self._flows.set()
        if mode == "reset":
            self.break_all()

    def break_all(self) -> None:
        """Resets every connection that is open."""
        for link in list(self._links):
            link.abort()

    def hold_ends(self) -> None:
        """Keep connections open that the server ends from now on."""
        self.holds_ends = True

    def let_ends_through(self) -> None:
        """Break the connections that are open, and hold no end from now on."""
        self.holds_ends = False
        self.break_all()

    def cut_after(self, statement: str, *, at_commit: bool = False) -> Trap:
        """Loses the next answer to this statement that brings rows, or to the COMMIT of its transaction."""
        self.trap = Trap(statement, at_commit)
        return self.trap

    def stall_before_commit(self, statement: str) -> Trap:
        """From the next COMMIT of a transaction with this statement on, nothing arrives, that COMMIT neither."""
        self.trap = Trap(statement, at_commit=True, stalls=True)
        return self.trap

    def stall_after(self, statement: str) -> Trap:
        """Stall from the moment this statement has gone out: nothing arrives, and the node does not read its answer."""
        self.trap = Trap(statement, at_commit=False, stalls=True)
        return self.trap

    async def transit(self) -> None:
        """As long as a piece takes on its way."""
        if self._mode == "delay":
            await asyncio.sleep(DELAY)
        await self._flows.wait()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Carry a connection until one of its halves ends. However this ends, the client's half is closed."""
        try:
            if self._mode != "reset":
                await self._carry(reader, writer)
        finally:
            writer.transport.abort()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            server_reader, server_writer = await asyncio.open_unix_connection(self._socket)
        except OSError:
            return
        link = Link(self, writer, server_writer)
        self._links.add(link)
        halves = [
            asyncio.create_task(link.upstream(reader)),
            asyncio.create_task(link.downstream(server_reader)),
        ]
        try:
            await asyncio.wait(halves, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._links.discard(link)
            link.abort()  # before anything that another cancellation could end
            for half in halves:
                half.cancel()
            await asyncio.gather(*halves, return_exceptions=True)

    @asynccontextmanager
    async def listening(self) -> AsyncGenerator["Proxy"]:
        serving: set[asyncio.Task[None]] = set()
        is_closed = False

        def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            if is_closed:  # accepted before, and handed over after: there is no loop to close it later
                writer.transport.abort()
                return
            task = asyncio.create_task(self._serve(reader, writer))
            serving.add(task)
            task.add_done_callback(serving.discard)
            task.add_done_callback(lambda _: writer.transport.abort())  # a task cancelled before it began has not

        server = await asyncio.start_server(accept, "127.0.0.1", 0)
        self._port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            is_closed = True
            server.close()
            self.set_mode("reset")
            for task in list(serving):
                task.cancel()
            with suppress(asyncio.CancelledError):
                await asyncio.gather(*serving, return_exceptions=True)
            await asyncio.sleep(0)
