"""A shop whose work the pictures of the documentation show. `tools/pictures.py` runs it."""

import asyncio
from datetime import UTC, datetime, timedelta

from horai import Horai, Instance, Map, Node, Retry, Unrecoverable, sleep, step, wait_for

app = Horai("shop")
FAST = Retry(max=2, base="200ms", jitter="none")
DAY = timedelta(days=1)
BROKEN_DAYS = {3, 11}
"""Days of the month whose stock has a wrong line: their runs stop at `match_stock`."""


@app.job(cron="*/5 * * * * ?", title="Send coupons", owner="growth", tags=["marketing"])
async def send_coupons() -> int:
    await asyncio.sleep(0.05)
    return 240


@app.job(title="Publish an article", owner="editors", tags=["content"])
async def publish_article(article: int) -> str:
    await asyncio.sleep(0.02)
    return f"article {article} is public"


@app.job(title="Clear a payment", owner="finance", retry=FAST, tags=["money"])
async def clear_payment(order: int) -> str:
    await asyncio.sleep(0.03)
    if order % 9 == 0:
        raise TimeoutError("the bank did not answer within 5 s")
    return f"order {order} cleared"


@app.job(queue="exports", title="Export invoices", owner="finance", timeout="10m")
async def export_invoices(instance: Instance[int]) -> None:
    for page in range(200):
        instance.progress((page + 1) / 200, f"page {page + 1} of 200")
        await asyncio.sleep(1)


@app.job(title="Extract the orders", owner="data team")
async def extract_orders(instance: Instance) -> int:
    instance.log("2,143 orders read")
    await asyncio.sleep(0.4)
    return 2143


@app.job(title="Extract the stock", owner="data team")
async def extract_stock(instance: Instance) -> int:
    await asyncio.sleep(0.25)
    return instance.fire_time.day


@app.job(title="List the shops", owner="data team")
async def list_shops() -> list[str]:
    return ["berlin", "lyon", "milan", "porto", "vienna"]


@app.job(title="Match orders and stock", owner="data team", retry=FAST)
async def match_stock(instance: Instance) -> int:
    instance.log("matching 2,143 orders")
    await asyncio.sleep(0.3)
    if instance.payload["parents"]["extract_stock"] in BROKEN_DAYS:
        instance.log("line 118 is not a number", "WARNING")
        raise Unrecoverable("line 118 of stock.csv is not a number")
    return 2143


@app.job(title="Load the file of a shop", owner="data team")
async def load_shop(shop: str) -> str:
    await asyncio.sleep(0.1)
    return shop


@app.job(title="Write the report", owner="data team")
async def write_report() -> str:
    await asyncio.sleep(0.2)
    return "report.pdf"


@app.job(title="Mail the report", owner="data team")
async def mail_report() -> None:
    await asyncio.sleep(0.1)


nightly = app.workflow(
    "nightly_report",
    [
        Node(extract_orders),
        Node(extract_stock),
        Node(list_shops),
        Node(match_stock, after=[extract_orders, extract_stock]),
        Node(load_shop, after=[list_shops], map=Map(over=list_shops, max_concurrency=3)),
        Node(write_report, after=[match_stock, load_shop]),
        Node(mail_report, after=[write_report]),
    ],
    cron="0 2 * * *",
    title="Nightly report",
    owner="data team",
)


async def reserve(order: str) -> int:
    await asyncio.sleep(0.2)
    return 1250


async def charge(cents: int) -> str:
    await asyncio.sleep(0.4)
    return f"payment of {cents}"


async def ship(order: str) -> str:
    await asyncio.sleep(0.3)
    return f"{order} shipped"


@app.job(title="Check out an order", owner="shop", tags=["money"])
async def checkout(order: str) -> str | None:
    cents = await step("reserve", reserve, order)
    await step("charge", charge, cents)
    await sleep("2s")
    if await wait_for("packed", timeout="1d") is None:
        return None
    return await step("ship", ship, order)


async def fill() -> None:
    """Give the shop its work, and wait for the past nights, the payments and two of the orders.

    Articles of the coming day wait for their time, more exports than their queue takes for a place, and two orders to be packed.
    """
    midnight = datetime.now(UTC).replace(hour=2, minute=0, second=0, microsecond=0)
    runs = [await nightly.run(logical_date=midnight - night * DAY) for night in range(18, 0, -1)]
    payments = [await clear_payment.enqueue(order) for order in range(120)]
    for article in range(60):
        at = datetime.now(UTC) + timedelta(minutes=20 * article + 3)
        await publish_article.put(f"article:{article}", at=at, payload=article)
    for month in range(6):
        await export_invoices.enqueue(month)
    orders = [await checkout.enqueue(f"A-{number}") for number in range(4)]
    for order in orders[:2]:
        await order.signal("packed", {"by": "ann"})
        await order.result(timeout="60s")
    for run in runs:
        await run.wait(timeout="60s")
    await asyncio.gather(*(payment.result(timeout="60s") for payment in payments), return_exceptions=True)
