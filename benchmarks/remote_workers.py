"""Remote workers: how long after its time an instance's lease arrives at one of a thousand workers of one node.

The node is a process of its own. The workers are a thousand WebSockets in this process, with two credits each; a call takes 20 ms.
"""

import asyncio
import sys
import time
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import aiohttp
import uvloop

from benchmarks import backlog, cpu
from benchmarks.backlog import Spread
from benchmarks.engines import NOOP
from benchmarks.processes import child, module, quiet, tell, told_to_end
from benchmarks.scenario import Line, Sample, Scenario
from benchmarks.sitting import Sitting
from horai.db.pool import connect
from horai.engine_node import NodeSettings
from horai.node import run
from horai.wire.worker_messages import (
    PATH,
    PROTOCOL,
    HandlerOffer,
    Heartbeat,
    Hello,
    LeasedAttempt,
    Leases,
    Report,
    Reports,
    Welcome,
    WorkerMessage,
    decode_server,
    encode,
)

WORKERS, FEW_WORKERS = 1_000, 20
CREDITS = 2
RATE = 200
CALL = 0.02
AT_ONCE = 50
"""Workers that connect at the same time."""
CONNECTIONS = (
    "select count(*) from pg_stat_activity where datname = current_database() and application_name like 'horai%'"
)


class SimulatedWorker:
    """A worker that runs nothing: it waits `CALL` seconds, and reports a success."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse, delays: list[float]) -> None:
        self._socket = socket
        self._delays = delays
        self._calls: set[asyncio.Task[None]] = set()

    async def enter(self, number: int) -> Welcome:
        """Greet the server."""
        await self._send(Hello(PROTOCOL, f"simulated-{number}", [HandlerOffer(NOOP)], CREDITS))
        welcome = decode_server(await self._socket.receive_str())
        if not isinstance(welcome, Welcome):
            raise TypeError(f"not welcome: {welcome}")
        return welcome

    async def work(self, welcome: Welcome) -> None:
        """Work until cancelled."""
        beating = asyncio.create_task(self._beat(welcome.heartbeat_seconds))
        try:
            while True:
                message = decode_server(await self._socket.receive_str())
                if isinstance(message, Leases):
                    now = time.time()
                    for lease in message.leases:
                        self._delays.append(now - lease.execute_time.timestamp())
                        call = asyncio.create_task(self._call(lease))
                        self._calls.add(call)
                        call.add_done_callback(self._calls.discard)
        finally:
            beating.cancel()

    async def _call(self, lease: LeasedAttempt) -> None:
        await asyncio.sleep(CALL)
        await self._send(Reports([Report(lease.instance, lease.fence, "succeeded")]))

    async def _beat(self, every: float) -> None:
        while True:
            await self._send(Heartbeat())
            await asyncio.sleep(every)

    async def _send(self, message: WorkerMessage) -> None:
        await self._socket.send_str(encode(message).decode())


@asynccontextmanager
async def workers(base: str, count: int, delays: list[float]) -> AsyncGenerator[None]:
    """Connected workers, at work until the end of the block."""
    turns = asyncio.Semaphore(AT_ONCE)
    async with AsyncExitStack() as stack:
        http = await stack.enter_async_context(
            aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0, force_close=True))
        )

        async def enter(number: int) -> tuple[SimulatedWorker, Welcome]:
            async with turns:
                socket = await http.ws_connect(base + PATH, max_msg_size=0)
                stack.push_async_callback(socket.close)
                worker = SimulatedWorker(socket, delays)
                return worker, await worker.enter(number)

        entered = await asyncio.gather(*(enter(number) for number in range(count)))
        tasks = [asyncio.create_task(worker.work(welcome)) for worker, welcome in entered]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


async def sample(sitting: Sitting) -> Sample:
    """A steady rate of instances to all workers."""
    count = FEW_WORKERS if sitting.size.quick else WORKERS
    seconds = sitting.size.seconds
    rows, delays = max(int(RATE * seconds), 1), list[float]()
    async with sitting.database("remote") as url:
        await backlog.make_jobs(url, 1)
        connection = await connect(url, "bench")
        async with child(*module(__name__, url)) as node, workers(node.told["url"], count, delays):
            lead = sitting.size.wait(3.0, quick=1.0)
            await backlog.fill(connection, rows, Spread(lead, even=seconds, scatter=0.0), lanes=1)
            connections = await connection.fetchval(CONNECTIONS)
            began, node_cpu, own_cpu = time.monotonic(), cpu.of_tree(node.pid), cpu.own()
            async with asyncio.timeout(lead + seconds + 60):
                while await connection.fetchval("select count(*) from horai.instance_history") < rows:
                    await asyncio.sleep(0.05)
            took = time.monotonic() - began
            node_cpu, own_cpu = cpu.of_tree(node.pid) - node_cpu, cpu.own() - own_cpu
        await backlog.require_settled(connection, rows)
        await connection.close()
    ordered = sorted(delays)
    return {
        "remote_workers": count,
        "remote_p50": ordered[len(ordered) // 2] * 1000,
        "remote_p95": ordered[int(len(ordered) * 0.95)] * 1000,
        "remote_p99": ordered[int(len(ordered) * 0.99)] * 1000,
        "remote_connections": connections,
        "remote_node_cpu": node_cpu / took * 100,
        "remote_client_cpu": own_cpu / took * 100,
    }


SCENARIO = Scenario(
    "remote_workers",
    f"dispatch to {WORKERS:,} remote workers of one node, {RATE}/s",
    sample,
    (
        Line("remote_workers", "workers"),
        Line("remote_p50", "ms"),
        Line("remote_p95", "ms", at_most=100.0),
        Line("remote_p99", "ms"),
        Line("remote_connections", "connections", at_most=50.0),
        Line("remote_node_cpu", "% of a core"),
        Line("remote_client_cpu", "% of a core"),
    ),
)


async def _serve(url: str) -> None:
    stop = asyncio.Event()
    ended = asyncio.create_task(told_to_end())
    ended.add_done_callback(lambda _: stop.set())
    settings = NodeSettings(Path("/nonexistent"), port=0, database_url=url, name="bench")
    await run(settings, stop, lambda address: tell({"url": address}))


if __name__ == "__main__":
    quiet()
    uvloop.run(_serve(sys.argv[1]))
