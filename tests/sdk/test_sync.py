"""The same verbs without `await`."""

import asyncio
from datetime import UTC, datetime, timedelta

import asyncpg
import psycopg
import pytest
from working import working

from horai import Horai
from horai.core.errors import Invalid


async def test_a_thread_adds_and_waits_without_an_event_loop(url: str):
    app = Horai("shop", database_url=url)

    @app.job
    async def double(number: int) -> int:
        return number * 2

    def story() -> None:
        handle = double.sync.enqueue(21)
        assert handle.result(timeout=30) == 42
        assert [h.result("10s") for h in double.sync.enqueue_many([1, 2])] == [2, 4]
        at = datetime.now(UTC) + timedelta(hours=1)
        assert double.sync.put("k", at=at, payload=1).decision == "INSERTED"
        assert double.sync.put("k", at=at, payload=2).decision == "UPDATED"
        assert double.sync.cancel("k")
        assert not double.sync.enqueue(1, idempotency_key="once").duplicate
        assert double.sync.enqueue(1, idempotency_key="once").duplicate
        assert double.sync.trigger(4).result(timeout=30) == 8

    async with working(app):
        await asyncio.to_thread(story)
        app.close_sync()


def test_the_facade_raises_what_the_verbs_raise(url: str):
    app = Horai("shop", database_url=url)

    @app.job
    async def double(number: int) -> int:
        return number * 2

    with pytest.raises(Exception, match="Expected `int`"):
        double.sync.enqueue("x")  # pyright: ignore[reportArgumentType]
    app.close_sync()


def test_E2_a_blocking_connection_is_used_where_the_caller_is(url: str):
    app = Horai("shop", database_url=url)

    @app.job
    async def double(number: int) -> int:
        return number * 2

    with psycopg.connect(url) as conn:
        made = double.sync.enqueue(1, conn=conn)  # the first one declares the job
        assert double.sync.put("k", delay="1h", payload=2, conn=conn).decision == "INSERTED"
        assert len(double.sync.enqueue_many([1, 2], conn=conn)) == 2
        assert double.sync.cancel("k", conn=conn)
        conn.rollback()
        with conn.cursor() as cursor:
            cursor.execute("select count(*) from horai.instance_live")
            assert cursor.fetchone() == (0,)
        assert int(made.id) > 0
    app.close_sync()


def test_an_asynchronous_connection_is_refused_without_await(url: str):
    app = Horai("shop", database_url=url)

    @app.job
    async def double(number: int) -> int:
        return number * 2

    double.sync.enqueue(1)

    async def story() -> None:
        conn = await asyncpg.connect(url)
        async with conn.transaction():
            with pytest.raises(Invalid, match="asynchronous"):
                double.sync.enqueue(1, conn=conn)
        conn.terminate()

    asyncio.run(story())
    app.close_sync()
