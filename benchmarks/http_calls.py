"""HTTP: calls per second of a node with the product's defaults, and of a bare aiohttp client against the same receiver.

Receiver, node and client are processes of their own. The client keeps as many calls in flight as a node does to one host.
"""

import asyncio
import ipaddress
import socket
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import aiohttp
import uvicorn
import uvloop

from benchmarks import backlog, cpu
from benchmarks.engines import as_node
from benchmarks.processes import child, module, quiet, tell, told_to_end
from benchmarks.scenario import Line, Sample, Scenario
from benchmarks.sitting import Sitting
from horai.core.settings import EngineSettings
from horai.db.pool import Platform, connect
from horai.engine_node import NodeSettings, run

SETTINGS = EngineSettings(callback_allow=(ipaddress.IPv4Network("127.0.0.0/8"),))
"""The defaults of the product, and permission to call this machine."""
BODY = b'{"job": "noop0", "payload": {"x": "' + b"x" * 240 + b'"}}'
"""As long as the body that the node sends."""
PATIENCE = 600.0
SPAN = "select count(*) as settled, max(finished_at) - min(claimed_at) as took from horai.instance_history"


async def sample(sitting: Sitting) -> Sample:
    """A tenth of the usual backlog to one target, by a node and by a bare client."""
    rows = max(sitting.size.rows // 10, 1)
    async with sitting.database("http") as url, child(*module(__name__, "receive")) as receiver:
        target = receiver.told["url"]
        async with child(*module(__name__, "call", target, str(rows))) as client:
            bare = await client.next_line(PATIENCE)
        await backlog.make_jobs(url, 1, target={"type": "http", "url": target})
        connection = await connect(url, "bench")
        await backlog.fill(connection, rows, lanes=1)
        async with child(*module(__name__, "node", as_node(url))) as node:
            worked = cpu.of_tree(node.pid)
            took = await _settled(connection, rows)
            worked = cpu.of_tree(node.pid) - worked
        received = await receiver.finish()
        await backlog.require_settled(connection, rows)  # each of them at attempt 1
        await connection.close()
    if received != 2 * rows:
        raise RuntimeError(f"{received} calls arrived for twice {rows} rows")
    return {
        "bare aiohttp": rows / bare["took"],
        "http": rows / took.total_seconds(),
        "http_bare_cpu": bare["worked"] / rows * 1e6,
        "http_node_cpu": worked / rows * 1e6,
    }


SCENARIO = Scenario(
    "http",
    "HTTP calls of a node, receiver in another process",
    sample,
    (
        Line("bare aiohttp", "/s"),
        Line("http", "/s", "bare aiohttp", at_least=0.6),
        Line("http_bare_cpu", "µs a call"),
        Line("http_node_cpu", "µs a call"),
    ),
)


async def _settled(connection: Platform, rows: int) -> timedelta:
    """Wait until all rows are settled. Return the time from the first claim to the last settlement."""
    async with asyncio.timeout(PATIENCE):
        while True:
            row = await connection.fetchrow(SPAN)
            if row is not None and row["settled"] >= rows:
                return row["took"]
            await asyncio.sleep(0.1)


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


async def _call(url: str, calls: str) -> None:
    """Make the calls as a client that does nothing else."""
    numbers = iter(range(int(calls)))
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=SETTINGS.per_host)) as session:

        async def work() -> None:
            for _ in numbers:
                async with session.post(url, data=BODY, headers={"Content-Type": "application/json"}) as response:
                    response.raise_for_status()
                    await response.read()

        tell("ready")
        started, worked = time.perf_counter(), cpu.own()
        await asyncio.gather(*(work() for _ in range(SETTINGS.per_host)))
        tell({"took": time.perf_counter() - started, "worked": cpu.own() - worked})


async def _node(url: str) -> None:
    stop = asyncio.Event()
    ended = asyncio.create_task(told_to_end())
    ended.add_done_callback(lambda _: stop.set())
    settings = NodeSettings(Path("/nonexistent"), database_url=url, name="bench", engine=SETTINGS)
    await run(settings, stop, tell)


PARTS = {"receive": _receive, "call": _call, "node": _node}

if __name__ == "__main__":
    quiet()
    uvloop.run(PARTS[sys.argv[1]](*sys.argv[2:]))
