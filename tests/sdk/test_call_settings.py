"""`job.options(queue=…, priority=…, expires=…)`: the lane of one call, through every path and every change of its job."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import harness
import pytest
from callers import Caller
from harness import FAST
from rows import until
from working import working

from horai import Horai, Instance, InstanceCancelled, Retry
from horai.core.errors import Invalid
from horai.core.put import PutDecision
from horai.core.queue import QueueSettings
from horai.db.pool import Platform
from horai.db.verify import verify
from horai.operations import jobs as operations
from horai.operations import queues
from horai.sdk import drivers

PLACES = """
    select live.payload::text, lane.queue, (array['core', 'high', 'normal', 'low'])[lane.priority + 1] as priority,
        live.lane = 0 as is_parked, live.expires_at - live.fire_time as life
    from horai.instance_live live join horai.job on job.id = live.job_id
    join horai.lane on lane.id = case when live.lane = 0 then coalesce(live.own_lane, job.lane_id) else live.lane end
"""


class Shop:
    """An application with a job in its own queue, and a queue for bulk work."""

    def __init__(self, url: str) -> None:
        self.app = Horai("shop", database_url=url)
        self.ran: list[str] = []

        @self.app.job(queue="mail", retry=Retry(max=3, base="10ms", jitter="none"))
        async def send(instance: Instance[str]) -> str:
            self.ran.append(instance.payload)
            if instance.payload == "twice" and instance.attempt == 1:
                raise ConnectionError("away")
            return instance.payload

        self.send = send

    async def declare(self) -> None:
        """Declare the job, and make the queue `bulk`."""
        await self.send.options(delay="365d").put("declared", "-")
        client = await self.app.client()
        await queues.set_queue(client.scope, "bulk", QueueSettings())


async def places(connection: Platform) -> dict[str, tuple[str, str]]:
    found = await connection.fetch(PLACES)
    return {row["payload"].strip('"'): (row["queue"], row["priority"]) for row in found if row["payload"] != '"-"'}


async def test_a_call_names_its_queue_or_its_priority_and_has_the_rest_of_its_job(
    url: str, connection: Platform
) -> None:
    shop = Shop(url)
    await shop.declare()
    await shop.send.options(queue="bulk").enqueue("a")
    await shop.send.options(priority="high").enqueue("b")
    await shop.send.options(queue="bulk", priority="low").enqueue("c")
    await shop.send.enqueue("d")
    assert await places(connection) == {
        "a": ("bulk", "normal"),
        "b": ("mail", "high"),
        "c": ("bulk", "low"),
        "d": ("mail", "normal"),
    }
    assert all(finding.holds for finding in await verify(connection))


async def test_every_way_to_add_an_instance_has_the_settings(url: str, connection: Platform) -> None:
    shop = Shop(url)
    await shop.declare()
    own: dict[str, Any] = {"queue": "bulk", "priority": "low", "expires": "2h"}
    of = shop.send.options(**own)
    await of.enqueue("1")
    await shop.send.options(**own, delay="1h").enqueue("2")
    await shop.send.options(**own, idempotency_key="once").enqueue("3")
    await shop.send.options(**own, unique=True).enqueue("4")
    await shop.send.options(**own, debounce="1h").enqueue("5")
    await of.put("key:6", "6")
    await of.enqueue_many(["7", "8"])
    await shop.send.options(**own, concurrency_key="k").enqueue_many(["9"])
    assert shop.send.sync.options(**own).enqueue("10").id
    stored = await connection.fetch(PLACES + " where live.payload::text <> '\"-\"'")
    assert {(row["queue"], row["priority"], row["life"]) for row in stored} == {("bulk", "low", timedelta(hours=2))}
    assert len(stored) == 10
    async with harness.node(url, FAST), working(shop.app):
        assert await (await of.trigger("11")).result("30s") == "11"


def test_a_call_in_the_transaction_of_the_caller_has_its_settings(
    url: str, caller: Caller, runner: asyncio.Runner
) -> None:
    shop = Shop(url)

    def call(make: Any) -> Any:
        return make() if drivers.is_sync(caller.conn) else runner.run(make())

    of = shop.send.sync if drivers.is_sync(caller.conn) else shop.send
    runner.run(shop.declare())
    own: dict[str, Any] = {"queue": "bulk", "priority": "core", "expires": "1h", "conn": caller.conn}
    caller.begin()
    call(lambda: of.options(**own).enqueue("1"))
    call(lambda: of.options(**own).enqueue_many(["2", "3"]))
    call(lambda: of.options(**own, concurrency_key=lambda n: f"c{n}").enqueue_many(["4"]))
    call(lambda: of.options(**own).put("key:5", "5"))
    call(lambda: of.options(**own, unique=True).enqueue("6"))
    call(lambda: of.options(**own, unique=True).enqueue("6"))
    past = datetime.now(UTC) - timedelta(hours=1)
    refused: list[dict[str, Any]] = [{"queue": "nowhere"}, {"priority": "urgent"}, {"expires": past}]
    for wrong in refused:
        with pytest.raises(Invalid):
            call(lambda wrong=wrong: of.options(conn=caller.conn, **wrong).enqueue("7"))
    caller.commit()

    async def stored() -> list[Any]:
        client = await shop.app.client()
        async with client.scope.read() as connection:
            found = await connection.fetch(PLACES + " where live.payload::text <> '\"-\"' order by 1")
        await shop.app.close()
        return [tuple(row)[:3] for row in found]

    assert runner.run(stored()) == [(f'"{n}"', "bulk", "core") for n in range(1, 7)]


async def test_a_refused_setting_writes_nothing(url: str, connection: Platform) -> None:
    shop = Shop(url)
    await shop.declare()
    for wrong in ({"queue": "nowhere"}, {"queue": "not a name"}, {"queue": 7}, {"priority": "urgent"}, {"priority": 1}):
        given: Any = wrong
        with pytest.raises(Invalid, match=next(iter(wrong))):
            await shop.send.options(**given).enqueue("1")
        with pytest.raises(Invalid, match=next(iter(wrong))):
            await shop.send.options(**given).put("key", "1")
    assert await places(connection) == {}


async def test_a_worker_runs_an_instance_of_another_queue_and_its_retry_there(url: str, connection: Platform) -> None:
    shop = Shop(url)
    await shop.declare()
    async with working(shop.app):
        assert await shop.send.options(queue="bulk").enqueue("once")
        handle = await shop.send.options(queue="bulk", priority="high").enqueue("twice")
        assert await handle.result("30s") == "twice"
    ended = await connection.fetchrow(
        "select lane.queue, lane.priority, attempt from horai.instance_history past join horai.lane on lane.id = past.lane where past.id = $1",
        int(handle.id),
    )
    assert ended is not None
    assert tuple(ended) == ("bulk", 1, 2)


async def test_the_limit_and_the_pause_of_the_named_queue_hold(url: str, connection: Platform) -> None:
    shop = Shop(url)
    await shop.declare()
    client = await shop.app.client()
    await queues.set_queue(client.scope, "bulk", QueueSettings(paused=True))
    async with working(shop.app):
        held = await shop.send.options(queue="bulk").enqueue("held")
        assert await (await shop.send.enqueue("free")).result("30s") == "free"
        assert await held.state() == "INIT"
        await queues.set_queue(client.scope, "bulk", QueueSettings(max_concurrency=1))
        assert await held.result("30s") == "held"


async def test_a_pause_a_resume_and_another_queue_of_the_job_leave_an_instance_in_its_own_queue(
    url: str, connection: Platform
) -> None:
    shop = Shop(url)
    await shop.declare()
    await shop.send.options(queue="bulk", delay="1h").enqueue("own")
    await shop.send.options(priority="low", delay="1h").enqueue("low")
    await shop.send.options(delay="1h").enqueue("plain")
    client = await shop.app.client()

    async def are_parked(expected: bool) -> bool:
        rows = await connection.fetch(PLACES)
        return {row["is_parked"] for row in rows} == {expected}

    async with harness.node(url, FAST):
        await operations.pause_job(client.scope, "send", None)
        await until(lambda: are_parked(True))
        await shop.send.options(queue="bulk", delay="1h").enqueue("while paused")
        assert await are_parked(True)
        await operations.change_job(client.scope, "send", operations.JobChange({"queue": "other"}))
        await operations.resume_job(client.scope, "send", None)
        await until(lambda: are_parked(False))

        async def is_moved() -> bool:
            return (await places(connection))["plain"] == ("other", "normal")

        await until(is_moved)
    own = ("bulk", "normal")
    assert await places(connection) == {
        "own": own,
        "while paused": own,
        "low": ("mail", "low"),
        "plain": ("other", "normal"),
    }


async def test_an_instance_follows_the_function_of_its_job_and_keeps_its_queue(url: str, connection: Platform) -> None:
    shop = Shop(url)
    await shop.declare()
    handle = await shop.send.options(queue="bulk", concurrency_key="k", delay="1h").enqueue("own")
    client = await shop.app.client()
    async with harness.node(url, FAST):
        change = operations.JobChange({"target": {"type": "worker", "handler": "other"}})
        await operations.change_job(client.scope, "send", change)

        async def has_moved() -> bool:
            found = await connection.fetchrow(
                "select lane.handler, lane.queue, lane.is_keyed from horai.instance_live live join horai.lane on lane.id = live.lane where live.id = $1",
                int(handle.id),
            )
            return found is not None and tuple(found) == ("other", "bulk", True)

        await until(has_moved)


async def test_an_instance_that_waits_for_its_key_comes_back_to_its_own_queue(url: str, connection: Platform) -> None:
    app, gate, inside = Horai("bank", database_url=url), asyncio.Event(), asyncio.Event()

    @app.job
    async def charge(number: int) -> int:
        inside.set()
        await gate.wait()
        return number

    await charge.options(delay="365d").enqueue(0)
    client = await app.client()
    await queues.set_queue(client.scope, "bulk", QueueSettings())
    async with working(app):
        keyed = charge.options(concurrency_key="k", queue="bulk")
        first = await keyed.enqueue(1)
        await inside.wait()
        second = await keyed.enqueue(2)

        async def is_parked() -> bool:
            return bool(
                await connection.fetchval("select lane = 0 from horai.instance_live where id = $1", int(second.id))
            )

        await until(is_parked)
        gate.set()
        assert (await first.result("30s"), await second.result("30s")) == (1, 2)
    ended = await connection.fetch(
        "select lane.queue from horai.instance_history past join horai.lane on lane.id = past.lane"
    )
    assert {row["queue"] for row in ended} == {"bulk"}


async def test_a_put_moves_an_instance_to_another_queue_and_keeps_it_without_one(
    url: str, connection: Platform
) -> None:
    shop = Shop(url)
    await shop.declare()
    handle = await shop.send.options(delay="1h").put("key:1", "1")
    moved = await shop.send.options(delay="2h", queue="bulk").put("key:1", "1")
    assert (moved.decision, moved.id) == (PutDecision.UPDATED, handle.id)
    assert await places(connection) == {"1": ("bulk", "normal")}
    await shop.send.options(delay="3h").put("key:1", "1")
    assert await places(connection) == {"1": ("bulk", "normal")}
    async with working(shop.app):
        again = await shop.send.put("key:1", at=datetime.now(UTC))
        assert await again.result("30s") == "1"


async def test_a_node_cancels_an_expired_instance_and_no_worker_that_comes_later_runs_it(
    url: str, connection: Platform
) -> None:
    shop = Shop(url)
    await shop.declare()
    handle = await shop.send.options(expires="1ms").enqueue("late")
    free = await shop.send.enqueue("free")
    async with working(shop.app):  # no node yet: the claim alone leaves it
        assert await free.result("30s") == "free"
        assert await handle.state() == "INIT"
        async with harness.node(url, FAST):
            with pytest.raises(InstanceCancelled, match="EXPIRED"):
                await handle.result("30s")
    assert shop.ran == ["free"]
    told = await connection.fetchval("select data ->> 'reason' from horai.event where instance_id = $1", int(handle.id))
    assert told == "EXPIRED"
