"""The product service: it owns the table of products, and comes back to each of them every ten days.

STOCK_URL             where the stock system is
HORAI_DATABASE_URL    the database that Horai lives in; `horai worker` names it in the environment of its functions
"""

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import asyncpg

from horai import Horai, Instance, Refresh, Retry, Unrecoverable

TABLE = Path(__file__).with_name("product.sql")

app = Horai("shop")


@app.job(
    cron="0 2 * * *",  # when to look
    timezone="Asia/Shanghai",
    refresh=Refresh(window="10d"),  # what is then due
    queue="stock",  # how fast the stock system may be asked is this queue's to say
    retry=Retry(max=2, base="1m"),
)
async def refresh_stock(product: Instance[None]) -> int:
    """Asks for one product, and writes down what was said."""
    async with (
        aiohttp.ClientSession(os.environ["STOCK_URL"]) as stock,
        stock.get(f"/stock/{product.key}") as answer,
    ):
        if answer.status == 404:
            raise Unrecoverable((await answer.json())["detail"])
        answer.raise_for_status()
        quantity: int = (await answer.json())["quantity"]
    async with shop() as connection:
        await connection.execute(
            "update shop.product set quantity = $2, asked_at = $3 where code = $1",
            *(product.key, quantity, product.execute_time),
        )
    return quantity


@asynccontextmanager
async def shop() -> "AsyncGenerator[asyncpg.Connection[asyncpg.Record]]":
    """A connection to the shop's tables."""
    connection = await asyncpg.connect(os.environ["HORAI_DATABASE_URL"])
    try:
        yield connection
    finally:
        await connection.close()


async def open_shop() -> None:
    """At every start, after the jobs were declared: the table, and that it is followed."""
    async with shop() as connection:
        await connection.execute(TABLE.read_text())
