"""The article service of the examples beside a Horai of its own: real processes, real HTTP."""

import asyncio
import os
import socket
import subprocess
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import aiohttp
import asyncpg
from harness import Client, HoraiProcess

from horai.embedded import url_of
from horai.embedded.admin import admin_url

ROOT = Path(__file__).parents[2]
READY = "Articles are served: "
AUDIT, PUBLISH = "article_audit", "article_publish"
MOMENT = timedelta(milliseconds=300)
FAR = timedelta(hours=1)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return listening.getsockname()[1]


class House:
    """Both processes, started and stopped; Horai keeps its port over a restart."""

    def __init__(self, place: Path) -> None:
        self.horai = HoraiProcess(place / "horai", "--port", str(free_port()), "--lease-ttl", "3s")
        self._log = place / "articles.log"
        self._service: subprocess.Popen[str] | None = None
        self.articles = ""
        self.horai_url = ""
        self.articles_url = ""
        self.secret = ""

    def open(self) -> None:
        self.horai.start()
        self.horai_url = url_of(self.horai.data_dir)
        self.articles_url = urlunsplit(urlsplit(self.horai_url)._replace(path="/articles"))
        self.secret = asyncio.run(self._provide())
        known = {
            "ARTICLES_DATABASE_URL": self.articles_url,
            "HORAI_SERVER": self.horai.base,
            "HORAI_WEBHOOK_SECRET": self.secret,
        }
        with self._log.open("a") as log:
            self._service = subprocess.Popen(
                [sys.executable, "-m", "examples.article_service.service"],
                cwd=ROOT,
                env={**os.environ, **known},
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        assert self._service.stdout is not None
        said = self._service.stdout.readline()
        assert said.startswith(READY), self._log.read_text()
        self.articles = said.removeprefix(READY).strip()

    async def _provide(self) -> str:
        connection = await asyncpg.connect(admin_url(self.horai_url))
        await connection.execute(f"create database articles owner {urlsplit(self.articles_url).username}")
        await connection.close()
        path = f"{self.horai.base}/api/v1/signing-secrets"
        async with aiohttp.ClientSession() as session, session.get(path) as response:
            return (await response.json())["items"][0]["secret"]

    def close(self) -> None:
        """Both end cleanly."""
        assert self._service is not None
        assert self._service.stdout is not None
        self._service.terminate()
        code = self._service.wait(timeout=30)
        self._service.stdout.close()
        assert self.horai.stop() == 0
        assert code == 0, self._log.read_text()


@dataclass(frozen=True, slots=True)
class Newsroom:
    """The article service and Horai, as a test calls them."""

    house: House
    articles: Client
    horai: Client

    async def written(self, text: str = "It is warm.", delay: timedelta = FAR) -> int:
        at = (datetime.now(UTC) + delay).isoformat()
        answer = await self.articles("POST", "/articles", {"title": "Weather", "text": text, "publish_at": at})
        assert answer.status == 201
        return answer.json["id"]

    async def submitted(self, delay: timedelta, text: str = "It is warm.") -> int:
        article = await self.written(text, delay)
        assert (await self.articles("POST", f"/articles/{article}/submit")).status == 200
        return article

    async def audited(self, delay: timedelta = FAR) -> int:
        article = await self.submitted(delay)
        await self.until(article, "AUDIT_SUCCESS", "PUBLISHED")  # whose time comes soon may be out before we look
        return article

    async def move(self, article: int, delay: timedelta) -> Any:
        """The author's change of mind, as the service answers it."""
        at = (datetime.now(UTC) + delay).isoformat()
        answer = await self.articles("PUT", f"/articles/{article}/publish-time", {"publish_at": at})
        assert answer.status == 200, answer.json
        return answer.json

    async def hold_press(self, held: bool) -> None:
        assert (await self.articles("PUT", "/press", {"held": held})).status == 200

    async def read(self, article: int) -> Any:
        return (await self.articles("GET", f"/articles/{article}")).json

    async def calls(self, article: int, job: str = PUBLISH) -> list[Any]:
        """The calls about an article that carried a good signature, in the order of their arrival."""
        found = (await self.articles("GET", f"/articles/{article}/deliveries")).json
        return [call for call in found if call["unit"] == f"default:{job}:article:{article}"]

    async def instances(self, article: int, job: str = PUBLISH) -> list[Any]:
        """Horai's side of it, the oldest first."""
        found = (await self.horai("GET", f"/api/v1/jobs/{job}/instances?key=article:{article}")).json["items"]
        return sorted(found, key=lambda instance: int(instance["id"]))

    async def until(self, article: int, *statuses: str) -> None:
        async def stands_there() -> bool:
            return (await self.read(article))["status"] in statuses

        await until(stands_there)

    async def until_called(self, article: int, begun: int, ended: int) -> list[Any]:
        """Returns when so many calls to publish have come, and so many of them have been answered."""

        async def is_called() -> bool:
            calls = await self.calls(article)
            return len(calls) >= begun and sum(call["effect"] is not None for call in calls) >= ended

        await until(is_called)
        return await self.calls(article)

    async def until_final(self, article: int) -> list[Any]:
        """Returns when Horai has nothing left to try."""

        async def is_final() -> bool:
            states = {instance["state"] for instance in await self.instances(article)}
            return states <= {"SUCCESS", "CANCELLED", "DEAD"}

        await until(is_final)
        return await self.instances(article)


async def until(holds: Callable[[], Awaitable[bool]], within: float = 30.0) -> None:
    async with asyncio.timeout(within):
        while not await holds():
            await asyncio.sleep(0.02)


@asynccontextmanager
async def visiting(house: House) -> AsyncGenerator[Newsroom]:
    async with aiohttp.ClientSession() as session:
        newsroom = Newsroom(house, Client(house.articles, session), Client(house.horai.base, session))
        try:
            yield newsroom
        finally:
            await newsroom.hold_press(False)
