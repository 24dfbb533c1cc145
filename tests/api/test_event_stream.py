"""Server-sent events: who watches is told where to look again, soon, seldom, and at little cost."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp
import audits
import harness
import pytest
from aiohttp import ClientResponse
from harness import Client
from keys import created, holder, holding
from receiver import Answer, Receiver

from api import expect, given
from horai.api.context import Context
from horai.core.errors import TooManyReaders
from horai.core.health import EngineHealth
from horai.core.settings import ServerLimits
from horai.db.pool import Platform, close_pool, open_pool
from horai.db.wakeups import Wakeups
from horai.features.overview.feed import Feed, Reader
from horai.features.overview.stream import Stream
from horai.features.overview.topics import EVERY_TOPIC, OF_TENANTS, Topic, changed

PATH = "/api/v1/events"


@dataclass
class Watch:
    """One who reads the stream."""

    response: ClientResponse

    async def line(self) -> str:
        return (await self.response.content.readline()).decode()

    async def change(self, within: float = 30.0) -> tuple[str, set[str]]:
        """The next message: its id, and its topics."""
        async with asyncio.timeout(within):
            while (line := await self.line()) != "event: change\n":
                assert line, "the stream has ended"
            id_ = (await self.line()).removeprefix("id: ").strip()
            return id_, set(json.loads((await self.line()).removeprefix("data: "))["topics"])

    async def until(self, topic: str) -> str:
        """The id of the message that names this topic."""
        while True:
            id_, topics = await self.change()
            if topic in topics:
                return id_


@asynccontextmanager
async def watching(api: Client, **headers: str) -> AsyncGenerator[Watch]:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    async with api.session.get(api.base + PATH, headers=named) as response:
        assert response.status == 200
        assert response.content_type == "text/event-stream"
        assert response.headers["Cache-Control"] == "no-store"
        watch = Watch(response)
        assert await watch.line() == "retry: 2000\n"
        yield watch


async def test_the_stream_reports_changes_of_instances(api: Client, receiver: Receiver) -> None:
    async with watching(api) as watch:
        job = await given.scripted(api, receiver, Answer(200))
        instance = await given.triggered(api, job)
        await watch.until("instances")

        await api.until_state(instance["id"], "SUCCESS")


async def test_every_topic_that_is_written_is_told(api: Client, receiver: Receiver) -> None:
    async with watching(api) as watch:
        job = await given.job(api, name=given.name("watched"))
        await watch.until("jobs")
        await api("PUT", f"/api/v1/queues/{given.name('queue')}", {"maxConcurrency": 3})
        await watch.until("queues")
        graph = {"name": given.name("flow"), "nodes": [{"name": "a", "job": job["name"]}]}
        assert (await api("POST", "/api/v1/workflows", graph)).status == 201
        await watch.until("workflows")
        dead = await given.scripted(api, receiver, Answer(400))
        await given.triggered(api, dead)
        await watch.until("dead-letters")


async def test_the_stream_reports_changes_written_by_another_process(api: Client, db: Platform) -> None:
    await given.job(api, name=(name := given.name("sql")))
    async with watching(api) as watch:
        await db.fetch("select * from horai.put_instance($1, 'k', '2999-01-01', null)", name)

        await watch.until("instances")


async def test_messages_come_at_most_once_a_second_however_much_happens(api: Client) -> None:
    job = await given.job(api)
    async with watching(api) as watch:
        loop = asyncio.get_running_loop()
        began, times = loop.time(), list[float]()
        while len(times) < 3:
            await given.put(api, job, given.name("key"))
            await watch.change()
            times.append(loop.time() - began)

        assert times[2] - times[0] > 1.5


async def test_a_reader_that_reconnects_after_missing_changes_gets_every_topic(api: Client) -> None:
    async with watching(api) as watch:
        await given.put(api, await given.job(api), "a")
        id_, _ = await watch.change()
    async with watching(api, Last_Event_ID=f"{id_.split('-')[0]}-0") as again:
        _, topics = await again.change()

    assert topics == {topic.value for topic in EVERY_TOPIC}


async def test_a_stop_of_the_server_ends_the_stream_in_good_order(url: str) -> None:
    async with harness.node(url) as api:
        response = await api.session.get(api.base + PATH)
        stopping = asyncio.get_running_loop().time()
    took = asyncio.get_running_loop().time() - stopping
    response.close()
    assert took < 4.5, "the server has waited for the stream"
    assert response.status == 200


# One feed alone


@asynccontextmanager
async def feed_on(
    url: str, readers: int = 4, per_tenant: int = 2, interval: float = 0.02, every_round: float = 1_000
) -> AsyncGenerator[Feed]:
    pool = await open_pool(url, "horai api", 1)
    yield Feed(
        Context(pool, Wakeups(), EngineHealth(), 1, "default", ()),
        ServerLimits(readers=readers, readers_per_tenant=per_tenant),
        interval,
        every_round,
    )
    await close_pool(pool)


async def test_the_feed_polls_with_one_poller_after_all_readers_left_and_a_new_one_enters(url: str) -> None:
    async with feed_on(url) as feed:
        first, second = feed.enter(None), feed.enter(None)
        await given.until(lambda: _at_least(feed, 3))
        feed.leave(first)
        feed.leave(second)
        await asyncio.sleep(0)
        looks = feed.looks
        later = feed.enter(None)
        await given.until(lambda: _at_least(feed, looks + 1))

        assert feed.looks <= looks + 3, "two watchers would be looking"
        feed.leave(later)


async def _at_least(feed: Feed, looks: int) -> bool:
    return feed.looks >= looks


async def test_a_hundred_readers_have_room_and_the_next_one_is_told_when_to_return(api: Client) -> None:
    held: list[ClientResponse] = []
    try:
        async with (
            aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session,
            aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0, local_addr=("127.0.0.2", 0))) as neighbour,
        ):
            for _ in range(50):
                held.append(await session.get(api.base + PATH))
            reply = await api("GET", PATH)
            expect.problem(reply, 503, "SCH_503_TOO_MANY_READERS", "50 readers at this address")
            for _ in range(50):
                held.append(await neighbour.get(api.base + PATH))
            assert {response.status for response in held} == {200}, "one address does not take the room of another"
            reply = await api("GET", PATH)
            expect.problem(reply, 503, "SCH_503_TOO_MANY_READERS", "100 readers of this tenant")
            assert reply.headers["Retry-After"] == "5"
    finally:
        for response in held:
            response.close()

    async def has_room() -> bool:
        async with api.session.get(api.base + PATH) as response:
            return response.status == 200

    assert await given.until(has_room), "who has gone makes room"


async def test_C2a_the_readers_of_one_tenant_leave_room_for_another(url: str) -> None:
    async with feed_on(url) as feed:
        noisy = [feed.enter(None, f"10.0.0.{number}", 1) for number in range(2)]
        with pytest.raises(TooManyReaders, match="2 readers of this tenant"):
            feed.enter(None, "10.0.0.3", 1)

        quiet = [feed.enter(None, "10.0.1.1", tenant) for tenant in (2, None)]
        with pytest.raises(TooManyReaders, match="4 readers watch this server"):
            feed.enter(None, "10.0.1.2", 3)
        for reader in noisy + quiet:
            feed.leave(reader)


CONTROL = {"jobs", "queues", "workflows", "backfills", "refresh", "reconcilers", "dead-letters"}
"""The topics that a row of the audit log may concern."""


async def test_C2a_a_reader_is_told_of_changes_of_its_own_tenant_only(url: str, connection: Platform) -> None:
    second = await connection.fetchval("insert into horai.tenant (name) values ('second') returning id")
    async with feed_on(url) as feed:
        mine, theirs = (feed.enter(None, "", tenant, sees_all=False) for tenant in (1, second))
        platform = feed.enter(None)
        await given.until(lambda: _at_least(feed, 2))

        await audits.write(connection, tenant_id=second)
        assert await theirs.news(30) == CONTROL
        assert feed.id_of(theirs) != feed.id_of(mine)
        await connection.execute("insert into horai.queue (tenant_id, name, priority) values ($1, 'q', 1)", second)
        while Topic.queues not in (await platform.news(30) or ()):
            pass
        await audits.write(connection, tenant_id=1)

        assert await mine.news(30) == CONTROL
        assert feed.id_of(mine).endswith("-1"), "one message, of its own change"
        assert await theirs.news(0) == frozenset()
        for reader in (mine, theirs, platform):
            feed.leave(reader)


async def test_C2a_readers_of_one_of_several_tenants_are_told_of_every_topic_from_time_to_time(
    url: str, connection: Platform
) -> None:
    await connection.execute("insert into horai.tenant (name) values ('second')")
    async with feed_on(url, every_round=0.05) as feed:
        reader = feed.enter(None, "", 1, sees_all=False)
        for _ in range(2):
            assert await reader.news(30) == OF_TENANTS
        feed.leave(reader)


async def test_C2a_a_key_of_a_tenant_reads_the_changes_of_its_tenant(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("horai.features.overview.feed.ROUND", 1_000)
    async with harness.node(url) as api:
        root = await holder(api, "platform-admin")
        assert (await root("POST", "/api/v1/tenants", {"name": "second"})).status == 201
        keys = [(await created(root, "admin", tenant))["key"] for tenant in ("default", "second")]
        mine, theirs = (holding(api, key) for key in keys)
        own, other = (watching(api, Authorization=f"Bearer {key}") for key in keys)
        async with own as to_me, other as to_them:
            await given.job(theirs)
            await to_them.until("jobs")
            await given.job(mine)
            first, topics = await to_me.change()

    assert (first[-2:], topics) == ("-1", CONTROL), "the first message is of its own change"


async def _always() -> bool:
    return True


async def _never(_: Any = None) -> Any:
    await asyncio.Event().wait()


async def test_a_reader_that_takes_nothing_is_dropped_and_makes_room(url: str) -> None:
    async with feed_on(url, readers=1) as feed:
        await Stream(feed, feed.enter(None), _always, patience=0.05)({}, _never, _never)

        feed.leave(feed.enter(None))


async def test_silence_is_broken_by_a_comment(url: str) -> None:
    sent: list[bytes] = []

    async with feed_on(url) as feed:
        reader = feed.enter(None)

        async def send(message: Any) -> None:
            sent.append(message.get("body", b""))
            if sent.count(b": still here\n\n") == 2:
                reader.end()

        await Stream(feed, reader, _always, heartbeat=0.01)({}, _never, send)

    assert sent[-1] == b"", "the end is told"


async def test_topics_that_a_reader_has_not_taken_become_one_message() -> None:
    reader = Reader()
    reader.tell([Topic.jobs])
    reader.tell([Topic.instances, Topic.jobs])

    assert await reader.news(1.0) == {Topic.jobs, Topic.instances}
    assert await reader.news(0.0) == frozenset()
    reader.end()
    assert await reader.news(1.0) is None


def test_only_topics_with_other_marks_have_changed() -> None:
    before = dict.fromkeys(Topic, ("1",))

    assert changed(before, {**before, Topic.queues: ("2",)}) == {Topic.queues}
    assert changed(before, before) == frozenset()
    assert changed(None, before) == EVERY_TOPIC
