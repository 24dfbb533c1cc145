"""The HTTP service of the shop. The lifespan of FastAPI opens and closes the client of Horai."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Annotated

from fastapi import Depends, FastAPI, Header, HTTPException
from pydantic import BaseModel, Field
from sqlalchemy.ext.asyncio import AsyncSession

from horai import NotFound

from .jobs import app as horai
from .jobs import checkout
from .tables import Order, Product, engine, make_tables, sessions


class OrderIn(BaseModel):
    """`POST /orders`."""

    product: str
    quantity: int = Field(default=1, ge=1)


class CardIn(BaseModel):
    """`POST /orders/{id}/card`."""

    card: str


class OrderOut(BaseModel):
    """An order and its status."""

    id: int
    status: str


@asynccontextmanager
async def lifespan(_: FastAPI) -> AsyncGenerator[None]:
    """Make the tables, and keep one client of Horai open while the service runs."""
    await make_tables()
    async with horai:
        yield
    await engine.dispose()


async def transaction() -> AsyncGenerator[AsyncSession]:
    """One transaction for each request: committed when the route returns, rolled back if it raises."""
    async with sessions.begin() as session:
        yield session


Session = Annotated[AsyncSession, Depends(transaction, scope="function")]
service = FastAPI(title="Shop", lifespan=lifespan)


def key_of(order_id: int) -> str:
    """Return the key of an order's checkout: an order has one."""
    return f"order:{order_id}"


@service.post("/orders", status_code=202)
async def place(wish: OrderIn, session: Session) -> OrderOut:
    """Place an order. The order and its checkout are one transaction: both, or neither."""
    if await session.get(Product, wish.product) is None:
        raise HTTPException(404, f"There is no product {wish.product!r}.")
    order = Order(product=wish.product, quantity=wish.quantity)
    session.add(order)
    await session.flush()
    await checkout.put(key_of(order.id), payload=order.id, conn=session)
    return OrderOut(id=order.id, status=order.status)


@service.get("/orders/{order_id}")
async def show(order_id: int, session: Session) -> OrderOut:
    """Show an order."""
    order = await session.get(Order, order_id)
    if order is None:
        raise HTTPException(404, f"There is no order {order_id}.")
    return OrderOut(id=order.id, status=order.status)


@service.post("/orders/{order_id}/card", status_code=202)
async def pay(order_id: int, paid: CardIn, idempotency_key: Annotated[str, Header()]) -> None:
    """Take the card of the customer. A second request with the same key changes nothing."""
    try:
        await checkout.signal(key_of(order_id), "card", paid.card, idempotency_key=idempotency_key)
    except NotFound:
        raise HTTPException(409, f"Order {order_id} does not wait for a card.") from None


@service.delete("/orders/{order_id}", status_code=202)
async def withdraw(order_id: int) -> None:
    """Cancel an order that is not shipped, and undo what was done for it."""
    if not await checkout.cancel(key_of(order_id), compensate=True):
        raise HTTPException(409, f"Order {order_id} has ended.")
