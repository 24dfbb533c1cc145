"""`job.options(unique=…)` and `job.options(debounce=…)`: calls with equal arguments share an instance."""

import asyncio
import base64
import json
import os
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from callers import Caller
from dumps import every_row
from working import working

from horai import Horai, Instance, Retry
from horai.core.errors import Invalid, RetryLimited
from horai.core.put import PutDecision
from horai.db.pool import Platform
from horai.sdk import drivers

CANARY = "hunter2canary"


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    """The process has an encryption key."""
    monkeypatch.setenv("HORAI_ENCRYPTION_KEY", base64.b64encode(os.urandom(32)).decode())


class Shop:
    """An application with plain functions and an encrypted one."""

    def __init__(self, url: str) -> None:
        self.app = Horai("shop", database_url=url)
        self.ran: Counter[str] = Counter()

        @self.app.job
        async def charge(order: int, *, currency: str = "EUR") -> str:
            self.ran[f"{order} {currency}"] += 1
            return f"{order} {currency}"

        @self.app.job
        async def named(unique: str = "", debounce: str = "") -> str:
            return unique + debounce

        @self.app.job
        async def single(unique: str) -> str:
            return unique

        @self.app.job(encrypted=True, search_paths=["card"], retry=Retry(max=0))
        async def store(instance: Instance[dict[str, str]]) -> None: ...

        self.charge, self.named, self.single, self.store = charge, named, single, store


def given_as(option: str) -> Any:
    return {option: "x"}


async def count(connection: Platform, table: str = "instance_live") -> int:
    return await connection.fetchval(f"select count(*) from horai.{table}")


async def test_a_unique_call_gets_the_handle_of_the_first_while_it_is_live(url: str, connection: Platform) -> None:
    shop = Shop(url)
    first = await shop.charge.options(unique=True).enqueue(1, currency="USD")
    second = await shop.charge.options(unique=True).enqueue(1, currency="USD")
    other = await shop.charge.options(unique=True).enqueue(2, currency="USD")
    plain = await shop.charge.enqueue(1, currency="USD")

    assert (first.decision, first.duplicate) == (PutDecision.INSERTED, False)
    assert (second.id, second.decision, second.duplicate) == (first.id, PutDecision.IGNORED, True)
    assert len({first.id, other.id, plain.id}) == 3
    async with working(shop.app):
        assert await second.result("30s") == "1 USD"
        again = await shop.charge.options(unique=True).enqueue(1, currency="USD")
        assert (again.duplicate, await again.result("30s")) == (False, "1 USD")
        windowed = shop.charge.options(unique="10m")
        made = await windowed.enqueue(3)
        assert await made.result("30s") == "3 EUR"
        repeated = await windowed.enqueue(3)
        assert (repeated.id, repeated.duplicate, await repeated.state()) == (made.id, True, "SUCCESS")
        triggered = await shop.charge.options(unique="10m").trigger(3)
        assert (triggered.id, triggered.duplicate) == (made.id, True)


async def test_a_debounced_call_moves_the_instance_of_the_one_before(url: str, connection: Platform) -> None:
    shop = Shop(url)
    first = await shop.charge.options(debounce="1h").enqueue(1)
    second = await shop.charge.options(debounce="2h").enqueue(1)
    other = await shop.charge.options(debounce="1h").enqueue(2)

    assert (first.decision, second.decision, second.id) == (PutDecision.INSERTED, PutDecision.UPDATED, first.id)
    assert other.id != first.id
    ahead = "select execute_time > now() + interval '110 minutes' from horai.instance_live where id = $1"
    assert await connection.fetchval(ahead, int(first.id))
    await connection.execute("update horai.instance_live set due = now()")
    async with working(shop.app):
        assert await second.result("30s") == "1 EUR"
        assert (await shop.charge.options(debounce="1h").enqueue(1)).decision is PutDecision.INSERTED


async def test_many_unique_calls_are_added_at_once_and_repeats_share_an_instance(
    url: str, connection: Platform
) -> None:
    shop = Shop(url)
    first = await shop.charge.options(unique="10m").enqueue(2)
    items = [shop.charge.arguments(number) for number in (1, 2, 1, 3)]
    handles = await shop.charge.options(unique="10m").enqueue_many(items)

    assert [handle.decision for handle in handles] == ["INSERTED", "IGNORED", "IGNORED", "INSERTED"]
    assert (handles[1].id, handles[2].id, len(handles)) == (first.id, handles[0].id, 4)
    assert not await shop.charge.options(unique=True).enqueue_many([])
    moved = await shop.charge.options(debounce="1h").enqueue_many(items)
    assert [handle.decision for handle in moved[:3]] == ["INSERTED", "INSERTED", "UPDATED"]
    assert await count(connection) == 6
    await shop.app.close()


async def test_many_callers_in_several_event_loops_make_one_instance(url: str, connection: Platform) -> None:
    shops = [Shop(url) for _ in range(4)]
    await shops[0].app.declare()

    def call(shop: Shop) -> set[str]:
        try:
            return {shop.charge.sync.options(unique="10m").enqueue(7).id for _ in range(5)}
        finally:
            shop.app.close_sync()

    here = asyncio.gather(*(shops[0].charge.options(unique="10m").enqueue(7) for _ in range(30)))
    there = await asyncio.gather(*(asyncio.to_thread(call, shop) for shop in shops[1:]))

    made = {handle.id for handle in await here}
    assert made.union(*there) == made
    assert len(made) == await count(connection) == await count(connection, "unique_call") == 1
    for shop in shops:
        await shop.app.close()


def test_a_unique_call_in_the_callers_transaction_commits_and_rolls_back_with_it(
    url: str, connection: Platform, runner: asyncio.Runner, caller: Caller
) -> None:
    shop = Shop(url)
    runner.run(shop.app.declare())

    def add(order: int, **options: Any) -> Any:
        given: Any = {"unique": "10m", **options, "conn": caller.conn}
        if drivers.is_sync(caller.conn):
            return shop.charge.sync.options(**given).enqueue(order)
        return runner.run(shop.charge.options(**given).enqueue(order))

    caller.begin()
    lost = add(1)
    caller.rollback()
    assert runner.run(count(connection)) == 0
    caller.begin()
    first, second = add(1), add(1)
    moved = [add(2, unique=None, debounce="1h") for _ in range(2)]
    items = [shop.charge.arguments(number) for number in (1, 5, 5)]
    if drivers.is_sync(caller.conn):
        many: Any = shop.charge.sync.options(unique="10m", conn=caller.conn).enqueue_many(items)
    else:
        many = runner.run(shop.charge.options(unique="10m", conn=caller.conn).enqueue_many(items))
    caller.commit()

    assert [each.duplicate for each in many] == [True, False, True]
    assert (many[0].id, many[1].id) == (first.id, many[2].id)

    assert (first.duplicate, second.duplicate, first.id == second.id) == (False, True, True)
    assert lost.id != first.id
    assert ([each.decision for each in moved], moved[0].id) == (["INSERTED", "UPDATED"], moved[1].id)
    assert runner.run(shop.charge.options(unique="10m").enqueue(1)).id == first.id, "the same arguments, another way"
    runner.run(shop.app.close())


def test_arguments_of_an_encrypted_job_are_compared_by_a_keyed_digest(
    url: str, connection: Platform, runner: asyncio.Runner, caller: Caller
) -> None:
    shop = Shop(url)
    runner.run(shop.app.declare())
    once = shop.store.options(unique="10m")
    first = runner.run(once.enqueue({"card": CANARY, "b": "1"}))
    assert runner.run(once.enqueue({"b": "1", "card": CANARY})).id == first.id
    assert runner.run(once.enqueue({"b": "2", "card": CANARY})).id != first.id
    runner.run(connection.execute("update horai.data_key set month = month - interval '1 month'"))
    assert runner.run(once.enqueue({"card": CANARY, "b": "1"})).id == first.id, "in the next month, too"
    assert runner.run(count(connection, "data_key")) == 2
    caller.begin()
    if drivers.is_sync(caller.conn):
        within = shop.store.sync.options(unique="10m", conn=caller.conn).enqueue({"card": CANARY, "b": "1"})
        fresh = shop.store.sync.options(unique="10m", conn=caller.conn).enqueue({"card": CANARY, "b": "3"})
    else:
        within = runner.run(shop.store.options(unique="10m", conn=caller.conn).enqueue({"card": CANARY, "b": "1"}))
        fresh = runner.run(shop.store.options(unique="10m", conn=caller.conn).enqueue({"card": CANARY, "b": "3"}))
    caller.commit()

    assert (within.id, fresh.duplicate) == (first.id, False)
    assert runner.run(once.enqueue({"card": CANARY, "b": "3"})).id == fresh.id
    sizes = runner.run(connection.fetch("select distinct octet_length(digest) from horai.unique_call"))
    assert [size for (size,) in sizes] == [41]
    assert runner.run(count(connection, "payload_digest")) == 3, "ignored calls index nothing"
    assert CANARY not in runner.run(every_row(connection))
    runner.run(shop.app.close())


async def test_sql_cannot_call_an_encrypted_job_with_arguments(url: str, connection: Platform) -> None:
    shop = Shop(url)
    await shop.app.declare()
    handle = await shop.store.options(unique=True).enqueue({"card": CANARY})
    envelope = await connection.fetchval("select payload from horai.instance_live where id = $1", int(handle.id))

    for payload in ('{"card": "1"}', json.dumps({**json.loads(envelope), "d": {"card": None}})):
        with pytest.raises(Exception, match="job: is encrypted, and SQL functions have no key"):
            await connection.fetch("select * from horai.enqueue_unique('store', $1::json)", payload)
    await shop.app.close()


async def test_ignored_calls_are_not_charged_to_quotas(url: str, connection: Platform) -> None:
    shop = Shop(url)
    await shop.app.declare()
    await connection.execute(
        "insert into horai.tenant_quota (tenant_id, live_instances) values (1, 2)"
        " on conflict (tenant_id) do update set live_instances = 2"
    )
    await connection.execute("update horai.job set metered = true")
    once = shop.charge.options(unique=True)
    for _ in range(5):
        await once.enqueue(1)
    await once.enqueue(2)

    with pytest.raises(RetryLimited, match="liveInstances"):
        await once.enqueue(3)
    assert (await once.enqueue(1)).duplicate
    assert await count(connection) == await count(connection, "unique_call") == 2
    await shop.app.close()


async def test_no_parameter_loses_its_name_to_a_new_option(url: str) -> None:
    shop = Shop(url)
    async with working(shop.app):
        assert await (await shop.named.enqueue(unique="a", debounce="b")).result("30s") == "ab"
        assert await (await shop.single.enqueue(unique="a")).result("30s") == "a"
        assert await (await shop.single.trigger(unique="b")).result("30s") == "b"
        once = shop.single.options(unique=True)
        assert await (await once.enqueue(unique="c")).result("30s") == "c"


async def test_options_that_contradict_each_other_are_refused(url: str, connection: Platform) -> None:
    shop = Shop(url)
    await shop.app.declare()
    options = shop.charge.options
    refused: list[tuple[Callable[[], Any], str]] = [
        (
            lambda: options(unique=True, idempotency_key="k").enqueue(1),
            "idempotency_key: cannot be combined with unique",
        ),
        (lambda: options(unique=True, debounce="1s").enqueue(1), "debounce: cannot be combined with unique"),
        (lambda: options(debounce="1s", delay="1s").enqueue(1), "delay: cannot be combined with debounce"),
        (lambda: options(unique="10 minutes").enqueue(1), "unique: '10 minutes' is not a duration"),
        (lambda: options(unique="8d").enqueue(1), "unique: is not between 1ms and 7d"),
        (lambda: options(unique=True).put("k", 1), "unique: is not an option of put"),
        (lambda: options(unique=True).enqueue_many([shop.charge.arguments(1)] * 10_001), "at most 10000 calls at once"),
        (lambda: options(debounce="1s").trigger(1), "debounce: is not an option of trigger"),
    ]
    for call, said in refused:
        with pytest.raises(Invalid, match=said):
            await call()
    with pytest.raises(TypeError, match=r"job\.options has no option 'region'"):
        options(**given_as("region"))
    assert await count(connection) == 0
    await shop.app.close()
