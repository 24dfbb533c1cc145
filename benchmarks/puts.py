"""Single writes over REST: PUT and trigger by 16 connections, with few and with many partitions of the history.

The API runs in a process of its own, as the product serves it. Every request has an API key, and row-level security is in
force. A trigger writes its row of the audit log; a PUT has none (decision 0035). The CPU time of the client, of the API and of
PostgreSQL is reported per request: all three share the machine.
"""

import asyncio
import time
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import cast

from benchmarks import backlog, cpu
from benchmarks.processes import child, module
from benchmarks.scenario import Line, Sample, Scenario
from benchmarks.sitting import Sitting
from horai.core.roles import AccessRole
from horai.db import nodes
from horai.db.isolation import is_isolated
from horai.db.pool import connect
from horai.features.access.service import KeyWish, create_key_by_operator

CALLERS = 16
PARTITIONS = (9, 30, 100)
PARTITIONED = "select count(*) from pg_inherits where inhparent = 'horai.instance_history'::regclass"
FOLD = "update horai.history_fold set folded_before = date_trunc('day', clock_timestamp(), 'UTC')"
"""As the retention stage does with days that are over."""
HEAD = "Host: localhost\r\nAuthorization: Bearer {key}\r\nContent-Type: application/json\r\nContent-Length: 2\r\n"
PUT = "PUT /api/v1/jobs/noop0/instances/k{{number}} HTTP/1.1\r\n" + HEAD + "\r\n{{{{}}}}"
TRIGGER = "POST /api/v1/jobs/noop0/trigger HTTP/1.1\r\n" + HEAD + "Idempotency-Key: t{{number}}\r\n\r\n{{{{}}}}"
CREATED = b"HTTP/1.1 201"
LENGTH = b"\r\ncontent-length: "


async def sample(sitting: Sitting, partitions: int) -> Sample:
    """Requests per second of each kind, the 99th percentile of their times, and the CPU time of each process."""
    found: dict[str, float] = {}
    seconds = sitting.size.seconds / 5
    async with sitting.database("puts") as url:
        await backlog.make_jobs(url, 1)
        key = await _prepare(url, partitions)
        async with child(*module("benchmarks.api_process", url)) as api:
            port = int(str(api.told["url"]).rpartition(":")[2])
            for name, request in (("PUT", PUT.format(key=key)), ("trigger", TRIGGER.format(key=key))):
                await _ask(port, request, seconds / 4, "w")
                before = _Worked.now(sitting, api.pid)
                times = await _ask(port, request, seconds, "m")
                worked = _Worked.now(sitting, api.pid)
                found[f"{name}, {partitions} partitions"] = len(times) / seconds
                found[f"{name} p99, {partitions} partitions"] = times[len(times) * 99 // 100] * 1000
                for part, shown in PARTS.items():
                    spent = getattr(worked, part) - getattr(before, part)
                    found[f"{name} CPU of {shown}, {partitions} partitions"] = spent / len(times) * 1000
    return found


@dataclass(frozen=True, slots=True)
class _Worked:
    """Seconds of CPU time until now."""

    client: float
    api: float
    postgres: float

    @classmethod
    def now(cls, sitting: Sitting, api: int) -> "_Worked":
        return cls(cpu.own(), cpu.of_tree(api), cpu.of_tree(sitting.server.pid))


PARTS = {"client": "the client", "api": "the API", "postgres": "PostgreSQL"}


async def _prepare(url: str, partitions: int) -> str:
    """Add partitions of past days up to this number, and a node to which a trigger can be given. Return an API key."""
    connection = await connect(url, "bench")
    if not await is_isolated(connection):
        raise RuntimeError("row-level security is off")
    there = await connection.fetchval(PARTITIONED)
    oldest = await connection.fetchval("select current_date - $1::integer", partitions)
    await connection.execute("select horai.make_partitions($1, $2)", oldest, max(partitions - there, 0), timeout=60)
    await connection.execute(FOLD)
    await nodes.register_node(connection, "bench", "bench", 1, "bench", timedelta(hours=1))
    key = await create_key_by_operator(connection, KeyWish(AccessRole.OPERATOR))
    await connection.execute("analyze")
    await connection.execute("checkpoint")
    await connection.close()
    return key.text


async def _ask(port: int, request: str, seconds: float, prefix: str) -> list[float]:
    """The seconds that each answer took, in order."""
    loop, ends_at = asyncio.get_running_loop(), time.perf_counter() + seconds
    callers = [_Caller(request, ends_at, f"{prefix}{number}-") for number in range(CALLERS)]
    for caller in callers:
        await loop.create_connection(lambda caller=caller: caller, "127.0.0.1", port)
    await asyncio.gather(*(caller.ended for caller in callers))
    return sorted(took for caller in callers for took in caller.times)


class _Caller(asyncio.Protocol):
    """A connection that sends its next request when the last one is answered. It takes as little CPU time as it can."""

    def __init__(self, request: str, ends_at: float, prefix: str) -> None:
        self._request, self._ends_at, self._prefix = request, ends_at, prefix
        self._began, self._read = 0.0, b""
        self.times: list[float] = []
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._send()

    def _send(self) -> None:
        self._began = time.perf_counter()
        if self._began >= self._ends_at and self.times:
            self._transport.close()
            self.ended.set_result(None)
            return
        self._transport.write(self._request.format(number=f"{self._prefix}{len(self.times)}").encode())

    def data_received(self, data: bytes) -> None:
        self._read += data
        end = self._read.find(b"\r\n\r\n")
        if end < 0:
            return
        head = self._read[:end]
        if not head.startswith(CREATED):
            self._transport.close()
            self.ended.set_exception(RuntimeError(self._read.decode()))
            return
        at = head.lower().index(LENGTH) + len(LENGTH)
        if len(self._read) >= end + 4 + int(head[at:].partition(b"\r\n")[0]):
            self.times.append(time.perf_counter() - self._began)
            self._read = b""
            self._send()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.ended.done():
            self.ended.set_exception(exc or RuntimeError("the API closed a connection"))


def _lines(name: str, partitions: int) -> tuple[Line, ...]:
    return (
        Line(f"{name}, {partitions} partitions", "/s", at_least=3_000),
        Line(f"{name} p99, {partitions} partitions", "ms", at_most=15.0),
        *(Line(f"{name} CPU of {part}, {partitions} partitions", "ms") for part in PARTS.values()),
    )


SCENARIOS = tuple(
    Scenario(
        f"puts_{partitions}",
        f"PUT and trigger over REST with an API key, {CALLERS} connections, {partitions} partitions of the history",
        partial(sample, partitions=partitions),
        (*_lines("PUT", partitions), *_lines("trigger", partitions)),
    )
    for partitions in PARTITIONS
)
