"""A put with keep_steps moves or replaces a durable instance whose finished steps stay finished, on every path."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import pytest

from horai import Horai, sleep, step, wait_for
from horai.testing import Harness, VirtualTime

START = datetime(2026, 3, 1, 8, tzinfo=UTC)
Putting = Callable[[VirtualTime, Any], Awaitable[object]]


async def by_sdk(time: VirtualTime, job: Any) -> object:
    return await job.put("order:1", payload="again", keep_steps=True)


async def by_options(time: VirtualTime, job: Any) -> object:
    return await job.options(keep_steps=True).put("order:1", "again")


async def in_a_transaction(time: VirtualTime, job: Any) -> object:
    conn = await asyncpg.connect(time.database_url)
    try:
        async with conn.transaction():
            return await job.put("order:1", payload="again", keep_steps=True, conn=conn)
    finally:
        await conn.close()


async def by_sql(time: VirtualTime, job: Any) -> object:
    conn = await asyncpg.connect(time.database_url)
    try:
        return await conn.execute(
            "select horai.put_keeping_steps('checkout', 'order:1', null::timestamptz, '\"again\"'::text)"
        )
    finally:
        await conn.close()


paths = pytest.mark.parametrize("put", [by_sdk, by_options, in_a_transaction, by_sql])


def shop() -> tuple[Horai, Any, list[str]]:
    app, ran = Horai("shop"), list[str]()

    async def load(order: str) -> str:
        ran.append(order)
        return order

    @app.job
    async def checkout(order: str) -> list[str]:
        first = await step("load", load, order)
        await sleep("1h")
        return [first, order]

    return app, checkout, ran


@paths
async def test_a_moved_instance_keeps_its_finished_steps(put: Putting) -> None:
    app, checkout, ran = shop()
    async with Harness(app, START) as time:
        await checkout.put("order:1", payload="first")
        await time.drain()
        await put(time, checkout)
        await time.advance("2h")

        handle = checkout.handle(time.fired(checkout)[0].id)
        assert await handle.result() == ["first", "again"]
        assert ran == ["first"]


async def test_a_put_without_it_starts_over_as_before() -> None:
    app, checkout, ran = shop()
    async with Harness(app, START) as time:
        handle = await checkout.put("order:1", payload="first")
        await time.drain()
        await checkout.put("order:1", payload="second", keep_steps=True)
        await checkout.put("order:1", payload="third")
        await time.advance("2h")

        assert await handle.result() == ["third", "third"]
        assert ran == ["first", "third"]


@paths
async def test_a_replaced_instance_gives_its_records_and_signals_to_its_successor(put: Putting) -> None:
    app, ran = Horai("shop"), list[str]()
    made: list[VirtualTime] = []

    async def load(order: str) -> str:
        ran.append(order)
        return order

    async def replaced() -> None:
        if len(ran) == 1:
            ran.append("put")
            await put(made[0], checkout)

    @app.job
    async def checkout(order: str) -> list[Any]:
        first = await step("load", load, order)
        await step("put", replaced)
        return [first, order, await wait_for("approved", timeout="1d")]

    async with Harness(app, START) as time:
        made.append(time)
        handle = await checkout.put("order:1", payload="first")
        await handle.signal("approved", "yes")
        await time.advance(timedelta(days=2))

        assert await handle.state() == "CANCELLED"
        successor = checkout.handle(time.fired(checkout)[-1].id)
        assert successor.id != handle.id
        assert await successor.result() == ["first", "again", "yes"]
        assert ran == ["first", "put"]
