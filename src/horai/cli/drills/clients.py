"""Clients that write at a steady rate through the APIs of all nodes, and remember what was acknowledged."""

import asyncio
import itertools
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import aiohttp

from horai.cli.drills.outcome import Acknowledgement
from horai.cli.drills.target import DrillTarget
from horai.cli.errors import CommandFailed

WORK, REFUSED = "drill-work", "drill-refused"
WRITERS = 8
BEAT = 0.1
"""Seconds between two requests of all clients together."""
PATIENCE = aiohttp.ClientTimeout(total=2.0)
"""A client gives up a request after 2 s and sends the next one to another node."""
SET_UP_TRIES = 50
RETRY = {"base": "20ms", "cap": "1s"}
"""Short delays: a drill measures the platform, not the retry policy of a job."""


@dataclass(slots=True)
class DrillClients:
    """The clients of a drill. A write without an answer may have taken effect: no count relies on it."""

    session: aiohttp.ClientSession
    doors: Sequence[str]
    rate: int
    job: str = WORK
    acknowledged: list[Acknowledgement] = field(default_factory=list[Acknowledgement])
    refused: int = 0
    _turns: "itertools.count[int]" = field(default_factory=itertools.count)
    _writers: list["asyncio.Task[None]"] = field(default_factory=list["asyncio.Task[None]"])

    async def create_jobs(self, target: DrillTarget) -> None:
        """Create the job of the load, and one whose instances become dead letters."""
        for name, url in ((WORK, target.work), (REFUSED, target.refuse)):
            document = {"name": name, "target": {"type": "http", "url": url}, "retry": RETRY}
            await self._surely("/api/v1/jobs", document, 201)

    async def bury(self, count: int) -> set[int]:
        """Create instances that become dead letters, and return their ids."""
        answer = await self._surely(f"/api/v1/jobs/{REFUSED}/instances/batch", {"items": [{}] * count}, 200)
        return {int(item["instanceId"]) for item in answer["items"]}

    async def _surely(self, path: str, body: Any, wanted: int) -> Any:
        """Send a request that must succeed, before the load begins."""
        status, answer = 0, None
        for _ in range(SET_UP_TRIES):
            status, answer = await self._post(path, body)
            if status != 503:
                break
            await asyncio.sleep(BEAT)
        if status != wanted:
            raise CommandFailed(f"The drill cannot prepare its cluster: {path} answered {status}: {answer}.")
        return answer

    async def _post(self, path: str, body: Any) -> tuple[int, Any]:
        door = self.doors[next(self._turns) % len(self.doors)]
        async with self.session.post(door + path, json=body) as response:
            is_accepted = response.status < 300
            return response.status, await (response.json() if is_accepted else response.text())

    def begin(self) -> None:
        """Start to write."""
        size = max(round(self.rate * BEAT), 1)
        self._writers = [asyncio.create_task(self._write(number, size)) for number in range(WRITERS)]

    async def end(self) -> None:
        """Stop writing. Raises the error of a client that ended by itself."""
        for writer in self._writers:
            writer.cancel()
        for ended in await asyncio.gather(*self._writers, return_exceptions=True):
            if isinstance(ended, Exception):
                raise ended
        self._writers = []

    async def _write(self, number: int, size: int) -> None:
        """Write `size` instances in every `WRITERS`-th beat, until cancelled."""
        loop = asyncio.get_running_loop()
        beat = loop.time() + number * BEAT
        while True:
            await asyncio.sleep(max(beat - loop.time(), 0))
            beat = max(beat + WRITERS * BEAT, loop.time())
            try:
                await self._write_once(size)
            except (aiohttp.ClientError, TimeoutError):
                self.refused += size

    async def _write_once(self, size: int) -> None:
        status, answer = await self._post(f"/api/v1/jobs/{self.job}/instances/batch", {"items": [{}] * size})
        if status == 200:
            at = datetime.now(UTC)
            self.acknowledged += [Acknowledgement(int(item["instanceId"]), at) for item in answer["items"]]
        else:
            self.refused += size


@asynccontextmanager
async def drill_clients(
    doors: Sequence[str], rate: int, job: str = WORK, headers: Mapping[str, str] | None = None
) -> AsyncGenerator[DrillClients]:
    """Open the clients; at the end they write no more."""
    async with aiohttp.ClientSession(timeout=PATIENCE, headers=headers) as session:
        clients = DrillClients(session, doors, rate, job)
        try:
            yield clients
        finally:
            await clients.end()
