"""The application of the typed examples."""

from collections.abc import AsyncGenerator
from dataclasses import dataclass

import msgspec
import pydantic

from horai import Horai, Instance

app = Horai("shop")
mail = app.queue("mail", max_concurrency=5, rate="100/s", priority="high", title="Mail")


@dataclass
class Order:
    id: int
    cents: int


class Receipt(msgspec.Struct):
    order: int


class Mail(pydantic.BaseModel):
    to: str


@app.job(queue="orders")
async def charge(order: Order, amount: int, *, currency: str = "EUR") -> Receipt:
    return Receipt(order.id)


@app.job(queue=mail)
async def refund(order: Order) -> int:
    return order.id


@app.job
async def deliver(instance: Instance[Order]) -> str:
    return str(instance.payload.id)


@app.job(timeout="5s")
async def notify(instance: Instance[object], mail: Mail, copies: int = 1) -> None: ...


@app.job
def report() -> float:
    return 1.5


@app.job
def render(title: str, pages: int = 1) -> list[str]:
    return [title] * pages


@app.resource
async def rates() -> AsyncGenerator[dict[str, float]]:
    yield {"EUR": 1.1}


async def load(number: int, cents: int) -> Order:
    return Order(number, cents)


async def repay(order: Order) -> None: ...
