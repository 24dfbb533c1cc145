"""Calls that both type checkers refuse, each in its line."""

from shop import Mail, Order, app, charge, deliver, load, notify, rates, refund, render, report

from horai import Node, chain, gather, sleep, step, wait_for


async def calls() -> None:
    order = Order(1, 900)
    await charge.enqueue(order)  # error: a required argument is missing
    await charge.enqueue(order, "100")  # error: the type of an argument
    await charge.enqueue(order, 100, currenc="USD")  # error: no such parameter
    await charge.enqueue(order, 100, delay="5m")  # error: an option beside several parameters
    await charge.enqueue(order, 100, "USD")  # error: a keyword-only parameter by position
    await charge.options(dely="5m").enqueue(order, 100)  # error: no such option
    await charge.options(delay=[5]).enqueue(order, 100)  # error: the type of an option
    await charge.options(unique=[5]).enqueue(order, 100)  # error: the type of an option
    await charge.options(concurrency_key=7).enqueue(order, 100)  # error: the type of a key
    await charge.options(unique=True).enqueue(order)  # error: a required argument is missing
    await charge.options(debounce=None, queue=7).enqueue(order, 100)  # error: the type of a queue
    await charge.options(delay="5m").enqueue(order)  # error: a required argument is missing
    await charge.options(version=1).put("order:1", order)  # error: a required argument is missing
    await charge.options(version=1).put(order, order, 100)  # error: the key is not a string
    await charge.trigger("order", 100)  # error: the type of an argument
    charge.arguments(order, amount="100")  # error: the type of an argument
    await charge(order, "100")  # error: the type of an argument of a call here
    receipt: str = await charge(order, 100)  # error: the result of a call here
    number: int = await (await charge.enqueue(order, 100))  # error: the result of a handle
    text: str = await charge.handle("17").result()  # error: the result of a handle by id
    await refund.enqueue(17)  # error: the type of the payload
    await refund.enqueue()  # error: the payload is missing
    await refund.enqueue(order, dely="5m")  # error: no such option
    await deliver.enqueue(17)  # error: the type of the payload of an instance
    await notify.enqueue("x")  # error: the type of an argument after the instance
    await notify(Mail(to="x"))  # error: a call here without the instance
    await report.enqueue(17)  # error: a function without parameters
    render(17)  # error: the type of an argument of a call here
    lines: list[int] = render.sync.enqueue("a").result()  # error: the result of a handle without await
    render.sync.enqueue(17)  # error: the type of an argument
    app.job(cron=17)  # error: the type of an option of a job
    app.job(queue=17)  # error: the type of the queue of a job
    app.queue("a", max_concurrency="5")  # error: the type of a limit
    app.queue("b", max_concurency=5)  # error: no such option of a queue
    app.queue("c", priority="urgent")  # error: no such priority
    print(receipt, number, text, lines)


async def durable(order: Order) -> None:
    await step("load", load, "1", 900)  # error: the type of an argument of a step
    await step("load", load, 1)  # error: an argument of a step is missing
    await step("load", load, 1, 2, retries=3)  # error: no such option of a step
    await step("load", load, 1, 2, compensate=render)  # error: the compensation takes another result
    text: str = await step("load", load, 1, 2)  # error: the result of a step
    await sleep([5])  # error: the type of a duration
    await wait_for("approved", within="7d")  # error: no such option of a wait
    first, second = await gather(step("one", load, 1, 2), step("two", str, 5))
    both: tuple[str, str] = (first, second)  # error: the results of branches
    number: str = await refund.call(order)  # error: the result of a call
    await charge.call(order)  # error: a required argument of a call is missing
    rate: str = rates.get()  # error: the value of a resource
    chain(refund)  # error: a job is no call
    app.workflow("nightly", [refund])  # error: a job is no node
    Node(refund, afer=[])  # error: no such option of a node
    print(text, both, number, rate)
    await refund.continue_as_new(17)  # error: the type of an argument of the next round
