"""The noise of one tenant, in a process of its own with the arguments BASE KEY SCALE: it prints `ready` and goes on until it is killed.

It opens 100 readers of the live feed, reads pages of instances with payloads of 1 MB, and asks for the forecast of a week.
The process gives way to all others: the client of a real server has a machine of its own.
"""

import asyncio
import os
from collections.abc import Sequence

import aiohttp

READERS = 100
LARGE = 20
"""Instances with a payload of 1 MB."""
SCHEDULES = 500
"""Jobs that fire every minute, which make a forecast heavy."""
TARGET = {"type": "http", "url": "http://127.0.0.1:9/"}


class Tenant:
    """A tenant that uses as much as it is given."""

    def __init__(self, session: aiohttp.ClientSession, base: str, scale: float) -> None:
        self._session = session
        self._api = f"{base}/api/v1"
        self._scale = scale

    async def prepare(self) -> None:
        await self._post("/jobs", {"name": "large", "status": "PAUSED"})
        for number in range(LARGE):
            body = {"payload": "p" * 1_000_000, "executeTime": "2999-01-01T00:00:00Z"}
            async with self._session.put(f"{self._api}/jobs/large/instances/{number}", json=body) as put:
                assert put.status == 201, await put.text()
        for number in range(int(SCHEDULES * self._scale)):
            await self._post(
                "/jobs", {"name": f"minute-{number}", "cron": "* * * * *", "target": TARGET, "queue": "minutes"}
            )

    async def _post(self, path: str, body: object) -> None:
        async with self._session.post(self._api + path, json=body) as made:
            assert made.status == 201, await made.text()

    async def read_feed(self) -> None:
        """Hold a reader open; one that is refused tries again."""
        while True:
            async with self._session.get(f"{self._api}/events") as feed:
                async for _ in feed.content:
                    pass
            await asyncio.sleep(1)

    async def repeat(self, path: str) -> None:
        while True:
            async with self._session.get(self._api + path) as answer:
                await answer.read()


async def make_noise(base: str, key: str, scale: float) -> None:
    headers = {"Authorization": f"Bearer {key}"}
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(headers=headers, connector=connector, timeout=aiohttp.ClientTimeout()) as session:
        tenant = Tenant(session, base, scale)
        await tenant.prepare()
        print("ready", flush=True)
        async with asyncio.TaskGroup() as tasks:
            for _ in range(int(READERS * scale)):
                tasks.create_task(tenant.read_feed())
            for path in ("/jobs/large/instances?limit=500", "/forecast?hours=168"):
                tasks.create_task(tenant.repeat(path))


def main(arguments: Sequence[str]) -> None:
    """Make noise until the process is killed."""
    base, key, scale = arguments
    os.nice(19)
    asyncio.run(make_noise(base, key, float(scale)))
