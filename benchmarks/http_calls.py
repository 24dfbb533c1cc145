"""HTTP: callbacks per second through the product's own HTTP executor, to a receiver in another process."""

import asyncio
import ipaddress
import socket
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any

import uvicorn
import uvloop

from benchmarks import backlog
from benchmarks.engines import SETTINGS, running_engine, settled
from benchmarks.processes import child, module, tell, told_to_end
from benchmarks.scenario import Line, Sample, Scenario
from benchmarks.sitting import Sitting
from horai.core.addresses import AddressPolicy
from horai.db.pool import connect
from horai.engine.executors.http import HttpExecutor

LOOPBACK = (ipaddress.IPv4Network("127.0.0.0/8"),)
SOME = replace(SETTINGS, in_flight=2 * SETTINGS.per_host)
"""As many as one host's bulkhead takes and lets wait: more would be sent back to try later."""


async def sample(sitting: Sitting) -> Sample:
    """A tenth of the usual backlog to one target."""
    rows = max(sitting.size.rows // 10, 1)
    async with sitting.database("http") as url, child(*module(__name__)) as receiver:
        await backlog.make_jobs(url, 1, target={"type": "http", "url": receiver.told["url"]})
        connection = await connect(url, "bench")
        await backlog.fill(connection, rows, lanes=1)
        executor = HttpExecutor(AddressPolicy(LOOPBACK), per_host=SETTINGS.per_host)
        await executor.open()
        started = time.perf_counter()
        async with running_engine(url, executor, settings=SOME, handler="") as health:
            await settled(health, rows)
            rate = rows / (time.perf_counter() - started)
        await executor.close()
        received = await receiver.finish()
        await backlog.require_settled(connection, rows)
        await connection.close()
    if received != rows:
        raise RuntimeError(f"{received} calls arrived for {rows} rows")
    return {"http": rate}


SCENARIO = Scenario("http", "HTTP callbacks, receiver in another process", sample, (Line("http", "/s"),))


class Receiver:
    """Says OK to everything, and counts."""

    def __init__(self) -> None:
        self.calls = 0

    async def __call__(
        self, scope: Mapping[str, Any], receive: object, send: Callable[[Mapping[str, Any]], Awaitable[None]]
    ) -> None:
        self.calls += 1
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body", "body": b""})


async def _receive() -> None:
    receiver, listening = Receiver(), socket.create_server(("127.0.0.1", 0), backlog=1024)
    config = uvicorn.Config(receiver, http="httptools", lifespan="off", log_level="error")  # pyright: ignore[reportArgumentType] — an ASGI app, more loosely typed
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve([listening]))
    tell({"url": f"http://127.0.0.1:{listening.getsockname()[1]}/"})
    await told_to_end()
    tell(receiver.calls)
    server.should_exit = True
    await serving


if __name__ == "__main__":
    uvloop.run(_receive())
