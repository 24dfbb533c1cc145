"""Attacks on the HTTP server of a real `horai up`: its memory stays bounded, and what is due is dispatched in time.

The short form is a tenth of each attack; HORAI_LONG=1 runs them in full.
"""

import asyncio
import os
import time
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp
import psutil
import pytest
from forked import Forked
from harness import Client, HoraiProcess
from receiver import Receiver
from sizes import IS_LONG

from faults.attacks import ATTACKS, PREPARATION
from faults.outside import job_document
from horai.api.abuse_log import WINDOW

MOST_RSS = 300 * 2**20
SCALE = 1.0 if IS_LONG else 0.1
PROBES = 200 if IS_LONG else 20
PATIENCE = 300.0


class Target:
    """A server under attack, with the peak of its memory."""

    def __init__(self, process: HoraiProcess, session: aiohttp.ClientSession, receiver: Receiver) -> None:
        self.process = process
        self.api = Client(process.base, session)
        self.receiver = receiver
        self.peak = 0

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
async def target(place: Path, url: str) -> AsyncGenerator[Target]:
    process = HoraiProcess(place / "abused", "--database-url", url).start()
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


async def attack(on: Target, name: str) -> None:
    """Run one of the attacks in a process of its own."""
    where, log = urlsplit(on.process.base), on.process.log.with_name(f"{name}.log")
    log.touch()
    arguments = [name, where.hostname or "", str(where.port), str(SCALE)]
    attacker = Forked(arguments, {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}, log, "attacks")
    try:
        assert await asyncio.to_thread(attacker.wait, PATIENCE) == 0, (name, log.read_text())
    finally:
        attacker.kill()
        if attacker.stdout is not None:
            attacker.stdout.close()


@pytest.mark.timeout(900 if IS_LONG else 300)
async def test_under_attack_memory_is_bounded_dispatch_goes_on_and_each_kind_is_one_log_line(
    short_place: Path, url: str
) -> None:
    async with target(short_place, url) as on:
        began = time.monotonic()
        await on.p99_delay()  # connections are open and statements prepared
        quiet = await on.p99_delay()
        delays: dict[str, float] = {}
        for name in ATTACKS:
            attacking = asyncio.create_task(attack(on, name))
            delays[name] = await on.p99_delay()
            await attacking
            print(f"{name}: p99 {delays[name]:.3f} s (quiet {quiet:.3f} s), peak {on.peak >> 20} MB")
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
        del delays[PREPARATION]
        assert max(delays.values()) <= 2 * max(quiet, 0.05), (delays, quiet)
