"""One command: Horai, the service and the story. `python -m examples.article_service`."""

import asyncio
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import aiohttp

from .. import stage
from .story import Newsroom, tell


async def provided(directory: Path, horai: str) -> Mapping[str, str]:
    """Return the settings that an operator gives the service: a database of its own, and Horai's signing secret.

    In this example that database is on the server that `horai up` has brought along. Nothing that the service is
    given leads it to Horai's tables.
    """
    async with aiohttp.ClientSession() as session, session.get(f"{horai}/api/v1/signing-secrets") as response:
        newest = (await response.json())["items"][0]
    return {
        "ARTICLES_DATABASE_URL": await stage.beside(directory, "articles"),
        "HORAI_WEBHOOK_SECRET": newest["secret"],
    }


async def told(articles: str, horai: str) -> None:
    """Prints the story, with the seconds that have passed."""
    begun = time.monotonic()

    def say(line: str) -> None:
        print(f"{time.monotonic() - begun:6.2f} s  {line}", flush=True)

    async with aiohttp.ClientSession() as session:
        await tell(Newsroom(session, articles, horai, say))


def main() -> None:
    with stage.a_directory() as directory, stage.horai(directory) as horai:
        print(f"Horai: {horai}", flush=True)
        known = {"HORAI_SERVER": horai, **asyncio.run(provided(directory, horai))}
        command = [sys.executable, "-m", "examples.article_service.service"]
        with stage.running(command, "Articles are served: ", known, directory / "articles.log") as articles:
            print(f"the article service: {articles}", flush=True)
            asyncio.run(told(articles, horai))


if __name__ == "__main__":
    main()
