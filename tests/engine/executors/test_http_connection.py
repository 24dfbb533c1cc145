"""Connections of the HTTP executor against a server that writes what it is told, byte for byte."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest
from http_calls import call_to, code_of, executor, in_loop

from horai.core.outcome import Succeeded
from horai.engine.executors.dial import IDLE_CONNECTION_KEPT_FOR
from horai.engine.executors.http_connection import HEAD_LIMIT

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
JSON = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


class Server:
    """Writes one answer per request, in turn, and closes the connection after those in `closing`."""

    def __init__(self, *answers: bytes) -> None:
        self.answers = [*answers]
        self.closing: set[bytes] = set()
        self.peers: list[int] = []
        self.connections: set[asyncio.StreamWriter] = set()
        self.closed = asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections.add(writer)
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                length = next(int(line[15:]) for line in head.split(b"\r\n") if line.startswith(b"Content-Length"))
                await reader.readexactly(length)
                self.peers.append(writer.get_extra_info("peername")[1])
                answer = self.answers.pop(0)
                writer.write(answer)
                if answer in self.closing:
                    break
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self.closed.set()
            writer.close()


@asynccontextmanager
async def serving(server: Server) -> AsyncGenerator[str]:
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/hook"
    finally:
        listening.close()
        for writer in server.connections:
            writer.close()


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + OK,
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n",
        b"HTTP/1.1 204 No Content\r\n\r\n",
    ],
)
@in_loop
async def test_a_connection_whose_answer_was_read_to_its_end_is_used_again(answer: bytes):
    server = Server(answer, OK)
    async with serving(server) as url, executor() as http:
        assert await http.run(call_to(url)) == Succeeded()
        assert await http.run(call_to(url)) == Succeeded()

    assert len(set(server.peers)) == 1


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
        OK + b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\nHTTP/1.1 2",
    ],
)
@in_loop
async def test_a_connection_that_says_close_or_more_than_one_answer_is_not_used_again(answer: bytes):
    server = Server(answer, OK)
    async with serving(server) as url, executor() as http:
        assert await http.run(call_to(url)) == Succeeded()
        assert await http.run(call_to(url)) == Succeeded()

    assert len(set(server.peers)) == 2


@in_loop
async def test_bytes_that_answer_no_request_close_an_idle_connection():
    server = Server(OK, OK)
    async with serving(server) as url, executor() as http:
        assert await http.run(call_to(url)) == Succeeded()
        (writer,) = server.connections
        writer.write(b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n")
        await asyncio.wait_for(server.closed.wait(), IDLE_CONNECTION_KEPT_FOR / 2)
        assert await http.run(call_to(url)) == Succeeded()

    assert len(set(server.peers)) == 2


@in_loop
async def test_a_body_without_a_length_ends_with_the_connection_and_one_with_a_length_breaks_off():
    whole, cut = JSON + b'\r\n{"n": 1}', JSON + b'Content-Length: 20\r\n\r\n{"n": 1}'
    server = Server(whole, cut)
    server.closing = {whole, cut}
    async with serving(server) as url, executor() as http:
        assert await http.run(call_to(url)) == Succeeded('{"n": 1}')
        assert code_of(await http.run(call_to(url))) == "ANSWER_UNREADABLE"


@in_loop
async def test_headers_without_an_end_are_not_read_for_ever():
    server = Server(b"HTTP/1.1 200 OK\r\nX: " + b"x" * (2 * HEAD_LIMIT))
    async with serving(server) as url, executor() as http:
        outcome = await http.run(call_to(url, timeout=timedelta(seconds=30)))
        await asyncio.wait_for(server.closed.wait(), 10)

    assert code_of(outcome) == "CONNECTION"


@in_loop
async def test_an_idle_connection_is_closed_after_a_while(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("horai.engine.executors.http.IDLE_CONNECTION_KEPT_FOR", 0.05)
    server = Server(OK)
    async with serving(server) as url, executor() as http:
        assert await http.run(call_to(url)) == Succeeded()
        await asyncio.wait_for(server.closed.wait(), 10)


@in_loop
async def test_a_connection_of_one_reach_is_not_used_by_another():
    server = Server(OK, OK)
    async with serving(server) as url, executor() as http:
        call = call_to(url)
        assert await http.run(call) == Succeeded()
        assert await http.run(call._replace(reach=call.reach.__class__(("127.0.0.0/8",)))) == Succeeded()

    assert len(set(server.peers)) == 2
