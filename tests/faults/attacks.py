"""Attacks on an HTTP server, each run in a process of its own with the arguments NAME HOST PORT SCALE.

In full, the process gives way to all others: the attacker of a real server has a machine of its own.
"""

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

import aiohttp

HOST = b"Host: 127.0.0.1\r\n"
CHUNK = b"x" * 65_536


@dataclass(frozen=True)
class Target:
    """The server under attack, and how much of each attack is run."""

    host: str
    port: int
    scale: float

    @property
    def is_full(self) -> bool:
        return self.scale >= 1

    async def hold(self) -> None:
        """Keep what is open a while."""
        await asyncio.sleep(2 if self.is_full else 0.5)

    async def open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection(self.host, self.port)


async def flood(on: Target, head: bytes, piece: bytes, most: int) -> None:
    """Write until the server closes the connection, at most `most` bytes."""
    reader, writer = await on.open()
    sent = 0
    with suppress(ConnectionError, TimeoutError):
        writer.write(head)
        while sent < most and not reader.at_eof():
            writer.write(piece)
            sent += len(piece)
            async with asyncio.timeout(5):
                await writer.drain()
    writer.transport.abort()
    assert sent < most, "the server has read all of it"


async def endless_headers(on: Target) -> None:
    fields = b"".join(b"X-%d: y\r\n" % number for number in range(1_000))
    await asyncio.gather(*(flood(on, b"GET / HTTP/1.1\r\n" + HOST, fields, 100_000_000) for _ in range(10)))


async def one_header_of_100_mb(on: Target) -> None:
    await flood(on, b"GET / HTTP/1.1\r\n" + HOST + b"X: ", CHUNK, 100_000_000)


async def half_open_connections(on: Target) -> None:
    """Open 2,000 connections that send half a request line, and hold them."""
    opened: list[socket.socket] = []
    try:
        for _ in range(int(2_000 * on.scale)):
            connection = socket.create_connection((on.host, on.port))
            opened.append(connection)
            with suppress(ConnectionError):
                connection.send(b"GET / HT")
        async with aiohttp.ClientSession() as session, session.get(f"http://{on.host}:{on.port}/healthz") as reply:
            assert reply.status == 200, "a whole request is served meanwhile"
        await on.hold()
    finally:
        for connection in opened:
            connection.close()


async def unfinished_bodies(on: Target) -> None:
    """Send 20 bodies of 32 MB, for a job that exists and one that does not, but for their last byte."""
    size = 32 * 2**20 - 1

    async def send(job: str) -> None:
        reader, writer = await on.open()
        path = f"/api/v1/jobs/{job}/instances/batch".encode()
        writer.write(b"POST " + path + b" HTTP/1.1\r\n" + HOST + b"Content-Type: application/json\r\n")
        writer.write(b"Content-Length: %d\r\n\r\n" % (size + 1))
        with suppress(ConnectionError, TimeoutError):
            for _ in range(size // len(CHUNK)):
                if reader.at_eof():
                    break
                writer.write(CHUNK)
                async with asyncio.timeout(3 if on.is_full else 1):
                    await writer.drain()
        await on.hold()
        writer.transport.abort()

    await asyncio.gather(*(send(job) for job in ("probe", "missing") for _ in range(int(10 * max(on.scale, 0.3)))))


async def large_payloads(on: Target) -> None:
    """Put 310 instances with payloads of 1 MB: the preparation of `lists_of_large_payloads`."""
    jobs = f"http://{on.host}:{on.port}/api/v1/jobs"
    async with aiohttp.ClientSession() as session:
        async with session.post(jobs, json={"name": "large", "status": "PAUSED"}) as made:
            assert made.status == 201
        for number in range(int(310 * on.scale)):
            body = {"payload": "p" * 1_000_000, "executeTime": "2999-01-01T00:00:00Z"}
            async with session.put(f"{jobs}/large/instances/{number}", json=body) as put:
                assert put.status == 201, await put.text()


async def lists_of_large_payloads(on: Target) -> None:
    """Read 310 instances with payloads of 1 MB in one page, ten times."""
    page = f"http://{on.host}:{on.port}/api/v1/jobs/large/instances?limit=500"
    async with aiohttp.ClientSession() as session:
        for _ in range(10):
            async with session.get(page) as read:
                assert len((await read.json())["items"]) == int(310 * on.scale)


ATTACKS: dict[str, Callable[[Target], Awaitable[None]]] = {
    attack.__name__: attack
    for attack in (
        endless_headers,
        one_header_of_100_mb,
        half_open_connections,
        unfinished_bodies,
        large_payloads,
        lists_of_large_payloads,
    )
}
PREPARATION = large_payloads.__name__
"""Its writes are those of any client: they bound the memory, not the delay of other instances."""


async def attack(name: str, on: Target) -> None:
    await ATTACKS[name](on)


def main(arguments: Sequence[str]) -> None:
    """Run the attack. It is in vain if this raises."""
    name, host, port, scale = arguments
    on = Target(host, int(port), float(scale))
    if on.is_full:
        os.nice(19)
    asyncio.run(attack(name, on))
