"""Refresh jobs in a virtual time: through every stage, on the product's SQL."""

import asyncio
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any, Literal

import asyncpg
import pytest

from horai import Horai, Instance, Refresh, Retry
from horai.core.errors import Invalid
from horai.core.queue import QueueSettings, Rate
from horai.operations.queues import set_queue
from horai.testing import Harness

START = datetime(2023, 6, 1, 12, tzinfo=UTC)
DAY = timedelta(days=1)


async def test_D6_D16_every_entity_is_refreshed_again_within_a_window_and_a_tick() -> None:
    app = Horai("shop")
    seen: dict[str, list[datetime]] = {}

    @app.job(cron="0 2 * * *", refresh=Refresh(window="10d", limit=4), retry=Retry(max=0))
    async def refresh_stock(instance: Instance[Any]) -> None:
        assert instance.key is not None
        seen.setdefault(instance.key, []).append(instance.execute_time)
        if instance.key == "sku-3":
            raise ValueError("the stock system does not know it")

    async with Harness(app, START) as time:
        await refresh_stock.entities.add_many([f"sku-{n}" for n in range(10)])
        await time.advance("45d")

    assert len(seen) == 10
    for times in seen.values():
        assert times[0] - START <= DAY
        assert 4 <= len(times) <= 5
        gaps = [after - before for before, after in pairwise(times)]
        assert all(10 * DAY <= gap <= 11 * DAY for gap in gaps), gaps


async def test_D2_D11_entities_come_and_go_with_the_callers_transaction_or_at_once() -> None:
    app = Horai("shop")
    seen: list[str | None] = []

    @app.job(every="1d", refresh=Refresh(window="10d", run_on_add=True))
    async def refresh_stock(instance: Instance[int]) -> None:
        seen.append(f"{instance.key}={instance.payload}")

    @app.job
    async def plain() -> None: ...

    async with Harness(app, START) as time:
        assert await refresh_stock.entities.add("a", 1)
        assert not await refresh_stock.entities.add("a", 2)
        await time.advance("1m")
        assert await refresh_stock.entities.add_many({"b": 3, "a": 4}) == 1
        assert await refresh_stock.entities.remove("b")
        assert not await refresh_stock.entities.remove("b")
        await time.advance("12d")

    assert seen == ["a=1", "a=4"]
    with pytest.raises(Invalid, match="has no entities"):
        _ = plain.entities


def test_the_verbs_are_there_without_await() -> None:
    app = Horai("shop")
    seen: list[str | None] = []

    @app.job(every="1d", refresh=Refresh(window="10d"))
    def refresh_stock(instance: Instance[Any]) -> None:
        seen.append(instance.key)

    with Harness(app, START) as time:
        assert refresh_stock.sync.entities.add("a")
        assert refresh_stock.sync.entities.add_many(["a", "b", "c"]) == 2
        assert refresh_stock.sync.entities.remove("c")
        ticked = refresh_stock.sync.trigger()
        time.advance("5m")
        assert ticked.result() == {"due": 2, "loaded": 2, "running": 0, "succeeded": 2, "failed": 0}

    assert sorted(key for key in seen if key) == ["a", "b"]


async def test_D12_each_entity_is_a_call_of_its_own_and_the_rate_of_its_queue_holds() -> None:
    app = Horai("shop")

    @app.job(every="1d", queue="stock", refresh=Refresh(window="10d"))
    async def refresh_stock(instance: Instance[Any]) -> None:
        assert instance.key

    async with Harness(app, START) as time:
        scope = (await app.client()).scope
        await set_queue(scope, "stock", QueueSettings(rate=Rate(12, timedelta(minutes=1))))
        await refresh_stock.entities.add_many([f"sku-{n}" for n in range(6)])
        await time.advance("1d")
        fired = time.fired(refresh_stock)

    assert sorted(each.key or "" for each in fired) == [f"sku-{n}" for n in range(6)]
    begun = [each.ran_at for each in fired]
    assert all(after - before >= timedelta(seconds=4.9) for before, after in pairwise(begun)), begun


async def test_D5_a_tick_that_comes_late_finds_what_was_due_at_its_time() -> None:
    app = Horai("shop")
    seen: list[str | None] = []

    @app.job(cron="0 2 * * *", refresh=Refresh(window="10d", run_on_add=True))
    async def refresh_stock(instance: Instance[Any]) -> None:
        seen.append(instance.key)

    async with Harness(app, datetime(2023, 6, 1, 1, tzinfo=UTC)) as time:
        await refresh_stock.entities.add("due")
        await time.advance("3h")
        await refresh_stock.entities.add("due two hours after the tick")
        await time.advance_to("2023-06-11T01:30:00Z")
        seen.clear()
        await time.outage("12h")  # over the tick of two o'clock
        late = [*seen]
        await time.advance("1d")

    assert late == ["due"]
    assert seen == ["due", "due two hours after the tick"]


@pytest.mark.parametrize("threads", [1, 4, None])
async def test_D13_one_at_a_time_a_few_or_all_that_a_worker_has_room_for(threads: int | None) -> None:
    """Entities that a tick has left behind are due at once; the queue limits how many run at once."""
    app = Horai("shop")
    running, most = set[str | None](), 0

    @app.job(every="1d", queue="stock", refresh=Refresh(window="10d"))
    async def refresh_stock(instance: Instance[Any]) -> None:
        nonlocal most
        running.add(instance.key)
        most = max(most, len(running))
        for _ in range(100):
            await asyncio.sleep(0)
        running.discard(instance.key)

    async with Harness(app, START) as time:
        await set_queue((await app.client()).scope, "stock", QueueSettings(max_concurrency=threads))
        await refresh_stock.entities.add_many([f"sku-{n}" for n in range(12)])
        await time.outage("30h")
        await time.advance("1m")
        fired = time.fired(refresh_stock)

    assert sorted(each.key or "" for each in fired) == sorted(f"sku-{n}" for n in range(12))
    assert most <= (threads or 12)
    assert (most == 1) == (threads == 1)


@pytest.mark.parametrize("when", ["before", "after"])
async def test_X8_an_entity_whose_worker_dies_is_run_again_and_not_left_running(
    when: Literal["before", "after"],
) -> None:
    app = Horai("shop")

    @app.job(cron="0 2 * * *", refresh=Refresh(window="10d"))
    async def refresh_stock() -> None: ...

    async with Harness(app, START) as time:
        await refresh_stock.entities.add_many(["a", "b"])
        time.crash(refresh_stock, when=when)
        await time.advance("1d")
        connection = await asyncpg.connect(time.database_url)
        ended = await connection.fetch("select entity_key, task_status from horai.refresh_entity order by entity_key")
        await connection.close()
        await time.advance("11d")
        fired = time.fired(refresh_stock)

    assert [tuple(row) for row in ended] == [("a", 2), ("b", 2)]
    assert sorted((each.key, each.state) for each in fired if each.error) in ([("a", "FAIL")], [("b", "FAIL")])
    assert sorted(each.key or "" for each in fired if each.state == "SUCCESS") == ["a", "a", "b", "b"]
