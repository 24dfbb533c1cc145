"""An application some of whose functions want a process of their own, on the database that the environment names."""

import os
from typing import Any

from horai import Horai, Instance, Retry

app = Horai("isolated shop")

QUICK = Retry(max=2, base="10ms", jitter="none")


@app.job(isolation="process")
def quick() -> int:
    return os.getpid()


@app.job(isolation="process", retry=QUICK)
def poison() -> None:
    os._exit(13)


@app.job(isolation="process", retry=Retry(max=0), timeout="300ms")
def endless() -> None:
    while True:
        pass


@app.job(isolation="process")
async def telling(instance: Instance[Any]) -> None:
    instance.progress(0.5, "half way")


@app.job(isolation="process")
async def long(instance: Instance[Any]) -> None:
    instance.log("waiting")
    await instance.cancelled()
    instance.raise_if_cancelled()


@app.job(isolation="process")
async def adds_another() -> str:
    return (await inside.enqueue()).id


@app.job
async def inside() -> int:
    return os.getpid()
