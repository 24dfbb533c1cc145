"""Instances that a worker's own process adds: it claims them as it inserts them, on every path where it may."""

import asyncio
from typing import Any

import asyncpg
from working import working

from horai import Horai, Instance
from horai.db.pool import Platform

AT_BIRTH = "select payload::text from horai.instance_history where claimed_at <= created_at order by id"


def shop(url: str) -> tuple[Horai, Any]:
    app = Horai("shop", database_url=url)

    @app.job
    async def send(instance: Instance[int]) -> int:
        return instance.payload

    return app, send


async def test_the_second_instance_of_a_job_is_claimed_at_birth(url: str, connection: Platform):
    """The first one shows the lane of the job."""
    app, send = shop(url)
    async with working(app):
        for number in range(3):
            assert await (await send.enqueue(number)).result(timeout=30) == number

    assert [row[0] for row in await connection.fetch(AT_BIRTH)] == ["1", "2"]
    rows = await connection.fetch("select state, attempt, fence, retry_count from horai.instance_history")
    assert {tuple(row) for row in rows} == {(2, 1, 1, 0)}


async def test_many_instances_at_once_are_claimed_at_birth_as_far_as_there_is_room(url: str, connection: Platform):
    app, send = shop(url)
    async with working(app, concurrency=20):
        await (await send.enqueue(0)).result(timeout=30)
        handles = await send.enqueue_many(range(1, 1_001))
        results = await asyncio.gather(*(handle.result(timeout=60) for handle in handles))

    assert results == list(range(1, 1_001))
    born = [int(row[0]) for row in await connection.fetch(AT_BIRTH)]
    assert 20 <= len(born) < 1_000
    assert born == list(range(1, len(born) + 1)), "the first ones of the call"
    assert await connection.fetchval("select max(attempt) from horai.instance_history") == 1


async def test_a_function_that_adds_work_of_its_own_worker_saves_the_claim(url: str, connection: Platform):
    app, send = shop(url)

    @app.job
    async def order(instance: Instance[int]) -> list[int]:
        added = [await send.enqueue(instance.payload + each) for each in range(3)]
        return [await handle.result(timeout=30) for handle in added]

    async with working(app):
        await (await send.enqueue(0)).result(timeout=30)
        assert await (await order.enqueue(10)).result(timeout=30) == [10, 11, 12]

    assert {"10", "11", "12"} <= {row[0] for row in await connection.fetch(AT_BIRTH)}


async def test_later_work_and_work_of_a_callers_transaction_is_claimed_when_it_may_run(url: str, connection: Platform):
    app, send = shop(url)
    async with working(app):
        await (await send.enqueue(0)).result(timeout=30)
        delayed = await send.enqueue(1, delay="10ms")
        own = await asyncpg.connect(url)
        async with own.transaction():
            within = await send.enqueue(2, conn=own)
            assert await connection.fetchval("select count(*) from horai.instance_live where payload::text = '2'") == 0
        await own.close()
        elsewhere = await asyncio.to_thread(send.sync.enqueue, 3)
        results = [await delayed.result(timeout=30), await within.result(timeout=30)]
        results.append(await asyncio.to_thread(elsewhere.result, timeout=30))
        await asyncio.to_thread(app.close_sync)

    assert results == [1, 2, 3]
    assert [row[0] for row in await connection.fetch(AT_BIRTH)] == []


async def test_a_client_without_a_worker_claims_nothing(url: str, connection: Platform):
    app, send = shop(url)
    await app.declare()
    for number in range(3):
        await send.enqueue(number)
    await app.close()

    assert await connection.fetchval("select array_agg(distinct state) from horai.instance_live") == [0]


async def test_a_paused_job_waits_although_its_worker_has_room(url: str, connection: Platform):
    app, send = shop(url)
    async with working(app):
        await (await send.enqueue(0)).result(timeout=30)
        await connection.execute("update horai.job set status = 1 where name = 'send'")
        await send.enqueue(1)
        await send.enqueue_many([2, 3])

        rows = await connection.fetch("select state, lane from horai.instance_live")
        assert [tuple(row) for row in rows] == [(0, 0)] * 3
