"""The durable checkout. `horai worker examples.shop.jobs:app` runs it."""

from horai import Horai, Retry, Unrecoverable, step, step_key, wait_for

from . import bank
from .tables import Order, Product, Status, sessions

app = Horai("shop")

PAY_WITHIN = "15m"


@app.job(
    queue="checkout",
    retry=Retry(max=5, base="100ms"),
    timeout="1m",
    title="Checkout of an order",
    description="Reserves the stock, waits up to 15 minutes for the card, charges it and ships. Undoes everything if it cannot end.",
    owner="shop team",
)
async def checkout(order_id: int) -> str:
    """Survives every crash: a finished step never runs again, and the wait for the card occupies no worker."""
    reserved = await step("reserve", reserve, order_id, compensate=release)
    if reserved == 0:
        raise Unrecoverable(f"order {order_id}: sold out")
    card = await wait_for("card", timeout=PAY_WITHIN)
    if card is None:
        raise Unrecoverable(f"order {order_id}: no card within {PAY_WITHIN}")
    await step("charge", charge, order_id, retry=3, compensate=refund)
    return await step("ship", ship, order_id, card, retry=3)


async def reserve(order_id: int) -> int:
    """Take the quantity off the stock; return the id of the order, 0 if there is not enough."""
    async with sessions.begin() as session:
        order = await session.get_one(Order, order_id, with_for_update=True)
        if order.status == Status.RESERVED:  # an earlier try has committed and was lost before its record
            return order_id
        product = await session.get_one(Product, order.product, with_for_update=True)
        if product.stock < order.quantity:
            order.status = Status.CANCELLED
            return 0
        product.stock -= order.quantity
        order.status = Status.RESERVED
        return order_id


async def release(order_id: int) -> None:
    """Give the reserved quantity back, if there is one."""
    async with sessions.begin() as session:
        order = await session.get(Order, order_id, with_for_update=True)
        if order is not None and order.status == Status.RESERVED:
            product = await session.get_one(Product, order.product, with_for_update=True)
            product.stock += order.quantity
            order.status = Status.CANCELLED


async def charge(order_id: int) -> int:
    """Take the price from the customer; return the id of the order. The key of the step makes a second try harmless."""
    async with sessions() as session:
        order = await session.get_one(Order, order_id)
        product = await session.get_one(Product, order.product)
    await bank.transfer(step_key(), order_id, order.quantity * product.cents)
    return order_id


async def refund(order_id: int) -> None:
    """Send the price back."""
    async with sessions() as session:
        order = await session.get_one(Order, order_id)
        product = await session.get_one(Product, order.product)
    await bank.transfer(step_key(), order_id, -order.quantity * product.cents)


async def ship(order_id: int, card: str) -> str:
    """Hand the parcel over. The carrier does not serve every customer."""
    if card == "nowhere":
        raise Unrecoverable(f"order {order_id}: the carrier does not deliver there")
    async with sessions.begin() as session:
        order = await session.get_one(Order, order_id, with_for_update=True)
        order.status = Status.SHIPPED
    return f"parcel {order_id}"
