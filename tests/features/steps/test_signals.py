"""Signals: stored first, taken once and in order, and they wake the function that waits."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import pytest
from sizes import IS_LONG

from horai import Horai, NotFound, Retry, gather, sleep, step, wait_for
from horai.core.errors import AlreadyFinal
from horai.features.steps.service import list_steps
from horai.testing import Harness

START = datetime(2026, 3, 1, 8, tzinfo=UTC)
MANY = 10_000 if IS_LONG else 100


def approvals() -> tuple[Horai, Any]:
    app = Horai("shop")

    @app.job
    async def approve() -> Any:
        return await wait_for("approved", timeout="7d")

    return app, approve


async def test_a_signal_wakes_the_waiting_function_at_once() -> None:
    app, approve = approvals()
    async with Harness(app, START) as time:
        handle = await approve.enqueue()
        await time.advance("1h")
        assert [one.state for one in time.fired(approve)] == ["INIT"]

        assert await handle.signal("approved", {"by": "ann"})
        await time.drain()

        assert await handle.result() == {"by": "ann"}
        assert [one.ran_at for one in time.fired(approve)] == [START, START + timedelta(hours=1)]


async def test_a_signal_that_is_sent_before_its_wait_is_not_lost() -> None:
    app, approve = approvals()
    async with Harness(app, START) as time:
        handle = await approve.enqueue()
        await app.signal(handle.id, "approved", "early")
        await time.drain()

        assert await handle.result() == "early"
        assert len(time.fired(approve)) == 1


async def test_a_wait_returns_none_at_its_deadline() -> None:
    app, approve = approvals()
    async with Harness(app, START) as time:
        handle = await approve.enqueue()
        await time.advance("7d")

        assert await handle.result() is None
        assert [one.ran_at for one in time.fired(approve)] == [START, START + timedelta(days=7)]
        with pytest.raises(AlreadyFinal, match="no more signals"):
            await handle.signal("approved")


async def test_a_signal_at_the_deadline_is_taken_if_it_is_stored_before_the_function_looks() -> None:
    app, approve = approvals()
    async with Harness(app, START) as time:
        handle = await approve.enqueue()
        await time.drain()
        await time.workplace.move_to(START + timedelta(days=7))  # the deadline: due, and not claimed yet
        await handle.signal("approved", "just in time")
        await time.drain()

        assert await handle.result() == "just in time"


async def test_a_signal_after_the_deadline_finds_no_waiting_function() -> None:
    app, approve = approvals()
    async with Harness(app, START) as time:
        handle = await approve.enqueue()
        await time.advance("7d")

        assert await handle.result() is None
        with pytest.raises(AlreadyFinal):
            await handle.signal("approved", "too late")


async def test_signals_are_taken_in_order_and_once() -> None:
    app = Horai("shop")

    @app.job
    async def collect() -> list[Any]:
        first = await wait_for("item")
        second, third = await gather(wait_for("item"), wait_for("other", timeout="1d"))
        return [first, second, third, await wait_for("item", timeout="1d")]

    async with Harness(app, START) as time:
        handle = await collect.enqueue()
        for number in (1, 2):
            await handle.signal("item", number)
        await time.advance("3d")

        assert await handle.result() == [1, 2, None, None]


async def test_a_second_signal_with_the_same_idempotency_key_is_not_stored() -> None:
    app = Horai("shop")

    @app.job
    async def collect() -> list[Any]:
        return [await wait_for("item", timeout="1d"), await wait_for("item", timeout="1d")]

    async with Harness(app, START) as time:
        handle = await collect.enqueue()
        assert await handle.signal("item", 1, idempotency_key="a")
        assert not await handle.signal("item", 1, idempotency_key="a")
        await time.advance("3d")

        assert await handle.result() == [1, None]


async def test_a_signal_does_not_shorten_a_sleep() -> None:
    app = Horai("shop")

    @app.job
    async def rest() -> Any:
        await sleep("1h")
        return await wait_for("go")

    async with Harness(app, START) as time:
        handle = await rest.enqueue()
        await time.drain()
        await handle.signal("go", "now")
        await time.advance("59m")
        assert len(time.fired(rest)) == 1
        await time.advance("1m")

        assert await handle.result() == "now"


async def test_a_signal_by_key_commits_with_the_transaction_of_its_sender() -> None:
    app = Horai("shop")

    @app.job
    async def approve() -> Any:
        return await wait_for("approved")

    async with Harness(app, START) as time:
        handle = await approve.put("order:1")
        await time.drain()
        conn = await asyncpg.connect(time.database_url)
        undone = conn.transaction()
        await undone.start()
        await approve.signal("order:1", "approved", "undone", conn=conn)
        await undone.rollback()
        async with conn.transaction():
            await conn.execute("select horai.signal('approve', 'order:1', 'approved', '\"by sql\"'::json, 'k')")
            await approve.signal("order:1", "approved", "again", idempotency_key="k", conn=conn)
        await conn.close()
        await time.drain()

        assert await handle.result() == "by sql"
        with pytest.raises(NotFound):
            await approve.signal("order:2", "approved")


async def test_many_waiting_instances_are_signalled_at_once() -> None:
    app, approve = approvals()
    async with Harness(app, START) as time:
        handles = await approve.enqueue_many([None] * MANY)
        await time.drain()
        for first in range(0, MANY, 10):
            batch = enumerate(handles[first : first + 10], first)
            await asyncio.gather(*(handle.signal("approved", number) for number, handle in batch))
        await time.drain()

        assert [await handle.result() for handle in handles] == list(range(MANY))


async def test_the_list_of_steps_names_the_open_waits_and_counts_the_open_compensations_of_a_live_instance() -> None:
    app = Horai("shop")

    async def book(what: str) -> str:
        return what

    @app.job
    async def travel() -> None:
        await step("seat", book, "12", compensate=book)
        await step("room", book, "7", compensate=book)
        await step("plain", book, "x")
        await gather(wait_for("paid", timeout="7d"), wait_for("approved", timeout="7d"))

    async with Harness(app, START) as time:
        handle = await travel.enqueue()
        await time.drain()
        scope = (await app.client()).scope
        number = int(handle.id)

        first, last = await list_steps(scope, number, 0, 1), await list_steps(scope, number, 5, 100)
        for page in (first, last):  # they do not depend on the page
            assert (list(page.waits), page.open_compensations) == (["approved", "paid"], 2)

        await handle.signal("paid")
        await time.drain()
        page = await list_steps(scope, number, 0, 10)
        assert (list(page.waits), page.open_compensations) == (["approved"], 2)

        await handle.cancel()
        page = await list_steps(scope, number, 0, 10)
        assert (list(page.waits), page.open_compensations) == ([], 0)


async def test_a_step_that_has_not_finished_counts_as_open_compensation_only_while_it_may_run() -> None:
    app, seen = Horai("shop"), list[int]()

    async def counted() -> int:
        return (await list_steps((await app.client()).scope, int(handles[0]), 0, 10)).open_compensations

    async def book(what: str) -> str:
        seen.append(await counted())
        raise ConnectionError(what)

    @app.job(retry=Retry(max=1, base="1h"))
    async def travel() -> None:
        await step("seat", book, "12", compensate=book)

    handles = list[str]()
    async with Harness(app, START) as time:
        handles.append((await travel.enqueue()).id)
        await time.advance("1m")
        assert (seen, await counted()) == ([1], 0)
