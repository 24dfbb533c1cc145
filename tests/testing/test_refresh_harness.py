"""Refresh jobs in a virtual time: through every stage, on the product's SQL."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest

from horai import Horai, Instance, Refresh, Retry
from horai.accept.queues import set_queue
from horai.core.errors import Invalid
from horai.core.queues import QueueSettings, Rate
from horai.testing import Harness

START = datetime(2023, 6, 1, 12, tzinfo=UTC)
DAY = timedelta(days=1)


async def test_D16_every_entity_is_refreshed_again_within_a_window_and_a_tick() -> None:
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
