"""A steady load on a cluster: instances through the doors of its nodes, and schedules beside them."""

import asyncio
import itertools
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import aiohttp
from harness import Client, Reply

from faults.outside import LOOK_EVERY, job_document, until

WRITERS = 4
BEAT = 0.1
"""Seconds between two batches."""
SCHEDULED_SHARE = 10
"""One in so many fires is a schedule's."""
RETRY = {"maxRetry": 30, "base": "20ms", "cap": "1s"}
"""Nothing here fails by itself: an instance is tried again only because its node was taken away."""


@dataclass
class Load:
    """Clients that create `rate` instances a second, and remember which were acknowledged."""

    doors: Mapping[str, str]
    session: aiohttp.ClientSession
    rate: int
    acknowledged: set[int] = field(default_factory=set[int])
    acknowledged_at: dict[int, float] = field(default_factory=dict[int, float])
    """By the wall clock, which all processes of a test share."""
    refused: int = 0
    _numbers: "itertools.count[int]" = field(default_factory=itertools.count)
    _writers: list["asyncio.Task[None]"] = field(default_factory=list["asyncio.Task[None]"])
    _ticks: list[str] = field(default_factory=list[str])

    async def api(self, method: str, path: str, body: Any = None) -> Reply:
        """Any door, each in its turn; asked again until one takes it: only for what may be done twice."""
        for _ in range(100):
            try:
                reply = await self._door()(method, path, body)
            except (aiohttp.ClientError, TimeoutError):
                continue
            if reply.status != 503:
                return reply
            await asyncio.sleep(LOOK_EVERY)
        raise AssertionError(f"no door takes {method} {path}")

    def _door(self) -> Client:
        doors = list(self.doors.values())
        return Client(doors[next(self._numbers) % len(doors)], self.session)

    async def begin(self, target: str) -> None:
        """The jobs first, then as many writers as keep the rate up while one of them waits for an answer."""
        scheduled = self.rate // SCHEDULED_SHARE
        self._ticks = [f"tick-{number}" for number in range(scheduled)]
        for name, fields in (("load", {}), *((tick, {"every": "1s"}) for tick in self._ticks)):
            made = await self.api(
                "POST", "/api/v1/jobs", job_document(name, target, timeout="30s", retry=RETRY, **fields)
            )
            assert made.status == 201, made.json
        size = round((self.rate - scheduled) * BEAT)
        self._writers = [asyncio.create_task(self._write(number, size)) for number in range(WRITERS)]

    async def _write(self, number: int, size: int) -> None:
        """Write a batch every `WRITERS` beats, until cancelled.

        A write without an answer may or may not be there: no check counts on it.
        """
        loop = asyncio.get_running_loop()
        beat = loop.time() + number * BEAT
        while True:
            await asyncio.sleep(max(beat - loop.time(), 0))
            beat = max(beat + WRITERS * BEAT, loop.time() - BEAT)
            try:
                await self._write_once(size)
            except (aiohttp.ClientError, TimeoutError):
                self.refused += size

    async def _write_once(self, size: int) -> None:
        number = next(self._numbers)
        items: list[dict[str, str]] = [{"key": f"key-{number}-{item}"} if item % 2 else {} for item in range(size)]
        batch = await self._door()("POST", "/api/v1/jobs/load/instances/batch", {"items": items})
        if batch.status == 200:
            written = [int(item["instanceId"]) for item in batch.json["items"]]
            self.acknowledged.update(written)
            self.acknowledged_at.update(dict.fromkeys(written, time.time()))
        else:
            assert batch.status == 503, f"the API answered {batch.status}: {batch.json}"
            self.refused += size

    async def burst(self, size: int) -> None:
        """So many at once, beside the rest."""
        await self._write_once(size)

    async def until_more(self, seconds: float) -> None:
        """Returns when as many more were acknowledged as `seconds` should bring."""
        wanted = len(self.acknowledged) + seconds * self.rate * (1 - 1 / SCHEDULED_SHARE)

        async def enough() -> bool:
            for writer in self._writers:
                if writer.done():
                    writer.result()
            return len(self.acknowledged) >= wanted

        await until(enough, 60 + 4 * seconds, f"as many instances acknowledged as {seconds:g} s should bring")

    async def cut(self) -> None:
        """The writers stop where they are."""
        for writer in self._writers:
            writer.cancel()
        await asyncio.gather(*self._writers, return_exceptions=True)
        assert all(writer.cancelled() for writer in self._writers)

    async def end(self) -> None:
        """Nothing new comes, from writers or schedules; what is there runs on."""
        await self.cut()
        for tick in self._ticks:
            assert (await self.api("PATCH", f"/api/v1/jobs/{tick}", {"every": None})).status == 200


@asynccontextmanager
async def load(doors: Mapping[str, str], rate: int, target: str) -> AsyncGenerator[Load]:
    """Begun, and ended in the end."""
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=15)) as session:
        running = Load(doors, session, rate)
        try:
            await running.begin(target)
            yield running
        except BaseException:
            for writer in running._writers:
                writer.cancel()
            await asyncio.gather(*running._writers, return_exceptions=True)
            raise
        await running.end()
