"""Attacks on the HTTP server of a real `horai up`: its memory stays bounded, and what is due is dispatched in time.

The short form is a tenth of each attack; HORAI_LONG=1 runs them in full.
"""

import asyncio
import socket
import time
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp
import psutil
import pytest

from faults.outside import IS_LONG, job_document
from harness import Client, HoraiProcess
from horai.api.tally import WINDOW
from receiver import Receiver

MOST_RSS = 300 * 2**20
SCALE = 1.0 if IS_LONG else 0.1
PROBES = 200 if IS_LONG else 20
HOST = b"Host: 127.0.0.1\r\n"
CHUNK = b"x" * 65_536


class Target:
    """A server under attack, with the peak of its memory."""

    def __init__(self, process: HoraiProcess, session: aiohttp.ClientSession, receiver: Receiver) -> None:
        self.process = process
        self.api = Client(process.base, session)
        self.receiver = receiver
        self.peak = 0
        where = urlsplit(process.base)
        self.address = (where.hostname or "", where.port or 0)

    async def open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection(*self.address)

    async def watch_memory(self) -> None:
        process = psutil.Process(self.process.pid)
        while True:
            self.peak = max(self.peak, process.memory_info().rss)
            await asyncio.sleep(0.02)

    async def p99_delay(self) -> float:
        """Seconds from the time that an instance is due to its call, for instances spread over the time of the test."""
        self.receiver.hits.clear()
        delays: list[float] = []
        for number in range(PROBES):
            due = time.time()
            key = f"probe-{number}-{due}"
            reply = await self.api("PUT", f"/api/v1/jobs/probe/instances/{key}", {})
            assert reply.status == 201, reply.json
            async with asyncio.timeout(20):
                while len(self.receiver.hits) <= number:
                    await asyncio.sleep(0.002)
            delays.append(time.time() - due)
        return sorted(delays)[int(len(delays) * 0.99) - (1 if len(delays) >= 100 else 0)]


@asynccontextmanager
async def target(place: Path) -> AsyncGenerator[Target]:
    process = HoraiProcess(place / "abused").start()
    try:
        async with Receiver() as receiver, aiohttp.ClientSession() as session:
            on = Target(process, session, receiver)
            made = await on.api("POST", "/api/v1/jobs", job_document("probe", receiver.url("/hook")))
            assert made.status == 201
            watching = asyncio.create_task(on.watch_memory())
            try:
                yield on
            finally:
                watching.cancel()
    finally:
        process.stop()


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
        for _ in range(int(2_000 * SCALE)):
            connection = socket.create_connection(on.address)
            opened.append(connection)
            with suppress(ConnectionError):
                connection.send(b"GET / HT")
            await asyncio.sleep(0)
        assert (await on.api("GET", "/healthz")).status == 200, "a whole request is served meanwhile"
        await asyncio.sleep(2)
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
                async with asyncio.timeout(3):
                    await writer.drain()
        await asyncio.sleep(2)
        writer.transport.abort()

    await asyncio.gather(*(send(job) for job in ("probe", "nobody") for _ in range(int(10 * max(SCALE, 0.3)))))


async def lists_of_large_payloads(on: Target) -> None:
    """Read 310 payloads of 1 MB in one page."""
    assert (await on.api("POST", "/api/v1/jobs", {"name": "large", "status": "PAUSED"})).status in {201, 409}
    for number in range(int(310 * SCALE)):
        body = {"payload": "p" * 1_000_000, "executeTime": "2999-01-01T00:00:00Z"}
        reply = await on.api("PUT", f"/api/v1/jobs/large/instances/{number}", body)
        assert reply.status in {200, 201}, reply.json
    for _ in range(3):
        page = await on.api("GET", "/api/v1/jobs/large/instances?limit=500")
        assert len(page.json["items"]) == int(310 * SCALE)


ATTACKS: tuple[Callable[[Target], Awaitable[None]], ...] = (
    endless_headers,
    one_header_of_100_mb,
    half_open_connections,
    unfinished_bodies,
    lists_of_large_payloads,
)


@pytest.mark.timeout(900 if IS_LONG else 300)
async def test_under_attack_memory_is_bounded_dispatch_goes_on_and_each_kind_is_one_log_line(short_place: Path) -> None:
    async with target(short_place) as on:
        began = time.monotonic()
        await on.p99_delay()  # connections are open and statements prepared
        quiet = await on.p99_delay()
        delays: dict[str, float] = {}
        for attack in ATTACKS:
            attacking = asyncio.ensure_future(attack(on))
            delays[attack.__name__] = await on.p99_delay()
            await attacking
            print(
                f"{attack.__name__}: p99 {delays[attack.__name__]:.3f} s (quiet {quiet:.3f} s), peak {on.peak >> 20} MB"
            )
        log = on.process.log
        while_serving = log.read_text()  # the stop logs the counts of the last window
        windows = (time.monotonic() - began) // WINDOW
    lines = [line for line in while_serving.splitlines() if "requests limited" in line]
    kinds = Counter(line.split("kind=")[1].split("last_address")[0].strip() for line in lines)
    print(*lines, sep="\n")
    assert on.peak <= MOST_RSS
    assert "Traceback" not in log.read_text()
    assert "'headers too large'" in kinds
    assert max(kinds.values()) <= 1 + windows, "a line per kind and minute"
    if IS_LONG:
        assert max(delays.values()) <= 2 * max(quiet, 0.05), (delays, quiet)
