"""An evening in the shop, told by the running system: every line is something that was done and looked up."""

import asyncio
import socket
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import uvicorn
from sqlalchemy import func, select

from .service import service
from .tables import Product, Transfer, make_tables, sessions

Say = Callable[[str], None]
PATIENCE = 90.0


@asynccontextmanager
async def serving() -> AsyncGenerator[aiohttp.ClientSession]:
    """The service on a free port, and a customer of it."""
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(service, log_level="warning"))
    running = asyncio.create_task(server.serve(sockets=[listening]))
    try:
        async with aiohttp.ClientSession(f"http://127.0.0.1:{listening.getsockname()[1]}") as customer:
            yield customer
    finally:
        server.should_exit = True
        await running


class Shop:
    """A customer of the shop, who also looks into its books."""

    def __init__(self, http: aiohttp.ClientSession) -> None:
        self._http = http

    async def asked(self, method: str, path: str, body: Any = None) -> Any:
        """The answer of the service. Raises if it refuses."""
        async with self._http.request(method, path, json=body) as response:
            response.raise_for_status()
            return await response.json()

    async def order(self, quantity: int) -> int:
        """Place an order of teapots; its id."""
        return (await self.asked("POST", "/orders", {"product": "teapot", "quantity": quantity}))["id"]

    async def pay(self, order: int, card: str) -> None:
        """Send a card twice, as a browser may that got no answer. The second one may find that the order has ended."""
        request: dict[str, Any] = {"json": {"card": card}, "headers": {"Idempotency-Key": f"card-{order}"}}
        answers: list[int] = []
        for _ in range(2):
            async with self._http.post(f"/orders/{order}/card", **request) as response:
                answers.append(response.status)
        if answers not in ([202, 202], [202, 409]):
            raise RuntimeError(f"The card of order {order} was answered with {answers}.")

    async def until(self, order: int, status: str) -> None:
        """Returns when the order has the status."""
        async with asyncio.timeout(PATIENCE):
            while True:
                if (await self.asked("GET", f"/orders/{order}"))["status"] == status:
                    return
                await asyncio.sleep(0.02)

    async def books(self) -> str:
        """The stock and the balance."""
        async with sessions() as session:
            stock = await session.scalar(select(Product.stock).filter_by(name="teapot"))
            cents = await session.scalar(select(func.coalesce(func.sum(Transfer.cents), 0)))
            count = await session.scalar(select(func.count()).select_from(Transfer))
        return f"{stock} teapots in stock, {cents} cents, transfers: {count}"


async def tell(say: Say) -> None:
    """The whole evening."""
    await make_tables()
    async with sessions.begin() as session:
        session.add(Product(name="teapot", cents=2_500, stock=5))
    async with serving() as customer:
        shop = Shop(customer)
        say(f"The shop opens: {await shop.books()}.")
        await an_order_is_paid(say, shop)
        await an_order_is_withdrawn(say, shop)
        await a_parcel_that_cannot_be_delivered(say, shop)
        await too_many(say, shop)
        say(f"The shop closes: {await shop.books()}.")


async def an_order_is_paid(say: Say, shop: Shop) -> None:
    """Reserved, paid, shipped."""
    order = await shop.order(2)
    await shop.until(order, "RESERVED")
    say(f"1. Order {order} of 2 is reserved and waits for a card: {await shop.books()}.")
    await shop.pay(order, "visa")
    await shop.until(order, "SHIPPED")
    say(f"   The card comes twice, is charged once, and the order is shipped: {await shop.books()}.")


async def an_order_is_withdrawn(say: Say, shop: Shop) -> None:
    """Cancelled by the customer while it waits: the stock comes back."""
    order = await shop.order(1)
    await shop.until(order, "RESERVED")
    await shop.asked("DELETE", f"/orders/{order}")
    await shop.until(order, "CANCELLED")
    say(f"2. Order {order} is withdrawn while it waits: {await shop.books()}.")


async def a_parcel_that_cannot_be_delivered(say: Say, shop: Shop) -> None:
    """The last step fails for good: the money goes back, then the stock."""
    order = await shop.order(1)
    await shop.until(order, "RESERVED")
    await shop.pay(order, "nowhere")
    await shop.until(order, "CANCELLED")
    say(f"3. Order {order} is charged and cannot be delivered; both steps are undone: {await shop.books()}.")


async def too_many(say: Say, shop: Shop) -> None:
    """More than there are: nothing was done, and nothing is undone."""
    order = await shop.order(9)
    await shop.until(order, "CANCELLED")
    say(f"4. Order {order} of 9 is refused: {await shop.books()}.")
