"""The messenger of the article service goes on telling Horai, however a connection to its database ends."""

import asyncio
from datetime import UTC, datetime

import aiohttp
import pytest
from databases import Superuser
from examples.article_service.articles import Status
from examples.article_service.messenger import Messenger
from examples.article_service.scheduler import Scheduler
from examples.article_service.store import APPLICATION, open_store
from proxy import Proxy
from receiver import Receiver

FAR = datetime(2040, 1, 1, tzinfo=UTC)
END_SESSIONS = "select pg_terminate_backend(pid) from pg_stat_activity where application_name = $1"
CHANGE = "update article set status = $2, version = 2 where id = $1"


async def test_A15_the_messenger_survives_a_connection_whose_server_has_ended_and_whose_end_is_still_on_its_way(
    url: str, connection: Superuser, caplog: pytest.LogCaptureFixture
) -> None:
    """The driver then reports an error of its own, which is neither an error of PostgreSQL nor of the network."""
    async with Receiver() as receiver, Proxy(url).listening() as proxy, aiohttp.ClientSession() as session:
        async with open_store(proxy.url) as store:
            article = await store.write("Title", "Text", FAR)
            messenger = Messenger(store, Scheduler(session, receiver.url("")))
            proxy.hold_ends()
            await connection.fetch(END_SESSIONS, APPLICATION)
            await proxy.ended.wait()
            telling = asyncio.create_task(messenger.keep_telling())
            try:
                while "the next one follows" not in caplog.text and not telling.done():
                    await asyncio.sleep(0.01)
                assert "InternalClientError" in caplog.text
                proxy.let_ends_through()
                await connection.execute(CHANGE, article.id, Status.AUDITING)
                told = asyncio.create_task(receiver.wait_for(1))
                await asyncio.wait({told, telling}, timeout=20, return_when=asyncio.FIRST_COMPLETED)
                assert told.done()
            finally:
                telling.cancel()
                proxy.let_ends_through()  # otherwise a pool with a broken connection never closes
