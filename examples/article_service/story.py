"""A day of an author, told by the running service: every line is something that was asked and answered."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import aiohttp

from .scheduler import PUBLISH

PATIENCE = 30.0
SOON, LATER = timedelta(seconds=1), timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Newsroom:
    """The service and Horai, as a client on the outside sees them."""

    session: aiohttp.ClientSession
    articles: str
    horai: str
    say: Callable[[str], None]

    async def ask(self, method: str, path: str, body: Any = None) -> Any:
        """Return the answer of the service; refusals included."""
        async with self.session.request(method, self.articles + path, json=body) as response:
            return await response.json()

    async def submitted(self, title: str, text: str, publish_at: datetime) -> int:
        """A new article, under audit."""
        draft = {"title": title, "text": text, "publish_at": publish_at.isoformat()}
        article = await self.ask("POST", "/articles", draft)
        self.say(f"article {article['id']} {title!r}: {article['status']}")
        article = await self.ask("POST", f"/articles/{article['id']}/submit")
        self.say(f"article {article['id']} is submitted: {article['status']}, Horai will have it audited at once")
        return article["id"]

    async def until(self, article_id: int, status: str) -> None:
        """Returns when the article stands there."""
        async with asyncio.timeout(PATIENCE):
            while True:
                article = await self.ask("GET", f"/articles/{article_id}")
                if article["status"] == status:
                    break
                await asyncio.sleep(0.02)
        self.say(f"article {article_id} is {status}")

    async def until_called(self, article_id: int, ended: int, begun: int | None = None) -> list[Any]:
        """Returns when so many publish calls have come, and so many have been answered."""
        async with asyncio.timeout(PATIENCE):
            while True:
                deliveries = await self.ask("GET", f"/articles/{article_id}/deliveries")
                calls = [call for call in deliveries if f":{PUBLISH}:" in call["unit"]]
                if len(calls) >= (begun or ended) and sum(call["effect"] is not None for call in calls) >= ended:
                    return calls
                await asyncio.sleep(0.02)

    async def move(self, article_id: int, delay: timedelta) -> None:
        """The author wants another publish time."""
        at = datetime.now(UTC) + delay
        answer = await self.ask("PUT", f"/articles/{article_id}/publish-time", {"publish_at": at.isoformat()})
        self.say(f"the author moves article {article_id} to {delay} from now: {answer.get('detail', 'done')}")

    async def planned(self, article_id: int) -> list[Any]:
        """Return the instances of an article's publish task, the oldest first, once none of them is RUNNING."""
        path = f"/api/v1/jobs/{PUBLISH}/instances?key=article:{article_id}"
        async with asyncio.timeout(PATIENCE):
            while True:
                async with self.session.get(self.horai + path) as response:
                    instances = (await response.json())["items"]
                if all(instance["state"] != "RUNNING" for instance in instances):
                    return sorted(instances, key=lambda instance: int(instance["id"]))
                await asyncio.sleep(0.02)

    def tell(self, instances: list[Any]) -> None:
        """Horai's side of it."""
        for instance in instances:
            reason = f" ({instance['reason']})" if instance["reason"] else ""
            result = f", the service said {instance['result']}" if instance["result"] else ""
            self.say(f"  Horai: instance {instance['id']} is {instance['state']}{reason}{result}")


async def tell(newsroom: Newsroom) -> None:
    """The whole day."""
    await a_change_of_mind(newsroom)
    await a_change_of_mind_too_late(newsroom)
    await withdrawn(newsroom)
    await not_fit_to_print(newsroom)


async def a_change_of_mind(newsroom: Newsroom) -> None:
    """Moved before it runs: one instance, one id, one call."""
    newsroom.say("1. The author changes the publish time, twice, before it has come.")
    article = await newsroom.submitted("Spring", "It is warm.", datetime.now(UTC) + LATER)
    await newsroom.until(article, "AUDIT_SUCCESS")
    await newsroom.move(article, 2 * LATER)
    await newsroom.move(article, SOON)
    await newsroom.until(article, "PUBLISHED")
    await newsroom.move(article, LATER)
    newsroom.tell(await newsroom.planned(article))


async def a_change_of_mind_too_late(newsroom: Newsroom) -> None:
    """Moved while it runs: both calls arrive, one takes effect."""
    newsroom.say("2. The author changes it while the call to publish is under way.")
    await newsroom.ask("PUT", "/press", {"held": True})
    article = await newsroom.submitted("Summer", "It is hot.", datetime.now(UTC) + SOON)
    await newsroom.until_called(article, ended=0, begun=1)
    newsroom.say("Horai has called, and the press stands still")
    await newsroom.move(article, SOON)
    await newsroom.ask("PUT", "/press", {"held": False})
    newsroom.say("the press runs again")
    await newsroom.until(article, "PUBLISHED")
    for call in await newsroom.until_called(article, ended=2):
        newsroom.say(f"  call {call['idempotency_key']} of {call['unit']}, fence {call['fence']}: {call['effect']}")
    newsroom.tell(await newsroom.planned(article))


async def withdrawn(newsroom: Newsroom) -> None:
    """Cancelled."""
    newsroom.say("3. The author withdraws it.")
    article = await newsroom.submitted("Autumn", "It is wet.", datetime.now(UTC) + LATER)
    await newsroom.until(article, "AUDIT_SUCCESS")
    answer = await newsroom.ask("POST", f"/articles/{article}/withdraw")
    newsroom.say(f"article {article} is {answer['status']}")
    newsroom.tell(await newsroom.planned(article))


async def not_fit_to_print(newsroom: Newsroom) -> None:
    """The auditors' no is an answer, not a failure: nothing is tried again."""
    newsroom.say("4. The auditors say no.")
    article = await newsroom.submitted("Winter", "It is forbidden to freeze.", datetime.now(UTC) + LATER)
    await newsroom.until(article, "AUDIT_FAILED")
    answer = await newsroom.ask("POST", f"/articles/{article}/withdraw")
    newsroom.say(f"the author tries to withdraw it: {answer['detail']}")
