"""Single writes over REST: PUT and trigger by 16 connections, with few and with many partitions of the history.

The API runs in a process of its own (python -m benchmarks.puts URL), with the product's own pool.
"""

import asyncio
import socket
import sys
import time
from datetime import timedelta
from functools import partial

import uvicorn
import uvloop

from benchmarks import backlog
from benchmarks.processes import child, module, quiet, tell, told_to_end
from benchmarks.scenario import Line, Sample, Scenario
from benchmarks.sitting import Sitting
from horai.api.context import Context
from horai.app import create_app
from horai.core.health import EngineHealth
from horai.db import nodes
from horai.db.pool import connect
from horai.db.wakeups import Wakeups
from horai.features.registry import JOB_HOOKS
from horai.process import pool

CALLERS = 16
PARTITIONS = (9, 30, 100)
PARTITIONED = "select count(*) from pg_inherits where inhparent = 'horai.instance_history'::regclass"
FOLD = "update horai.history_fold set folded_before = date_trunc('day', clock_timestamp(), 'UTC')"
"""As the retention stage does with days that are over."""
PUT = "PUT /api/v1/jobs/noop0/instances/k{number} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{{}}"
TRIGGER = (
    "POST /api/v1/jobs/noop0/trigger HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    "Idempotency-Key: t{number}\r\nContent-Length: 2\r\n\r\n{{}}"
)


async def sample(sitting: Sitting, partitions: int) -> Sample:
    """Requests per second of each kind, and the 99th percentile of their times."""
    found: dict[str, float] = {}
    seconds = sitting.size.seconds / 5
    async with sitting.database("puts") as url:
        await backlog.make_jobs(url, 1)
        await _prepare(url, partitions)
        async with child(*module(__name__, url)) as api:
            for name, request in (("PUT", PUT), ("trigger", TRIGGER)):
                await _ask(api.told["port"], request, seconds / 4, "w")
                times = await _ask(api.told["port"], request, seconds, "m")
                found[f"{name}, {partitions} partitions"] = len(times) / seconds
                found[f"{name} p99, {partitions} partitions"] = times[len(times) * 99 // 100] * 1000
    return found


async def _prepare(url: str, partitions: int) -> None:
    """Add partitions of past days up to this number, and a node to which a trigger can be given."""
    connection = await connect(url, "bench")
    there = await connection.fetchval(PARTITIONED)
    oldest = await connection.fetchval("select current_date - $1::integer", partitions)
    await connection.execute("select horai.make_partitions($1, $2)", oldest, max(partitions - there, 0), timeout=60)
    await connection.execute(FOLD)
    await nodes.register_node(connection, "bench", "bench", 1, "bench", timedelta(hours=1))
    await connection.execute("analyze")
    await connection.execute("checkpoint")
    await connection.close()


async def _ask(port: int, request: str, seconds: float, prefix: str) -> list[float]:
    """The seconds that each answer took, in order."""
    ends_at = time.perf_counter() + seconds
    each = await asyncio.gather(*(_caller(port, request, ends_at, f"{prefix}{n}-") for n in range(CALLERS)))
    return sorted(took for times in each for took in times)


async def _caller(port: int, request: str, ends_at: float, prefix: str) -> list[float]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    times: list[float] = []
    while (began := time.perf_counter()) < ends_at or not times:
        writer.write(request.format(number=f"{prefix}{len(times)}").encode())
        head = await reader.readuntil(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 201"):
            raise RuntimeError(head.decode())
        length = head.lower().split(b"content-length: ")[1].split(b"\r\n")[0]
        await reader.readexactly(int(length))
        times.append(time.perf_counter() - began)
    writer.close()
    return times


SCENARIOS = tuple(
    Scenario(
        f"puts_{partitions}",
        f"PUT and trigger over REST, {CALLERS} connections, {partitions} partitions of the history",
        partial(sample, partitions=partitions),
        tuple(
            line
            for name in ("PUT", "trigger")
            for line in (
                Line(f"{name}, {partitions} partitions", "/s"),
                Line(f"{name} p99, {partitions} partitions", "ms"),
            )
        ),
    )
    for partitions in PARTITIONS
)


async def _serve(url: str) -> None:
    listening = socket.create_server(("127.0.0.1", 0), backlog=128)
    async with pool(url, "bench api", timedelta(seconds=60)) as connections:
        app = create_app(Context(connections, Wakeups(), EngineHealth(), 1, "default", JOB_HOOKS))
        server = uvicorn.Server(uvicorn.Config(app, http="httptools", lifespan="off", log_level="error"))
        serving = asyncio.create_task(server.serve([listening]))
        tell({"port": listening.getsockname()[1]})
        await told_to_end()
        server.should_exit = True
        await serving


if __name__ == "__main__":
    quiet()
    uvloop.run(_serve(sys.argv[1]))
