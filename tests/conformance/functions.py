"""The functions that the conformance suite calls, in Python. clients/typescript/conformance.ts has them in TypeScript."""

import asyncio
from typing import Any

from horai import Horai, Instance, RetryLater, Unrecoverable

app = Horai("conformance")


class FLAKY(Exception):
    """A failure that a retry may cure."""


class BROKEN(Unrecoverable):
    """A failure that no retry cures."""


@app.job
async def echo(payload: Any) -> Any:
    return payload


@app.job
async def size(payload: str) -> int:
    return len(payload)


@app.job
async def flaky(instance: Instance[dict[str, int]]) -> int:
    if instance.attempt <= instance.payload["failures"]:
        raise FLAKY(f"attempt {instance.attempt}")
    return instance.attempt


@app.job
async def broken() -> None:
    raise BROKEN("it is broken", tags=["conformance"])


@app.job
async def later(instance: Instance[None]) -> str:
    if instance.attempt == 1:
        raise RetryLater("50ms")
    return "later"


@app.job
async def notes(instance: Instance[None]) -> None:
    instance.progress(0.5, "half")
    instance.log("a line")


@app.job
async def wait(instance: Instance[dict[str, float]]) -> str:
    try:
        async with asyncio.timeout(instance.payload["seconds"]):
            await instance.cancelled()
        instance.raise_if_cancelled()
    except TimeoutError:
        pass
    return "waited"
