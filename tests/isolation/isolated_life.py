"""An application whose processes write down their life in the file of HORAI_TEST_LIFE."""

import os
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

from horai import Horai, Instance
from horai.sdk.lifecycle import CallNext

app = Horai("life")
FILE = Path(os.environ.get("HORAI_TEST_LIFE", os.devnull))


def note(line: str) -> None:
    with FILE.open("a") as file:
        file.write(f"{line}\n")


@app.resource
async def pool() -> AsyncGenerator[int]:
    note("opens")
    yield 7
    note("closes")


@app.on_startup
def start() -> None:
    if os.environ.get("HORAI_TEST_BROKEN"):
        raise RuntimeError("no broker")
    note("starts")


@app.on_shutdown
async def end() -> None:
    note("ends")


@app.middleware
async def doubled(instance: Instance[Any], call_next: CallNext) -> Any:
    return 2 * await call_next(instance)


@app.job(isolation="process")
def add(amount: int, more: int = 0) -> int:
    return pool.get() + amount + more
