"""The shop example: its story, and a checkout whose every process is killed while it waits for its card."""

import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from harness import HoraiProcess

from horai.embedded import url_of

ROOT = Path(__file__).parents[2]
APP = "examples.shop.jobs:app"


@pytest.fixture
def horai(short_place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HoraiProcess]:
    process = HoraiProcess(short_place / tmp_path.name[-24:], "--app", APP, PYTHONPATH=f"{ROOT}:{ROOT / 'src'}").start()
    monkeypatch.setenv("HORAI_DATABASE_URL", url_of(process.data_dir))
    monkeypatch.syspath_prepend(ROOT)
    yield process
    process.stop()


def story() -> Any:
    return importlib.import_module("examples.shop.story")


async def test_an_evening_in_the_shop_ends_with_the_right_stock_and_the_right_money(horai: HoraiProcess) -> None:
    told: list[str] = []

    await story().tell(told.append)

    assert [line.partition(": ")[2] for line in told] == [
        "5 teapots in stock, 0 cents, transfers: 0.",
        "3 teapots in stock, 0 cents, transfers: 0.",
        "3 teapots in stock, 5000 cents, transfers: 1.",
        "3 teapots in stock, 5000 cents, transfers: 1.",
        "3 teapots in stock, 5000 cents, transfers: 3.",
        "3 teapots in stock, 5000 cents, transfers: 3.",
        "3 teapots in stock, 5000 cents, transfers: 3.",
    ]


async def test_a_checkout_survives_kill_9_of_everything_while_it_waits_for_its_card(horai: HoraiProcess) -> None:
    shop, tables = story(), importlib.import_module("examples.shop.tables")
    await tables.make_tables()
    async with tables.sessions.begin() as session:
        session.add(tables.Product(name="teapot", cents=2_500, stock=5))
    async with shop.serving() as customer:
        here = shop.Shop(customer)
        order = await here.order(2)
        await here.until(order, "RESERVED")

    horai.kill()
    await tables.engine.dispose()
    horai.start()

    async with shop.serving() as customer:
        here = shop.Shop(customer)
        await here.pay(order, "visa")
        await here.until(order, "SHIPPED")
        assert await here.books() == "3 teapots in stock, 5000 cents, transfers: 1"
