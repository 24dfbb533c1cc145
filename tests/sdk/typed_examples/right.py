"""Calls that both type checkers accept."""

from datetime import UTC, datetime, timedelta
from typing import Any

from shop import Mail, Order, Receipt, app, charge, deliver, notify, refund, render, report

from horai import Handle, Instance, Job


async def calls(instance: Instance[object], conn: object) -> None:
    order = Order(1, 900)
    receipt: Receipt = await charge(order, 1)
    receipt = await (await charge.enqueue(order, 100)).result(timeout="10s")
    receipt = await (await charge.enqueue(order, amount=100, currency="USD"))
    handle: Handle[Receipt] = await charge.options(delay="5m").enqueue(order, 100, currency="USD")
    handle = await charge.options(at=datetime.now(UTC), version=3).put("order:1", order, 100)
    handle = await charge.options(idempotency_key="1").trigger(order, 100)
    handle = await charge.trigger(order, 100)
    handle = await charge.options(unique="10m").enqueue(order, 100)
    handle = await charge.options(unique=True, conn=conn).enqueue(order, amount=100)
    handle = await charge.options(unique=timedelta(hours=1)).trigger(order, 100)
    handle = await charge.options(concurrency_key="customer-7").enqueue(order, 100)
    handle = await charge.options(debounce=30).enqueue(order, 100)
    handle = (await charge.enqueue_many([charge.arguments(order, 1), charge.arguments(order, amount=2)]))[0]
    handle = await charge.put("order:1", delay="5m", payload=charge.arguments(order, 1))
    handle = charge.handle("17")
    number: int = await (await refund.enqueue(order))
    number = await (await refund.enqueue(order, delay="5m", conn=conn)).result()
    number = await refund(order=order)
    text: str = await (await deliver.enqueue(order, idempotency_key="k")).result()
    text = await (await deliver.enqueue()).result()
    text = await deliver(Instance[Order].__new__(Instance))
    await notify.enqueue(Mail(to="x"))
    await notify.enqueue(Mail(to="x"), copies=2)
    await notify(instance, Mail(to="x"))
    fraction: float = report()
    fraction = await (await report.enqueue())
    fraction = await (await report.enqueue(delay="1s")).result()
    lines: list[str] = render("a", pages=3)
    lines = render.sync.enqueue("a").result()
    lines = render.sync.options(conn=conn).enqueue("a", 3).result()
    lines = render.sync.handle(5).result()
    anything: Any = await app.handle("17")
    state: str = await handle.state()
    progress: float | None = await handle.progress()
    is_cancelled: bool = await handle.cancel()
    messages: list[str] = [entry.message for entry in await handle.logs()]
    job: Job[[Order], int] = refund
    jobs: list[Job[..., Any]] = [charge, refund, deliver]
    print(receipt, number, text, fraction, lines, anything, state, progress, is_cancelled, messages, job, jobs)
