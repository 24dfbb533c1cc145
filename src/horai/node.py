"""One node process of Horai: it wires database, engine and API together from its settings, and stops them in order."""

import asyncio
import contextlib
import ipaddress
import os
import socket
import time
from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import structlog
import uvicorn

from horai.api.context import Context
from horai.api.protocol import LimitedProtocol
from horai.app import create_app
from horai.core.addresses import AddressPolicy
from horai.core.health import EngineHealth
from horai.core.settings import EngineSettings, ServerLimits
from horai.core.shards import EVERY_ROLE, Role
from horai.db import jobs
from horai.db.pool import Pool, acquire
from horai.db.wakeups import Wakeups
from horai.db.watch import watched
from horai.embedded import EmbeddedPostgres, EmbeddedSettings
from horai.engine.dispatch.attempts import Executor
from horai.engine.executors.http import HttpExecutor
from horai.features.parts import ExecutorParts, executors_of
from horai.features.registry import FEATURES, JOB_HOOKS
from horai.process import StartError, pool, prepare, until_stopped
from horai.stages import Engine

log = structlog.get_logger(__name__)

KEYLESS = "No key has been created: everyone on this machine may use this server as the tenant `default`."


@dataclass(frozen=True, slots=True)
class NodeSettings:
    """The address and the database of a node. Without a URL the node runs its own PostgreSQL under `data_dir`."""

    data_dir: Path
    host: str = "127.0.0.1"
    port: int = 8470
    database_url: str | None = None
    name: str = field(default_factory=socket.gethostname)
    engine: EngineSettings = field(default_factory=EngineSettings)
    roles: frozenset[Role] = EVERY_ROLE
    limits: ServerLimits = field(default_factory=ServerLimits)
    sources: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """URLs of the databases that reconcilers may read, by the names that the operator gave them."""


class ChildProcesses(Protocol):
    """Further processes on the same database, which start and stop with this one."""

    def start(self, url: str) -> None:
        """Start the processes: the database is ready."""
        ...

    def dismiss(self) -> None:
        """Ask the processes to stop."""
        ...

    async def end(self) -> None:
        """Wait until the processes have stopped: the database stops next."""
        ...


async def run(
    settings: NodeSettings, stop: asyncio.Event, ready: Callable[[str], None], company: ChildProcesses | None = None
) -> None:
    """Serve until `stop` is set.

    `ready` is called with the address once requests are answered, or with the name of a node without an API.
    """
    async with AsyncExitStack() as stack:
        listening = stack.enter_context(_listen(settings.host, settings.port)) if Role.api in settings.roles else None
        url = await stack.enter_async_context(_database(settings))
        if company is not None:
            stack.push_async_callback(company.end)
        await stack.enter_async_context(watched(url))
        vitals, wakeups = EngineHealth(), Wakeups()
        connections = await stack.enter_async_context(pool(url, "horai api", settings.engine.idle_in_transaction))
        parts = ExecutorParts(connections, wakeups, settings.engine, settings.sources)
        builtin = await stack.enter_async_context(executors_of(FEATURES, parts))
        engine = await stack.enter_async_context(_engine(url, settings, wakeups, vitals, builtin))
        server = None
        if listening is not None:
            tenant, sources = await _tenant(connections), frozenset(settings.sources)
            context = Context(connections, wakeups, vitals, tenant, "default", JOB_HOOKS, (KEYLESS,), sources)
            server = await stack.enter_async_context(_server(context, listening, settings.limits))
        ready(_address(listening) if listening is not None else _description(settings))
        if company is not None:
            company.start(url)
            stack.callback(company.dismiss)
        await until_stopped(stop, engine, server)


@contextmanager
def _listen(host: str, port: int) -> Generator[socket.socket]:
    """Open the port before anything else: a second Horai fails here, before it touches the database."""
    _require_loopback(host)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listening = socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        raise StartError(
            f"Cannot listen on {host}:{port}: {_reason(error)}.", "Is another Horai running? Choose another --port."
        ) from error
    with listening:
        yield listening


def _reason(error: OSError) -> str:
    return os.strerror(error.errno) if error.errno else str(error)


def _require_loopback(host: str) -> None:
    with contextlib.suppress(ValueError):
        if ipaddress.ip_address(host).is_loopback:
            return
    if host != "localhost":
        raise StartError(
            f"Refusing to listen on {host} without a key: any client that can reach it could use it.",
            "Listen on 127.0.0.1; keys come with a later version.",
        )


@asynccontextmanager
async def _database(settings: NodeSettings) -> AsyncGenerator[str]:
    """Provide a migrated database: the given one, or an embedded one that is watched and restarted."""
    if settings.database_url is not None:
        await prepare(settings.database_url, settings.engine)
        yield settings.database_url
        return
    postgres = EmbeddedPostgres(EmbeddedSettings(settings.data_dir))
    await postgres.start()
    try:
        await prepare(postgres.url, settings.engine)
        watch = asyncio.create_task(postgres.watch())
        try:
            yield postgres.url
        finally:
            watch.cancel()
            await asyncio.gather(watch, return_exceptions=True)
    finally:
        await postgres.stop()


@asynccontextmanager
async def _engine(
    url: str, settings: NodeSettings, wakeups: Wakeups, vitals: EngineHealth, builtin: Mapping[str, Executor]
) -> AsyncGenerator[Engine]:
    """Run an engine. `builtin` are the executors of features, by handler."""
    http = HttpExecutor(
        AddressPolicy(settings.engine.callback_allow),
        per_host=settings.engine.per_host,
        is_held=lambda call: vitals.holds_lease(time.monotonic()) and call.node == vitals.incarnation,
    )
    await http.open()
    engine = Engine(url, settings.name, {"": http, **builtin}, wakeups, vitals, settings.engine, settings.roles)
    await engine.start()
    try:
        yield engine
    finally:
        await engine.stop()
        await http.close()


async def _tenant(pool: Pool) -> int:
    async with acquire(pool) as connection:
        tenant = await jobs.tenant_id(connection, "default")
    if tenant is None:
        raise StartError("The tenant `default` is missing from the database.")
    return tenant


class _Server(uvicorn.Server):
    """A server that signals when it serves, and leaves process signals to the node."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.serves = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.serves.set()

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


@asynccontextmanager
async def _server(
    context: Context, listening: socket.socket, limits: ServerLimits | None = None
) -> AsyncGenerator["asyncio.Task[None]"]:
    app = create_app(context, limits)
    config = uvicorn.Config(
        app,
        http=LimitedProtocol,
        ws="none",
        proxy_headers=False,
        loop="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=5,
    )
    server = _Server(config)
    serving = asyncio.create_task(server.serve(sockets=[listening]))
    await server.serves.wait()
    try:
        yield serving
    finally:
        for close in app.state.closing:  # an endless answer would delay the stop
            close()
        server.should_exit = True
        await asyncio.gather(serving, return_exceptions=True)
        app.state.door.tally.close()


def _address(listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _description(settings: NodeSettings) -> str:
    return f"node {settings.name} ({', '.join(role for role in Role if role in settings.roles)})"
