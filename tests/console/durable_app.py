"""An application with durable functions, for the visits of their instances."""

from horai import Horai, StepFailed, gather, sleep, step, wait_for

app = Horai("visits")


async def load(order: str) -> dict[str, str]:
    return {"order": order}


async def charge(order: str) -> str:
    raise ConnectionError(f"the bank refuses {order}")


@app.job
async def print_invoice(order: str) -> str:
    await wait_for("paper")
    return order


@app.job
async def checkout(order: str) -> None:
    await step("load", load, order, compensate=str)
    try:
        await step("charge", charge, order, retry=0)
    except StepFailed:
        await sleep("1.5s")
    await gather(wait_for("approved", timeout="7d"), print_invoice.call(order))
