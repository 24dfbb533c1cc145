"""The messenger of the article service: messages about one article reach Horai in the order of its changes."""

import asyncio
from datetime import UTC, datetime

import aiohttp
from examples.article_service.articles import Status
from examples.article_service.messenger import Messenger
from examples.article_service.scheduler import PUBLISH, Scheduler
from examples.article_service.store import open_store
from receiver import HOLD, Receiver

FAR = datetime(2040, 1, 1, tzinfo=UTC)


async def test_A15_the_cancellation_of_a_withdrawal_does_not_overtake_the_plan_of_the_audit(url: str) -> None:
    async with Receiver() as receiver, open_store(url) as store, aiohttp.ClientSession() as session:
        messenger = Messenger(store, Scheduler(session, receiver.url("")))
        article = await store.write("Title", "Text", FAR)
        await store.move(article.id, Status.AUDITING)
        receiver.on(f"/api/v1/jobs/{PUBLISH}/instances/article:{article.id}", HOLD)

        audited = asyncio.create_task(messenger.tell(await store.move(article.id, Status.AUDIT_SUCCESS)))
        await receiver.wait_for(1)
        withdrawn = asyncio.create_task(messenger.tell(await store.move(article.id, Status.WITHDRAWN)))
        overtaken, _ = await asyncio.wait({withdrawn}, timeout=0.5)
        seen = [hit.method for hit in receiver.hits]
        receiver.let_go()

        assert await audited
        assert await withdrawn
        assert not overtaken
        assert seen == ["PUT"]
        assert [hit.method for hit in receiver.hits] == ["PUT", "DELETE", "DELETE"]
        assert (await store.find(article.id)).told == 4
