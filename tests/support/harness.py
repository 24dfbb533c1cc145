"""A whole node, in this process or in one of its own, and a client that speaks to it over real HTTP."""

import asyncio
import os
import signal
import subprocess
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import IO, Any, Protocol, Self

import aiohttp
from databases import PARTITIONS_AHEAD, as_node
from forked import HORAI, Forked

from horai.core.addresses import parse_networks
from horai.core.settings import EngineSettings, ReplicaSettings, ServerAccess, ServerLimits
from horai.core.shards import EVERY_ROLE, Role
from horai.node import NodeSettings, run

LOOPBACK = parse_networks(["127.0.0.0/8", "::1/128"])
FAST = EngineSettings(
    lease=timedelta(seconds=3),
    sweep=timedelta(seconds=2),
    rescue=timedelta(milliseconds=300),
    grace=timedelta(seconds=3),
    background_after=timedelta(0),
    history_keep=timedelta(days=1_000),
    partitions_ahead=PARTITIONS_AHEAD,
    callback_allow=LOOPBACK,
    breaker_share=2.0,
    retry_free=1_000_000,
)
"""Settings for tests: short leases, frequent sweeps, and no breaker or budget for targets that fail on purpose.

The template has these partitions: with the eight days of the product each node would create 20 tables.
"""
GUARDED = replace(FAST, breaker_share=EngineSettings().breaker_share, retry_free=EngineSettings().retry_free)
"""The same with the breaker and the budget of the product."""


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer of a server."""

    status: int
    json: Any
    headers: Any


@dataclass(frozen=True, slots=True)
class Client:
    """Speaks JSON to one node."""

    base: str
    session: aiohttp.ClientSession

    async def __call__(self, method: str, path: str, body: Any = None, **headers: str) -> Reply:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        kwargs: dict[str, Any] = {"json": body} if body is not None else {}
        async with self.session.request(method, self.base + path, headers=named, **kwargs) as response:
            is_json = "json" in response.headers.get("content-type", "")
            return Reply(response.status, await response.json(content_type=None) if is_json else None, response.headers)

    async def raw(self, method: str, path: str, body: bytes, **headers: str) -> Reply:
        named = {"content-type": "application/json"} | {n.replace("_", "-"): v for n, v in headers.items()}
        async with self.session.request(method, self.base + path, data=body, headers=named) as response:
            return Reply(response.status, await response.json(content_type=None), response.headers)

    async def until_state(self, instance_id: str, *states: str, within: float = 30.0) -> Any:
        """The instance once it is in one of these states."""
        async with asyncio.timeout(within):
            while True:
                found = (await self("GET", f"/api/v1/instances/{instance_id}")).json
                if found["state"] in states:
                    return found
                await asyncio.sleep(0.02)


@asynccontextmanager
async def node(
    url: str,
    engine: EngineSettings = FAST,
    *,
    name: str = "test-node",
    roles: frozenset[Role] = EVERY_ROLE,
    limits: ServerLimits | None = None,
    sources: Mapping[str, str] | None = None,
    access: ServerAccess | None = None,
    replica: ReplicaSettings | None = None,
    port: int = 0,
    **changes: Any,
) -> AsyncGenerator[Client]:
    """Run a node in this process, on a port of its own; without the role `api` its client has no server to speak to."""
    settings = NodeSettings(
        Path("/nonexistent"),
        port=port,
        database_url=as_node(url),
        name=name,
        engine=replace(engine, **changes),
        roles=roles,
        limits=limits or ServerLimits(),
        sources=sources or {},
        access=access or ServerAccess(),
        replica=replica,
    )
    stop, address = asyncio.Event(), asyncio.get_running_loop().create_future()
    serving = asyncio.create_task(run(settings, stop, address.set_result))
    await asyncio.wait({serving, address}, return_when=asyncio.FIRST_COMPLETED)
    if serving.done():
        serving.result()
    async with aiohttp.ClientSession() as session:
        try:
            yield Client(await address, session)
        finally:
            stop.set()
            await serving


class Launched(Protocol):
    """The part of `subprocess.Popen` that the tests use."""

    pid: int
    stdout: IO[str] | None

    def poll(self) -> int | None: ...
    def wait(self, timeout: float | None = None) -> int: ...
    def send_signal(self, number: signal.Signals, /) -> None: ...
    def kill(self) -> None: ...


def start_interpreter(arguments: Sequence[str], environment: Mapping[str, str], log: Path) -> Launched:
    """Start `horai` as users do; its errors are added to `log`."""
    with log.open("a") as errors:
        return subprocess.Popen([HORAI, *arguments], env=environment, stdout=subprocess.PIPE, stderr=errors, text=True)


class HoraiProcess:
    """`horai up` in a process that can be killed. Its output goes to a file beside `data_dir`.

    The process is forked with its imports done; with the launch `start_interpreter` it starts as users start it.
    """

    command = ("up", "--port", "0", "--data-dir")
    launch: Callable[[Sequence[str], Mapping[str, str], Path], Launched] = Forked

    def __init__(self, data_dir: Path, *arguments: str, **environment: str) -> None:
        self.data_dir = data_dir
        self._arguments = (*self.command, str(data_dir), *arguments)
        self._environment = environment
        self._process: Launched | None = None
        self.base = ""
        self.lines: list[str] = []
        """Its output until it was ready."""

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def log(self) -> Path:
        return self.data_dir.parent / f"{self.data_dir.name}.log"

    def start(self) -> Self:
        """Returns when it has said that it is ready."""
        self.log.touch()
        self._process = self.launch(self._arguments, {**os.environ, **self._environment}, self.log)
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.lines.append(line)
            if line.startswith("Horai is ready: "):
                self.base = line.removeprefix("Horai is ready: ").strip()
                return self
        raise AssertionError(f"horai ended with {self._process.wait()}")

    def kill(self) -> None:
        """kill -9."""
        assert self._process is not None
        self._process.kill()
        self._end()

    def stop(self) -> int:
        """SIGTERM; its exit code."""
        assert self._process is not None
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
        return self._end()

    def _end(self) -> int:
        assert self._process is not None
        assert self._process.stdout is not None
        try:
            return self._process.wait(timeout=60)
        finally:
            self._process.stdout.close()


class NodeProcess(HoraiProcess):
    """`horai node` on the database of `url`; `base` is its address, or what it calls itself without one."""

    def __init__(self, place: Path, url: str, *arguments: str, **environment: str) -> None:
        super().__init__(place, *arguments, **environment)
        self._arguments = ("node", "--port", "0", "--name", place.name, *arguments)
        self._environment = {"HORAI_DATABASE_URL": url, **environment}

    def signal(self, number: signal.Signals) -> None:
        """SIGSTOP, SIGCONT."""
        os.kill(self.pid, number)
