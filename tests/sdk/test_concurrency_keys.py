"""`job.options(concurrency_key=…)`: at most `concurrency_per_key` instances of a key run at once, in all processes."""

import asyncio
import base64
import os
from collections import Counter
from typing import Any

import harness
import pytest
from callers import Caller
from harness import FAST
from rows import until
from working import working

from horai import Horai, Instance, Retry
from horai.core.errors import Invalid
from horai.core.put import PutDecision
from horai.db.pool import Platform
from horai.db.verify import verify
from horai.operations import jobs as operations
from horai.sdk import drivers


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    """The process has an encryption key."""
    monkeypatch.setenv("HORAI_ENCRYPTION_KEY", base64.b64encode(os.urandom(32)).decode())


class Bank:
    """An application whose functions end when the test says so, and count how many of each key are inside."""

    def __init__(self, url: str) -> None:
        self.app = Horai("bank", database_url=url)
        self.gate = asyncio.Semaphore(0)
        self.inside: Counter[str] = Counter()
        self.most: Counter[str] = Counter()
        self.order: list[str] = []

        async def run(name: str) -> None:
            self.order.append(name)
            self.inside[name] += 1
            self.most[name] = max(self.most[name], self.inside[name])
            try:
                await self.gate.acquire()
            finally:
                self.inside[name] -= 1

        @self.app.job
        async def charge(customer: str) -> str:
            await run(customer)
            return customer

        @self.app.job(concurrency_per_key=2)
        async def mail(customer: str) -> str:
            await run(customer)
            return customer

        @self.app.job(encrypted=True, retry=Retry(max=0))
        async def store(instance: Instance[dict[str, str]]) -> None:
            await run("sealed")

        self.charge, self.mail, self.store = charge, mail, store

    async def running(self, name: str, count: int) -> None:
        async def look() -> bool:
            return self.inside[name] == count

        await until(look)

    def let(self, count: int = 1) -> None:
        for _ in range(count):
            self.gate.release()


async def keys(connection: Platform) -> list[str | None]:
    found = await connection.fetch("select concurrency_key from horai.instance_live order by id")
    return [row["concurrency_key"] for row in found]


async def parked(connection: Platform) -> int:
    return await connection.fetchval("select count(*) from horai.instance_live where lane = 0")


async def until_parked(connection: Platform, count: int) -> None:
    async def look() -> bool:
        return await parked(connection) == count

    await until(look)


async def test_one_instance_of_a_key_runs_at_once_and_the_next_begins_when_it_has_ended(
    url: str, connection: Platform
) -> None:
    bank = Bank(url)
    first = [await bank.charge.options(concurrency_key="a").enqueue("a") for _ in range(3)]
    other = await bank.charge.options(concurrency_key="b").enqueue("b")
    plain = [await bank.charge.enqueue("none") for _ in range(3)]
    async with working(bank.app):
        await bank.running("a", 1)
        await bank.running("b", 1)
        await bank.running("none", 3)
        await until_parked(connection, 2)
        bank.let(7)
        assert [await handle.result("30s") for handle in (*first, other, *plain)] == [*"aaab", *["none"] * 3]
    assert (bank.most["a"], bank.most["b"], bank.most["none"]) == (1, 1, 3)
    assert await connection.fetchval("select count(*) from horai.instance_history where concurrency_key = 'a'") == 3
    assert all(finding.holds for finding in await verify(connection))


async def test_a_job_declares_how_many_of_a_key_run_at_once(url: str, connection: Platform) -> None:
    bank = Bank(url)
    handles = await bank.mail.options(concurrency_key=lambda customer: f"of-{customer}").enqueue_many(["a"] * 5 + ["b"])
    async with working(bank.app):
        await bank.running("a", 2)
        await bank.running("b", 1)
        await until_parked(connection, 3)
        bank.let(6)
        assert [await handle.result("30s") for handle in handles] == ["a"] * 5 + ["b"]
    assert bank.most["a"] == 2


async def test_a_cancelled_holder_gives_its_place_to_the_next(url: str, connection: Platform) -> None:
    bank = Bank(url)
    first, second = [await bank.charge.options(concurrency_key="a").enqueue("a") for _ in range(2)]
    async with working(bank.app):
        await bank.running("a", 1)
        await until_parked(connection, 1)
        await first.cancel()

        async def second_runs() -> bool:
            return await second.state() == "RUNNING"

        await until(second_runs)
        bank.let(2)
        assert await second.result("30s") == "a"


async def test_a_worker_that_stops_leaves_no_waiting_instance_behind(url: str, connection: Platform) -> None:
    bank = Bank(url)
    keyed = bank.charge.options(concurrency_key="a")
    first, second = await keyed.enqueue("a"), await keyed.enqueue("a")
    async with working(bank.app):
        await bank.running("a", 1)
        await until_parked(connection, 1)
        bank.let()
        await first.result("30s")
        await bank.running("a", 1)
        bank.let()
    other = Bank(url)
    third = await other.charge.options(concurrency_key="a").enqueue("a")
    async with working(other.app):
        other.let(2)
        assert (await second.result("30s"), await third.result("30s")) == ("a", "a")


async def test_every_way_to_add_an_instance_keeps_its_key(url: str, connection: Platform) -> None:
    bank = Bank(url)
    keyed = bank.charge.options(concurrency_key="k")
    await keyed.enqueue("1")
    await bank.charge.options(concurrency_key="k", delay="1h").enqueue("2")
    await bank.charge.options(concurrency_key="k", idempotency_key="once").enqueue("3")
    assert (await bank.charge.options(concurrency_key="k", idempotency_key="once").enqueue("3")).duplicate
    await bank.charge.options(concurrency_key="k", unique=True).enqueue("4")
    await bank.charge.options(concurrency_key="k", debounce="1h").enqueue("5")
    await bank.charge.options(concurrency_key="k").put("key:6", "6")
    await keyed.enqueue_many(["7", "8"])
    await bank.store.options(concurrency_key="k").enqueue({"card": "1"})
    assert bank.charge.sync.options(concurrency_key="k").enqueue("9").id
    async with working(bank.app):
        triggered = await bank.charge.options(concurrency_key="k").trigger("10")
        bank.let(20)
        assert await triggered.result("30s") == "10"
    stored = await connection.fetch(
        "select concurrency_key from horai.instance_live union all select concurrency_key from horai.instance_history"
    )
    assert {row["concurrency_key"] for row in stored} == {"k"}
    assert len(stored) == 11


async def test_a_put_moves_an_instance_to_another_key_and_keeps_the_key_without_one(
    url: str, connection: Platform
) -> None:
    bank = Bank(url)
    handle = await bank.charge.options(delay="1h").put("key:1", "1")
    assert await keys(connection) == [None]
    moved = await bank.charge.options(delay="2h", concurrency_key="a").put("key:1", "1")
    assert (moved.decision, moved.id, await keys(connection)) == (PutDecision.UPDATED, handle.id, ["a"])
    await bank.charge.options(delay="3h").put("key:1", "1")
    assert await keys(connection) == ["a"]


def test_a_call_in_the_transaction_of_the_caller_has_its_key(url: str, caller: Caller, runner: asyncio.Runner) -> None:
    bank = Bank(url)

    def call(make: Any) -> Any:
        return make() if drivers.is_sync(caller.conn) else runner.run(make())

    of = bank.charge.sync if drivers.is_sync(caller.conn) else bank.charge
    runner.run(bank.charge.options(delay="1h", concurrency_key="a").enqueue("0"))  # declares the job
    caller.begin()
    call(lambda: of.options(concurrency_key="a", delay="1h", conn=caller.conn).enqueue("1"))
    call(lambda: of.options(concurrency_key=lambda n: f"c{n}", delay="1h", conn=caller.conn).enqueue_many(["2", "3"]))
    call(lambda: of.options(concurrency_key="d", delay="1h", conn=caller.conn).put("key:4", "4"))
    call(lambda: of.options(concurrency_key="e", unique=True, at=None, conn=caller.conn).enqueue("5"))
    call(lambda: of.options(concurrency_key="f", unique=True, conn=caller.conn).enqueue("5"))
    with pytest.raises(Invalid, match="512"):
        call(lambda: of.options(concurrency_key="x" * 513, conn=caller.conn).enqueue("6"))
    caller.commit()

    async def stored() -> dict[str, str]:
        client = await bank.app.client()
        async with client.scope.read() as connection:
            found = await connection.fetch("select payload::text, concurrency_key from horai.instance_live")
        await bank.app.close()
        return {row["payload"]: row["concurrency_key"] for row in found}

    assert runner.run(stored()) == {'"0"': "a", '"1"': "a", '"2"': "c2", '"3"': "c3", '"4"': "d", '"5"': "e"}


async def test_a_paused_job_keeps_its_waiting_instances_and_runs_them_within_the_limit_when_it_is_resumed(
    url: str, connection: Platform
) -> None:
    bank = Bank(url)
    handles = await bank.charge.options(concurrency_key="a").enqueue_many(["a"] * 3)
    async with harness.node(url, FAST), working(bank.app):
        await bank.running("a", 1)
        await until_parked(connection, 2)
        client = await bank.app.client()
        await operations.pause_job(client.scope, "charge", None)
        bank.let(3)
        await handles[0].result("30s")
        await until_parked(connection, 2)
        await operations.resume_job(client.scope, "charge", None)
        assert [await handle.result("30s") for handle in handles] == ["a"] * 3
    assert bank.most["a"] == 1


async def test_a_limit_that_is_raised_lets_waiting_instances_run(url: str, connection: Platform) -> None:
    bank = Bank(url)
    await bank.charge.options(concurrency_key="a").enqueue_many(["a"] * 3)
    async with harness.node(url, FAST), working(bank.app):
        await bank.running("a", 1)
        await until_parked(connection, 2)
        client = await bank.app.client()
        change = operations.JobChange({"concurrencyPerKey": 3})
        await operations.change_job(client.scope, "charge", change)
        await bank.running("a", 3)
        bank.let(3)


@pytest.mark.parametrize("given", ["", "x" * 513, "a\0b", 7, lambda _: None, lambda _: 7])
async def test_a_key_that_cannot_be_stored_is_refused(url: str, given: Any) -> None:
    bank = Bank(url)
    with pytest.raises(Invalid, match="concurrency_key"):
        await bank.charge.options(concurrency_key=given).enqueue("1")
    with pytest.raises(Invalid, match="concurrency_key"):
        await bank.charge.options(concurrency_key=given).enqueue_many(["1"])


@pytest.mark.parametrize("given", [0, 1_001, True, "2"])
def test_a_job_cannot_declare_a_limit_that_is_no_limit(url: str, given: Any) -> None:
    app = Horai("bank", database_url=url)
    with pytest.raises(Invalid, match="concurrencyPerKey"):

        @app.job(concurrency_per_key=given)
        async def charge() -> None: ...
