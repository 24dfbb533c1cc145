"""Functions on Ray, and one that is not."""

import asyncio
import os
import signal
import time
from importlib import import_module
from pathlib import Path
from typing import Any

from horai import Horai, Instance, Retry, RetryLater, Unrecoverable

app = Horai("ray-app")
SOON = Retry(max=2, base="10ms", cap="100ms", jitter="none")


class Unpicklable(Exception):
    def __reduce__(self) -> Any:
        raise TypeError("cannot be pickled")


@app.job
async def beside() -> int:
    return os.getpid()


@app.job(executor="ray", resources={"num_cpus": 0.5})
def square(number: int) -> int:
    return number * number


@app.job(executor="ray", resources={"num_cpus": 0.5, "memory": 10_000_000})
def place() -> dict[str, Any]:
    context: Any = import_module("ray").get_runtime_context()
    return {"pid": os.getpid(), "node": context.get_node_id(), "resources": context.get_assigned_resources()}


@app.job(executor="ray", retry=SOON)
async def raises(kind: str) -> None:
    await asyncio.sleep(0)
    if kind == "later":
        raise RetryLater("1h")
    if kind == "never":
        raise Unrecoverable("spent", tags=["own"])
    raise Unpicklable("no luck")


@app.job(executor="ray")
def tells(instance: Instance[None]) -> list[Any]:
    instance.log("begins")
    for step in range(1, 5):
        instance.progress(step / 4)
    instance.progress(1.0, "done")
    return [instance.id, instance.key, instance.attempt]


@app.job(executor="ray")
def waits(instance: Instance[str]) -> None:
    """Wait until the claim is over, and say so in the file of the payload."""
    instance.log(str(os.getpid()))
    while not instance.is_cancelled:
        time.sleep(0.02)
    Path(instance.payload).write_text("cancelled")


@app.job(executor="ray", resources={"num_gpus": 1})
def needs_gpu(instance: Instance[str]) -> None:
    Path(instance.payload).write_text("begun")


@app.job(executor="ray", timeout="500ms", retry=0)
def ignores_timeout(instance: Instance[None]) -> None:
    instance.log(str(os.getpid()))
    time.sleep(600)


@app.job(executor="ray", timeout="500ms", retry=0)
async def sleeps() -> None:
    await asyncio.sleep(600)


@app.job(executor="ray", retry=Retry(max=1, base="10ms", cap="100ms", jitter="none"))
def crashes(instance: Instance[None]) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@app.job(executor="ray", resources={"num_cpus": 0.5}, retry=Retry(max=0, base="10ms", cap="500ms"))
def takes_a_while(instance: Instance[float]) -> str:
    """Run for so many seconds. No failure is retried; losses are."""
    time.sleep(instance.payload)
    return instance.id
