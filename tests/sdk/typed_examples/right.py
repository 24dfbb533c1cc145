"""Calls that both type checkers accept."""

from datetime import UTC, datetime, timedelta
from typing import Any

from shop import Mail, Order, Receipt, app, charge, deliver, load, mail, notify, rates, refund, render, repay, report

from horai import (
    ComposedRun,
    Handle,
    Instance,
    Job,
    Node,
    Queue,
    Run,
    chain,
    chord,
    gather,
    group,
    sleep,
    step,
    wait_for,
)


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
    handle = await charge.options(queue=mail).enqueue(order, 100)
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
    queue: Queue = app.queue("bulk", rate=5, max_concurrency=None)
    print(queue, receipt, number, text, fraction, lines, anything, state, progress, is_cancelled, messages, job, jobs)


@app.job(version=2)
async def durable(number: int) -> str:
    order: Order = await step("load", load, number, 900)
    order = await step("again", load, 1, 2, key="a", retry=3, compensate=repay)
    await sleep("10m")
    approval: Any = await wait_for("approved", timeout="7d")
    first, second = await gather(step("one", load, 1, 2), step("text", str, 5))
    both: tuple[Order, str] = (first, second)
    receipt: Receipt = await charge.call(order, 100, currency="USD")
    cents: int = await refund.options(key="r").call(order)
    rate: float = rates.get()["EUR"]
    print(approval, both, receipt, cents, rate)
    await durable.continue_as_new(number + 1)


async def compositions() -> None:
    run: ComposedRun = await chain(refund.s(Order(1, 2)), render.s(pages=2)).enqueue(idempotency_key="once")
    run = await chord(group(refund.s(Order(number, 1)) for number in range(3)), report.si()).enqueue()
    run = await refund.map([Order(1, 2)])
    nightly = app.workflow("nightly", [Node(refund), Node(report, after=[refund])], cron="0 2 * * *")
    started: Run = await nightly.run(logical_date=datetime(2026, 1, 1, tzinfo=UTC))
    runs: list[Run] = await nightly.runs(state="BLOCKED")
    print(run, started, runs)
