"""put, enqueue, trigger, cancel: from Python as from anywhere else."""

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from working import working

from horai import Horai, Instance, InstanceCancelled, InstanceFailed, Retry
from horai.core.errors import DispatcherDown, Invalid, NotFound
from horai.db.pool import Platform
from horai.sdk.app import Unnamed


@dataclass
class Coupon:
    user: int
    amount: float = 1.0


class Shop:
    """An application with a job of each kind."""

    def __init__(self, url: str) -> None:
        self.app = Horai("shop", database_url=url)
        self.seen: list[Any] = []

        @self.app.job
        async def send(instance: Instance[Coupon]) -> dict[str, Any]:
            self.seen.append(instance.payload)
            return {"user": instance.payload.user}

        @self.app.job(payload={"user": 1}, name="own_payload")
        async def own(coupon: Coupon) -> int:
            return coupon.user

        @self.app.job(retry=Retry(max=0))
        async def fail() -> None:
            raise ValueError("no stock")

        self.send, self.own, self.fail = send, own, fail


async def test_an_instance_is_enqueued_run_and_its_result_comes_back(url: str):
    shop = Shop(url)
    async with working(shop.app):
        handle = await shop.send.enqueue(Coupon(7))
        assert await handle.result(timeout=30) == {"user": 7}
    assert shop.seen == [Coupon(7)]
    assert not handle.duplicate


async def test_without_a_payload_an_instance_has_the_jobs_own(url: str):
    shop = Shop(url)
    async with working(shop.app):
        own = await shop.own.enqueue()  # pyright: ignore — its parameter has no default, and the job has a payload
        assert await own.result("10s") == 1
        assert await (await shop.own.enqueue(Coupon(5))).result("10s") == 5


async def test_many_are_all_there_in_their_order(url: str, connection: Platform):
    shop = Shop(url)
    handles = await shop.send.enqueue_many(Coupon(n) for n in range(1_000))
    stored = await connection.fetch("select id, payload ->> 'user' as user from horai.instance_live order by id")
    assert [row["user"] for row in stored] == [str(n) for n in range(1_000)]
    assert [handle.id for handle in handles] == [str(row["id"]) for row in stored]
    await shop.app.close()


async def test_large_payloads_are_added_a_few_at_a_time(url: str, connection: Platform):
    app = Horai("large", database_url=url)

    @app.job
    async def keep(text: str) -> None: ...

    texts = ["x" * 1_000_000] * 20
    assert [len(batch) for batch in keep._batches(texts)] == [9, 9, 2]
    assert [len(batch) for batch in keep._batches(["x"] * 4_001)] == [2_000, 2_000, 1]
    assert len(await keep.enqueue_many(texts)) == 20
    assert await connection.fetchval("select count(*) from horai.instance_live") == 20
    await app.close()


async def test_a_repeated_idempotency_key_gives_the_first_instance(url: str, connection: Platform):
    shop = Shop(url)
    first = await shop.send.enqueue(Coupon(1), idempotency_key="order-1")
    again = await shop.send.enqueue(Coupon(1), idempotency_key="order-1")
    assert (first.duplicate, again.duplicate) == (False, True)
    assert again.id == first.id
    assert await connection.fetchval("select count(*) from horai.instance_live") == 1
    with pytest.raises(Invalid, match="another body"):
        await shop.send.enqueue(Coupon(2), idempotency_key="order-1")
    await shop.app.close()


async def test_a_put_returns_its_decision(url: str):
    shop = Shop(url)
    at = datetime.now(UTC) + timedelta(hours=1)
    made = await shop.send.put("article:42", at=at, payload=Coupon(1))
    moved = await shop.send.put("article:42", delay="2h")
    stale = await shop.send.put("article:42", delay="3h", version=2)
    old = await shop.send.put("article:42", at=at, version=1)
    assert [h.decision for h in (made, moved, stale, old)] == ["INSERTED", "UPDATED", "UPDATED", "IGNORED"]
    assert made.id == moved.id == old.id
    assert old.duplicate
    await shop.app.close()


async def test_a_key_is_cancelled_once(url: str):
    shop = Shop(url)
    handle = await shop.send.put("article:42", delay="1h", payload=Coupon(1))
    assert await shop.send.cancel("article:42")
    assert not await shop.send.cancel("article:42")
    with pytest.raises(InstanceCancelled) as caught:
        await handle.result(timeout=30)
    assert caught.value.reason == "USER"
    await shop.app.close()


async def test_the_result_of_a_dead_instance_is_its_error(url: str):
    shop = Shop(url)
    async with working(shop.app):
        handle = await shop.fail.enqueue()
        with pytest.raises(InstanceFailed, match="no stock") as caught:
            await handle.result(timeout=30)
    assert caught.value.error_code == "ValueError"


async def test_waiting_for_a_result_has_an_end(url: str):
    shop = Shop(url)
    handle = await shop.send.enqueue(Coupon(1))
    with pytest.raises(TimeoutError):
        await handle.result(timeout="30ms")
    await shop.app.close()


async def test_a_thousand_results_are_waited_for_together(url: str):
    shop = Shop(url)
    async with working(shop.app):
        handles = await shop.send.enqueue_many([Coupon(n) for n in range(1_200)])
        results = await asyncio.gather(*(handle.result(timeout=30) for handle in handles))
    assert [result["user"] for result in results] == list(range(1_200))


async def test_a_job_that_the_database_does_not_know_is_declared_by_its_first_instance(url: str, connection: Platform):
    shop = Shop(url)
    await shop.send.enqueue(Coupon(1))
    assert [row["name"] for row in await connection.fetch("select name from horai.job")] == ["send"]
    await shop.app.close()


async def test_a_trigger_is_refused_while_no_worker_is_alive(url: str):
    shop = Shop(url)
    await shop.app.declare()
    with pytest.raises(DispatcherDown):
        await shop.send.trigger(Coupon(1))
    async with working(shop.app):
        first = await shop.send.trigger(Coupon(1), idempotency_key="once")
        again = await shop.send.trigger(Coupon(1), idempotency_key="once")
        assert (again.id, again.duplicate) == (first.id, True)
        assert await first.result(timeout=30) == {"user": 1}


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"payload": {"user": "x"}}, "user"),
        ({"at": datetime(2026, 1, 1)}, "UTC offset"),  # noqa: DTZ001
        ({"at": datetime(2026, 1, 1, tzinfo=UTC), "delay": 1}, "delay"),
        ({"payload": Coupon(1), "idempotency_key": ""}, "Idempotency-Key"),
    ],
)
async def test_an_invalid_enqueue_is_refused(url: str, wrong: dict[str, Any], words: str):
    shop = Shop(url)
    await shop.app.declare()
    with pytest.raises(Invalid, match=words):
        await shop.send.enqueue(**wrong)
    await shop.app.close()


@pytest.mark.parametrize("key", ["", "x" * 513, "a\x00b", "\ud800"])
async def test_a_key_that_cannot_be_stored_is_refused(url: str, key: str):
    shop = Shop(url)
    with pytest.raises(Invalid, match="key"):
        await shop.send.put(key, delay="1h")
    await shop.app.close()


async def test_a_deleted_job_that_is_not_in_the_code_is_not_found(url: str):
    shop, other = Shop(url), Horai("other", database_url=url)

    @other.job(name="elsewhere")
    async def elsewhere() -> None: ...

    await elsewhere.enqueue()
    with pytest.raises(NotFound):
        await (await shop.app.client()).enqueue("nowhere", None, None)
    await other.close()
    await shop.app.close()


def test_a_job_is_called_like_the_function_it_is(url: str):
    shop = Shop(url)
    with pytest.raises(ValueError, match="no stock"):
        asyncio.run(shop.fail())


def test_the_same_name_twice_is_refused():
    app = Horai("twice")
    app.job(name="one")(lambda: None)
    with pytest.raises(Invalid, match="declared twice"):
        app.job(name="one")(lambda: None)


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"cron": "not a cron"}, "cron"),
        ({"every": "5 bananas"}, "bananas"),
        ({"timezone": "Mars/Olympus", "cron": "0 9 * * *"}, "timezone"),
        ({"queue": "no spaces"}, "queue"),
        ({"retry": Retry(max=-1)}, "maxRetry"),
        ({"timeout": -1}, "below zero"),
    ],
)
def test_a_wrong_declaration_is_told_at_once_with_the_jobs_name(options: dict[str, Any], field: str):
    app = Horai("wrong")
    with pytest.raises(Invalid, match=f"'broken'.*{field}"):

        @app.job(name="broken", **options)
        async def broken() -> None: ...


async def test_an_application_without_a_name_adds_instances_and_declares_no_job(url: str, connection: Platform):
    shop, client = Shop(url), Horai(database_url=url)
    await shop.app.declare()

    @client.job(name="send")
    async def send(instance: Any) -> None: ...

    @client.job
    async def unknown() -> None: ...

    assert (await send.enqueue({"id": 1})).decision == "INSERTED"
    for refused in (unknown.enqueue(), client.declare()):
        with pytest.raises(Unnamed, match="has no name") as found:
            await refused
        assert found.value.hint is not None
        assert 'Horai("shop")' in found.value.hint
    assert await connection.fetchval("select count(*) from horai.job where name = 'unknown'") == 0
    await client.close()
    await shop.app.close()


async def test_E2_instances_added_in_the_transaction_of_the_caller_exist_after_its_commit(
    url: str, connection: Platform
):
    shop = Shop(url)
    await shop.app.declare()
    async with connection.transaction():
        one = await shop.send.enqueue(Coupon(1), conn=connection)
        many = await shop.send.enqueue_many([Coupon(2), Coupon(3)], conn=connection, delay="1h")
        put = await shop.send.put("k", delay="1h", payload=Coupon(4), conn=connection)
        assert await shop.send.cancel("k", conn=connection)
        assert not await shop.send.cancel("k", conn=connection)
    ids = {row["id"] for row in await connection.fetch("select id from horai.instance_live")}
    assert ids == {int(one.id), *(int(handle.id) for handle in many)}
    assert put.decision == "INSERTED"
    await shop.app.close()


async def test_E2_a_rollback_leaves_nothing(url: str, connection: Platform):
    shop = Shop(url)
    await shop.app.declare()
    undone = connection.transaction()
    await undone.start()
    await shop.send.enqueue(Coupon(1), conn=connection)
    await shop.send.put("k", conn=connection, payload=Coupon(2))
    await undone.rollback()
    assert await connection.fetchval("select count(*) from horai.instance_live") == 0
    await shop.app.close()


async def test_an_enqueue_in_the_transaction_of_the_caller_declares_an_undeclared_job(url: str, connection: Platform):
    shop = Shop(url)
    async with connection.transaction():
        await shop.send.enqueue(Coupon(1), conn=connection)
    assert await connection.fetchval("select count(*) from horai.instance_live") == 1
    await shop.app.close()


async def test_an_idempotency_key_is_refused_in_the_callers_transaction(url: str, connection: Platform):
    shop = Shop(url)
    async with connection.transaction():
        with pytest.raises(Invalid, match="cannot be combined with conn"):
            await shop.send.enqueue(Coupon(1), idempotency_key="x", conn=connection)
    await shop.app.close()
