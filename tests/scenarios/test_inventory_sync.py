"""Seed 003 by the inventory example: the stock system as a process, the shop on a virtual clock."""

import importlib
import sys
from collections.abc import Generator
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from examples import stage

from horai.core.queue import QueueSettings, Rate
from horai.operations.queues import set_queue
from horai.testing import Harness

products: Any = importlib.import_module("examples.inventory_sync.products")
story: Any = importlib.import_module("examples.inventory_sync.story")
DAY = timedelta(days=1)
INSERT = "insert into shop.product (code, name) select 'sku-' || n, 'Product ' || n from generate_series(1, $1) n"


@pytest.fixture
def stock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[None]:
    """The stock system runs; it has counted every product but the seventh."""
    command = [sys.executable, "-m", "examples.inventory_sync.stock"]
    with stage.running(command, "Stock is served: ", {}, tmp_path / "stock.log") as address:
        monkeypatch.setenv("STOCK_URL", address)
        yield


async def test_D2_D6_D12_D16_the_shop_comes_back_to_each_product_of_its_table(
    stock: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    await story.count({f"sku-{number}": number for number in range(1, 13) if number != 7})
    async with Harness(products.app, "2023-06-03T09:00:00+08:00") as time:
        monkeypatch.setenv("HORAI_DATABASE_URL", time.database_url)
        rate = QueueSettings(rate=Rate(12, timedelta(minutes=1)))
        await set_queue((await products.app.client()).scope, "stock", rate)
        await products.open_shop()
        async with products.shop() as connection:
            await connection.execute(INSERT, 12)
            await time.advance("23h")
            await connection.execute("delete from shop.product where code = 'sku-12'")
            first = time.fired(products.refresh_stock)
            await time.advance("34d")
            shown = await _shown(connection)
        calls = time.fired(products.refresh_stock)

    assert all(after.ran_at - before.ran_at >= timedelta(seconds=4.9) for before, after in pairwise(first))
    assert shown == {f"sku-{number}": None if number == 7 else number for number in range(1, 12)}
    runs = {key: [call.ran_at for call in calls if call.key == key] for key in {call.key for call in calls}}
    assert {key: len(times) for key, times in runs.items()} == {
        f"sku-{number}": 1 if number == 12 else 4 for number in range(1, 13)
    }
    gaps = [later - earlier for times in runs.values() for earlier, later in pairwise(times)]
    assert all(10 * DAY <= gap <= 11 * DAY for gap in gaps), gaps
    assert {call.state for call in calls if call.key == "sku-7"} == {"DEAD"}


async def _shown(connection: "asyncpg.Connection[asyncpg.Record]") -> dict[str, int | None]:
    found = await connection.fetch("select code, quantity from shop.product")
    return {row["code"]: row["quantity"] for row in found}
