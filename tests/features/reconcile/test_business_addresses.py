"""A database whose URL came with a request: it is dialled where it was checked, and nothing of the node's own is sent there."""

import asyncio
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from drift import SQL, Desk, desk

from horai.core.outcome import FailedRetryable

NAME = "shop.test"
WANTS_PASSWORD = b"R\x00\x00\x00\x08\x00\x00\x00\x03"


def of(port: int, options: str = "", user: str = "postgres", database: str = "shop") -> dict[str, str]:
    url = f"postgresql://{user}@{NAME}:{port}/{database}{options}"
    return {"type": "sql", "query": SQL["query"], "databaseUrl": url}


@pytest.fixture(autouse=True)
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Resolve the name to this machine at its first lookup, and to an address without a server from then on.

    Return every lookup of it.
    """
    looks: list[str] = []
    look_up = socket.getaddrinfo

    def answer(host: Any, port: Any, *rest: Any, **named: Any) -> Any:
        if host != NAME:
            return look_up(host, port, *rest, **named)
        looks.append(host)
        return look_up("127.0.0.1" if len(looks) == 1 else "127.0.0.66", port, *rest, **named)

    monkeypatch.setattr(socket, "getaddrinfo", answer)
    return looks


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        with suppress(ConnectionError):
            while data := await reader.read(65_536):
                writer.write(data)
                await writer.drain()
    finally:
        writer.close()


@asynccontextmanager
async def over_tcp(url: str) -> AsyncGenerator[int]:
    """The database of `url`, which listens on a socket, at a port."""
    where = parse_qs(urlsplit(url).query)
    path = f"{where['host'][0]}/.s.PGSQL.{where['port'][0]}"

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        behind, before = await asyncio.open_unix_connection(path)
        await asyncio.gather(_pass_on(reader, before), _pass_on(behind, writer))

    async with await asyncio.start_server(relay, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1]


@asynccontextmanager
async def listening(*replies: bytes) -> AsyncGenerator[tuple[int, list[bytes]]]:
    """A port that answers what it is told with one reply after the other; what it was told."""
    heard: list[bytes] = []

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with suppress(ConnectionError):
                for reply in replies:
                    heard.append(await reader.read(65_536))
                    writer.write(reply)
                heard.append(await reader.read(65_536))
        finally:
            writer.close()

    async with await asyncio.start_server(listen, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1], heard


async def broken(at: Desk) -> None:
    outcome = await at.compare()
    assert isinstance(outcome, FailedRetryable), outcome
    assert "cannot be reached" in outcome.message


async def test_B16_a_database_is_dialled_where_it_was_checked(url: str, asked: list[str]) -> None:
    parts = urlsplit(url)
    async with over_tcp(url) as port:
        source = of(port, user=parts.username or "", database=parts.path.removeprefix("/"))
        async with desk(url, source) as at:
            await at.write("article:1")

            report = await at.compared()
    assert report.tally.created == 1
    assert asked == [NAME]


@pytest.mark.parametrize("options", ["?sslmode=require", "?sslmode=require&sslnegotiation=direct"])
async def test_B16_tls_asks_for_the_name_and_not_for_the_address(url: str, options: str) -> None:
    replies = () if "direct" in options else (b"S",)
    async with listening(*replies) as (port, heard), desk(url, of(port, options)) as at:
        await broken(at)
    assert NAME.encode() in heard[-1]  # the name is sent in the clear: SNI


async def test_B16_the_password_of_the_node_is_not_sent_to_a_business_database(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGPASSWORD", "of-the-node")
    async with listening(WANTS_PASSWORD) as (port, heard), desk(url, of(port, "?sslmode=disable")) as at:
        await broken(at)
    assert heard[1].startswith(b"p")
    assert not any(b"of-the-node" in message for message in heard)
