"""Seed 002 §18, example 11: a downstream endpoint is away, so the worker leaves its side effect to a compensation queue."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import aiohttp
import asyncpg
import pytest
from receiver import Answer, Receiver

from horai import Horai, Instance, Job, Retry
from horai.testing import VirtualTime

START = datetime(2026, 11, 11, 2, tzinfo=UTC)
AWAY = 6
"""Calls that the endpoint does not take before it is back."""

Order = dict[str, int]


class Shop:
    """Settles orders in its own table, and grants coupons through an endpoint that knows each grant by its token."""

    def __init__(self, coupons: Receiver) -> None:
        self.coupons = coupons
        self.database_url = ""
        self.app = Horai("shop")
        self.settle: Job[..., Any] = self.app.job(self._settle, name="settle", retry=Retry(max=3, base="1s"))
        self.compensate: Job[..., Any] = self.app.job(
            self._compensate, name="compensate", queue="compensation", retry=Retry(max=20, base="1s", cap="5m")
        )

    async def _settle(self, instance: Instance[Order]) -> str:
        order = instance.payload["order"]
        try:
            await self._grant(order)
        except aiohttp.ClientError:
            await self._leave_it(order)
            return "LATER"
        return "GRANTED"

    async def _leave_it(self, order: int) -> None:
        """The order is settled and its side effect owed, or neither."""
        connection = await asyncpg.connect(self.database_url)
        try:
            async with connection.transaction():
                await self.compensate.put(f"order:{order}", payload={"order": order}, conn=connection)
                await connection.execute("insert into settled values ($1) on conflict do nothing", order)
        finally:
            await connection.close()

    async def _compensate(self, instance: Instance[Order]) -> None:
        await self._grant(instance.payload["order"])

    async def _grant(self, order: int) -> None:
        token = {"Horai-Unit": f"coupon:{order}"}
        async with (
            aiohttp.ClientSession(raise_for_status=True) as session,
            session.post(self.coupons.url("/grant"), headers=token),
        ):
            return


@pytest.fixture
def virtual(horai_harness: Callable[..., Any]) -> Callable[[Shop], Any]:
    return lambda shop: horai_harness(shop.app, start=START)


async def opened(shop: Shop, time: VirtualTime) -> None:
    shop.database_url = time.database_url
    await on_shop(shop, "create table settled (order_id bigint primary key)")


async def on_shop(shop: Shop, query: str) -> list[tuple[Any, ...]]:
    connection = await asyncpg.connect(shop.database_url)
    try:
        return [tuple(row) for row in await connection.fetch(query)]
    finally:
        await connection.close()


async def test_C59k_a_side_effect_waits_in_the_compensation_queue_until_its_endpoint_is_back(
    virtual: Callable[[Shop], Any],
) -> None:
    async with Receiver() as coupons:
        coupons.on("/grant", *[Answer(503)] * AWAY, Answer(200))
        shop = Shop(coupons)
        async with virtual(shop) as time:
            await opened(shop, time)

            assert await time.run(shop.settle, {"order": 7}) == "LATER", "the order does not wait for the coupon"
            owed = await on_shop(shop, "select key, state from horai.job_instance where key is not null")
            assert owed in ([("order:7", "INIT")], [("order:7", "FAIL")])
            await time.advance("1h")

            tried = [(one.state, one.ran_at - START) for one in time.fired(shop.compensate)]
            assert [state for state, _ in tried] == ["FAIL"] * (AWAY - 1) + ["SUCCESS"]
            assert tried[-1][1] > timedelta(seconds=30), "it asked less and less often"
            queues = (
                "select l.queue from horai.job join horai.lane l on l.id = job.lane_id where job.name = 'compensate'"
            )
            assert await on_shop(shop, queues) == [("compensation",)]
            assert await on_shop(shop, "select * from settled") == [(7,)]
        assert list(coupons.effective) == ["coupon:7"]
        assert coupons.duplicates == []


async def test_C59k_C61_workers_that_die_on_the_way_owe_one_side_effect_and_it_comes_once(
    virtual: Callable[[Shop], Any],
) -> None:
    """Horai knows the second request by its key, the endpoint the second call by its token."""
    async with Receiver() as coupons:
        coupons.on("/grant", *[Answer(503)] * 2, Answer(200))
        shop = Shop(coupons)
        async with virtual(shop) as time:
            await opened(shop, time)
            time.crash(shop.settle, times=1, when="after")
            time.crash(shop.compensate, times=1, when="after")

            await shop.settle.put("order:7", payload={"order": 7})
            await time.advance("1h")

            assert [one.state for one in time.fired(shop.settle)][-1] == "SUCCESS"
            assert [one.state for one in time.fired(shop.compensate)][-1] == "SUCCESS"
            owed = "select count(*) from horai.job_instance i join horai.job on job.id = i.job_id where job.name = 'compensate'"
            assert await on_shop(shop, owed) == [(1,)]
            assert await on_shop(shop, "select * from settled") == [(7,)]
        assert list(coupons.effective) == ["coupon:7"]
        assert len(coupons.duplicates) > 0, "the endpoint was asked again, and knew it"


async def test_C59k_an_order_that_is_rolled_back_owes_nothing(virtual: Callable[[Shop], Any]) -> None:
    async with Receiver() as coupons:
        coupons.on("/grant", Answer(503))
        shop = Shop(coupons)
        async with virtual(shop) as time:
            await opened(shop, time)
            await on_shop(shop, "alter table settled add check (order_id % 2 = 0)")
            await shop.settle.enqueue({"order": 7})
            await time.advance("1h")

            tried = {(one.state, one.error) for one in time.fired(shop.settle)}
            assert tried == {("FAIL", "CheckViolationError"), ("DEAD", "CheckViolationError")}
            assert time.fired(shop.compensate) == []
        assert coupons.effective == {}
