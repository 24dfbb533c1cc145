"""The marker instances of a drill on an existing cluster: a job of its own, and its instances as the API shows them."""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp

from horai.cli.drills.clients import RETRY
from horai.cli.drills.pair import until
from horai.cli.errors import CommandFailed

TRIES = 120
PAUSE = 0.5
"""Seconds between two tries of a request that must succeed, also during the failure."""
LIVE = "INIT,RUNNING,FAIL"
LOST = "LOST"
PAGE = 500
REACHED_WITHIN = 30.0


class NodeAway(CommandFailed):
    """A node did not answer, or not now: the request may be repeated."""


@dataclass(frozen=True, slots=True)
class MarkerJob:
    """The job of a drill, by the APIs of the nodes."""

    session: aiohttp.ClientSession
    doors: Sequence[str]
    name: str

    async def check(self) -> None:
        """Raise `CommandFailed` if a node is not healthy."""
        for door in self.doors:
            told = await self._ask(door, "GET", "/api/v1/scheduler/health")
            if told["status"] != "UP":
                reasons = "; ".join(reason["text"] for reason in told["reasons"])
                raise CommandFailed(f"{door} is not healthy: {reasons}", "A drill begins on a healthy cluster only.")

    async def _ask(self, door: str, method: str, path: str, body: Any = None) -> Any:
        try:
            async with self.session.request(method, door + path, json=body) as response:
                if response.status >= 300:
                    failure = NodeAway if response.status >= 500 else CommandFailed
                    raise failure(f"{door}{path} answered {response.status}: {await response.text()}")
                return await response.json()
        except (aiohttp.ClientError, TimeoutError) as error:
            raise NodeAway(f"{door} does not answer: {type(error).__name__} {error}") from error

    async def surely(self, method: str, path: str, body: Any = None) -> Any:
        """Send a request until a node answers it, at most `TRIES` times."""
        for number in range(TRIES - 1):
            try:
                return await self._ask(self.doors[number % len(self.doors)], method, path, body)
            except NodeAway:
                await asyncio.sleep(PAUSE)
        return await self._ask(self.doors[0], method, path, body)

    async def create(self, url: str) -> None:
        """Create the job."""
        document = {"name": self.name, "target": {"type": "http", "url": url}, "retry": RETRY}
        await self._ask(self.doors[0], "POST", "/api/v1/jobs", document)

    async def remove(self) -> None:
        """Delete the job; instances that wait are cancelled. A repeat finds no job if the first answer was lost."""
        try:
            await self.surely("DELETE", f"/api/v1/jobs/{self.name}")
        except CommandFailed as error:
            if (await self.surely("GET", f"/api/v1/jobs?name={self.name}"))["items"]:
                raise CommandFailed(
                    f"The job {self.name} of the drill is still there: {error.detail}",
                    f"Run horai jobs delete {self.name}.",
                ) from error

    async def reach(self, calls: Mapping[int, Sequence[int]], url: str) -> None:
        """Run one instance. Raises `CommandFailed` if the nodes cannot call the drill at this address."""
        path = f"/api/v1/jobs/{self.name}/instances/batch"
        answer = await self._ask(self.doors[0], "POST", path, {"items": [{}]})
        instance = int(answer["items"][0]["instanceId"])

        async def is_called() -> bool:
            return instance in calls

        try:
            await until(is_called, REACHED_WITHIN, f"a node calls {url}")
        except CommandFailed as error:
            raise CommandFailed(
                f"The nodes cannot call the drill at {url}.",
                "Give --listen the address of this machine that they reach.",
            ) from error

    async def is_done(self) -> bool:
        """Return whether no instance of the job is live."""
        page = await self.surely("GET", f"/api/v1/jobs/{self.name}/instances?state={LIVE}&limit={PAGE}")
        return not page["items"] and page["nextCursor"] is None

    async def states(self) -> dict[int, str]:
        """Return the state of every instance of the job."""
        found: dict[int, str] = {}
        cursor = ""
        while True:
            page = await self.surely("GET", f"/api/v1/jobs/{self.name}/instances?limit={PAGE}{cursor}")
            found |= {int(each["id"]): each["state"] for each in page["items"]}
            if page["nextCursor"] is None:
                return found
            cursor = f"&cursor={page['nextCursor']}"

    async def losses(self, instances: Sequence[int]) -> dict[int, int]:
        """Return how many attempts of these instances ended with their node."""
        found: dict[int, int] = {}
        for instance in instances:
            shown = await self.surely("GET", f"/api/v1/instances/{instance}")
            found[instance] = sum(each["outcome"] == LOST and not each["late"] for each in shown["attempts"])
        return found


@asynccontextmanager
async def marker_job(
    session: aiohttp.ClientSession, doors: Sequence[str], name: str, url: str
) -> AsyncGenerator[MarkerJob]:
    """Create the job, and delete it at the end, also if the drill fails."""
    job = MarkerJob(session, doors, name)
    await job.check()
    await job.create(url)
    try:
        yield job
    finally:
        await job.remove()
