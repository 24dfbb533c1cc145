"""A small pooler that shares server sessions by transaction, for machines without pgbouncer."""

import asyncio
import struct
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from urllib.parse import parse_qs, urlsplit

from faults.proxy import CHUNK, Messages

PROTOCOL = 196_608
IDLE = b"I"


def framed(kind: bytes, body: bytes) -> bytes:
    return kind + struct.pack("!I", len(body) + 4) + body


class Session:
    """One session of the server, and what the server said at its start."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._messages = Messages(has_startup=False)
        self.greeting = b""

    @classmethod
    async def open(cls, socket: str, user: str, database: str) -> "Session":
        session = cls(*await asyncio.open_unix_connection(socket))
        body = struct.pack("!I", PROTOCOL) + f"user\0{user}\0database\0{database}\0\0".encode()
        session.send(struct.pack("!I", len(body) + 4) + body)
        session.greeting = await session.answer()
        return session

    def send(self, data: bytes) -> None:
        self._writer.write(data)

    async def answer(self, to: asyncio.StreamWriter | None = None) -> bytes:
        """Pass messages on until the transaction has ended; all of them."""
        said = b""
        while data := await self._reader.read(CHUNK):
            said += data
            if to is not None:
                to.write(data)
            if any(kind == b"Z" and body == IDLE for kind, body in self._messages.feed(data)):
                break
        return said

    def close(self) -> None:
        self._writer.transport.abort()


class Sharing:
    """Gives each transaction the session that was used last."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        query = parse_qs(parts.query)
        self._socket = f"{query['host'][0]}/.s.PGSQL.{query['port'][0]}"
        self._user, self._database = parts.username or "", parts.path.lstrip("/")
        self._idle: list[Session] = []

    async def _take(self) -> Session:
        return self._idle.pop() if self._idle else await Session.open(self._socket, self._user, self._database)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        frontend = Messages(has_startup=True)
        session, lent = await self._take(), None
        self._idle.append(session)
        try:
            while data := await reader.read(CHUNK):
                for kind, body in frontend.feed(data):
                    if kind == b"X":
                        return
                    if kind == b"":  # the start of a connection: settings are dropped
                        writer.write(session.greeting)
                        continue
                    if lent is None or lent.done():
                        session = await self._take()
                        lent = asyncio.create_task(self._lend(session, writer))
                    session.send(framed(kind, body))
        finally:
            writer.transport.abort()
            if lent is not None:
                lent.cancel()
                await asyncio.gather(lent, return_exceptions=True)

    async def _lend(self, session: Session, writer: asyncio.StreamWriter) -> None:
        try:
            await session.answer(writer)
        finally:
            self._idle.append(session)

    @asynccontextmanager
    async def listening(self) -> AsyncGenerator[str]:
        """The URL to connect to."""
        serving: set[asyncio.Task[None]] = set()

        def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.create_task(self._serve(reader, writer))
            serving.add(task)
            task.add_done_callback(lambda _: writer.transport.abort())  # a task cancelled before it began has not

        server = await asyncio.start_server(accept, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        try:
            yield f"postgresql://{self._user}@127.0.0.1:{port}/{self._database}?sslmode=disable"
        finally:
            server.close()
            for task in serving:
                task.cancel()
            await asyncio.gather(*serving, return_exceptions=True)
            for session in self._idle:
                session.close()
            await asyncio.sleep(0)
