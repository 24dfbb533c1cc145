"""Three months in the shop, on a virtual clock: every line is something that was done and looked up."""

import os
from collections.abc import Callable
from itertools import pairwise
from zoneinfo import ZoneInfo

import aiohttp

from horai.testing import Harness, VirtualTime

from .products import app, open_shop, refresh_stock, shop

Say = Callable[[str], None]
START = "2023-06-03T09:00:00+08:00"
SHANGHAI = ZoneInfo("Asia/Shanghai")
PRODUCTS = [f"sku-{number:02}" for number in range(1, 21)]


async def tell(say: Say) -> None:
    """From the opening of the shop to September."""
    async with Harness(app, START) as time:
        os.environ["HORAI_DATABASE_URL"] = time.database_url

        def tell_now(line: str) -> None:
            say(f"{time.now.astimezone(SHANGHAI):%d %b %H:%M}  {line}")

        await opening(tell_now)
        await the_first_tick(tell_now, time)
        await a_count_is_seen_a_window_later(tell_now, time)
        await products_come_and_go(tell_now, time)
        await three_months(tell_now, time)


async def opening(say: Say) -> None:
    """The shop has products, and the stock system has counted them; neither knows the other."""
    await count(dict.fromkeys(PRODUCTS, 100))
    async with shop() as connection:
        await open_shop()
        await connection.executemany(
            "insert into shop.product (code, name) values ($1, $2)", [(code, f"Product {code}") for code in PRODUCTS]
        )
        known = await connection.fetchval("select count(*) from horai.refresh_entity")
        say(f"{len(PRODUCTS)} products are written into the shop's table; Horai has {known} entities.")


async def the_first_tick(say: Say, time: VirtualTime) -> None:
    """Run the first tick: every product that never ran is due, one call each, one second apart."""
    asked = await time.advance_to("2023-06-04T03:00:00+08:00")
    first, last = (each.ran_at.astimezone(SHANGHAI) for each in (asked[0], asked[-1]))
    say(f"{len(asked)} calls, one for each product, from {first:%H:%M:%S} to {last:%H:%M:%S}.")


async def a_count_is_seen_a_window_later(say: Say, time: VirtualTime) -> None:
    """When it is counted is up to the stock system's people; the shop finds out in its own time."""
    await time.advance_to("2023-06-07T15:00:00+08:00")
    await count(dict.fromkeys(PRODUCTS, 93))
    say(f"The stock is counted: 93 of each. The shop still shows {await shown('sku-07')}.")
    await time.advance_to("2023-06-14T03:00:00+08:00")
    say(f"The tick before ten days have passed: the shop shows {await shown('sku-07')}.")
    await time.advance("1d")
    say(f"The tick after: the shop shows {await shown('sku-07')}.")


async def products_come_and_go(say: Say, time: VirtualTime) -> None:
    """With the transactions that write them. One that the stock system does not know fails, and waits like the others."""
    async with shop() as connection:
        async with connection.transaction():
            await connection.execute("delete from shop.product where code = 'sku-20'")
            await connection.execute("insert into shop.product (code, name) values ('sku-21', 'A new one')")
        mistake = connection.transaction()
        await mistake.start()
        await connection.execute("insert into shop.product (code, name) values ('sku-22', 'A mistake')")
        await mistake.rollback()
    asked = await time.advance("1d")
    names = ", ".join(str(each.key) for each in asked)
    say(f"sku-20 is gone, sku-21 is new, sku-22 was rolled back. Asked for: {names}.")
    say(f"sku-21 has failed: {await remark('sku-21')}")
    await count({"sku-21": 5})


async def three_months(say: Say, time: VirtualTime) -> None:
    """Run until September: no product ever gets older than window + tick."""
    await time.advance_to("2023-09-01T09:00:00+08:00")
    calls = time.fired(refresh_stock)
    runs = {code: [each.ran_at for each in calls if each.key == code] for code in {each.key for each in calls}}
    gaps = [later - earlier for times in runs.values() for earlier, later in pairwise(times)]
    say(f"{len(calls)} calls. From one to the next of a product: {min(gaps)} to {max(gaps)}.")
    times, quantity = len(runs["sku-20"]), await shown("sku-21")
    say(f"sku-20 was asked for {times} times. sku-21 waited ten days like any other, and shows {quantity}.")


async def count(quantities: dict[str, int]) -> None:
    """Store the quantities in the stock system, as after a count in the warehouse."""
    async with aiohttp.ClientSession(os.environ["STOCK_URL"]) as stock:
        for code, quantity in quantities.items():
            await stock.put(f"/stock/{code}", json={"quantity": quantity})


async def shown(code: str) -> int | None:
    """Return the quantity that the shop's customers see."""
    async with shop() as connection:
        return await connection.fetchval("select quantity from shop.product where code = $1", code)


async def remark(code: str) -> str:
    """Return the remark of a product's last run, without the position in the code."""
    async with shop() as connection:
        written = await connection.fetchval("select remark from horai.refresh_entity where entity_key = $1", code)
    return written.splitlines()[0].rpartition(": ")[2]
