"""The notes of a program of a peer, and its messages to the benchmark."""

# pyright: basic

import asyncio
import json
import os
import sys
import threading
import time

URL = os.environ["PEER_URL"]
PAYLOAD = "x" * 100
COMMAND, ARGUMENTS = sys.argv[1], [float(argument) for argument in sys.argv[2:]]


def tell(facts):
    print(json.dumps(facts), flush=True)


class Notes:
    """Counts calls, notes how late each was, and tells when all have been made."""

    def __init__(self, expected):
        self.left = int(expected)
        self.first = None
        self.delays = []

    def call(self, due):
        if self.first is None:
            self.first = time.monotonic()
        if due:
            self.delays.append((time.time() - due) * 1000)
        self.left -= 1
        if self.left == 0:
            tell({"first": self.first, "last": time.monotonic(), "delays": self.delays})


async def until_told_to_end():
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    await reader.read()


def end_with_the_benchmark():
    """End this process, which serves without an event loop, when the benchmark has seen enough."""

    def wait():
        sys.stdin.read()
        os._exit(0)

    waiting = threading.Thread(target=wait, daemon=True)
    waiting.start()
    return waiting


async def work(serving):
    """Serves until the benchmark has seen enough."""
    serving = asyncio.ensure_future(serving)
    tell("ready")
    ended = asyncio.ensure_future(until_told_to_end())
    await asyncio.wait({serving, ended}, return_when=asyncio.FIRST_COMPLETED)
    if serving.done():
        serving.result()
    os._exit(0)


def dues(rate, seconds, lead):
    begin = time.time() + lead
    return [begin + number / rate for number in range(int(rate * seconds))]


async def enqueue(count, put):
    """`put(many)` in thousands, and how long that took."""
    started = time.perf_counter()
    for first in range(0, int(count), 1000):
        await put(min(1000, int(count) - first))
    tell({"seconds": time.perf_counter() - started})


async def single(count, callers, put):
    """`put(due)` by so many callers, each of whom waits for one before the next, and how long that took."""

    async def caller():
        for _ in range(int(count / callers)):
            await put(0)

    started = time.perf_counter()
    await asyncio.gather(*(caller() for _ in range(int(callers))))
    tell({"seconds": time.perf_counter() - started})


async def send(count, rate, put):
    """`put(due)` one by one at a steady rate; the first few warm the way up and do not count."""
    for number in range(-20, int(count)):
        await put(time.time() if number >= 0 else 0)
        await asyncio.sleep(1 / rate)
