"""A node process without its API: it wires database and engine together from its settings, and stops them in order.

A node without the role `api` is all of this and nothing else: it does not wait for the imports of a web server.
"""

import asyncio
import socket
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from horai.core.addresses import AddressPolicy
from horai.core.calls import Call
from horai.core.health import EngineHealth, health_over
from horai.core.settings import EngineSettings, ReplicaSettings, ServerAccess, ServerLimits
from horai.core.shards import EVERY_ROLE, Role
from horai.db.pool import Pool, opened
from horai.db.wakeups import Wakeups
from horai.db.watch import watched
from horai.embedded import EmbeddedPostgres, EmbeddedSettings
from horai.engine.dispatch.attempts import Executor
from horai.engine.executors.http import HttpExecutor
from horai.engine.executors.jetstream import jetstream_executors
from horai.features.audit.signing import key_file_in, make_key
from horai.features.parts import ExecutorParts, executors_of
from horai.features.registry import FEATURES
from horai.operations.keyring import encryption_key_in, make_first_key
from horai.operations.loop_time import LoopTime
from horai.operations.trace_export import opened_traces
from horai.operations.traces import Traces
from horai.process import await_database, pool, prepare, until_stopped
from horai.stages import Engine

ServeApi = Callable[
    [str, Pool, Wakeups, EngineHealth, LoopTime, Traces | None], AbstractAsyncContextManager["asyncio.Task[None]"]
]
"""Serves the API of a node on the database of a URL, in a task that ends with it."""


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
    access: ServerAccess = field(default_factory=ServerAccess)
    sources: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """URLs of the databases that reconcilers may read, by the names that the operator gave them."""
    replica: ReplicaSettings | None = None
    """The standbys that answer lists; None if the primary answers everything."""


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
    settings: NodeSettings,
    stop: asyncio.Event,
    ready: Callable[[str], None],
    children: ChildProcesses | None = None,
    serve_api: ServeApi | None = None,
) -> None:
    """Work until `stop` is set. `ready` is called with the name of the node once it works and its API is served."""
    async with AsyncExitStack() as stack:
        url = await stack.enter_async_context(_database(settings))
        if children is not None:
            stack.push_async_callback(children.end)
        await stack.enter_async_context(watched(url))
        health, wakeups = health_over(settings.engine.figure_window), Wakeups()
        connections = await stack.enter_async_context(pool(url, "horai api", settings.engine.idle_in_transaction))
        await await_database(connections)
        traces = await stack.enter_async_context(opened_traces(settings.engine, connections, wakeups, settings.name))
        parts = ExecutorParts(connections, wakeups, settings.engine, settings.sources)
        builtin = await stack.enter_async_context(executors_of(FEATURES, parts))
        engine = await stack.enter_async_context(_engine(url, settings, wakeups, health, builtin, traces))
        server = None
        if serve_api is not None:
            server = await stack.enter_async_context(
                serve_api(url, connections, wakeups, health, engine.loop_time, traces)
            )
        ready(_description(settings))
        if children is not None:
            children.start(url)
            stack.callback(children.dismiss)
        await until_stopped(stop, engine, server)


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
        if settings.engine.audit_key_file == (own_key := key_file_in(settings.data_dir)):
            make_key(own_key)
        await prepare(postgres.url, settings.engine)
        if settings.engine.encryption_key_file == (own_key := encryption_key_in(settings.data_dir)):
            async with opened(postgres.url, "horai key") as connection:
                await make_first_key(connection, own_key)
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
    url: str,
    settings: NodeSettings,
    wakeups: Wakeups,
    health: EngineHealth,
    builtin: Mapping[str, Executor],
    traces: Traces | None,
) -> AsyncGenerator[Engine]:
    """Run an engine. `builtin` are the executors of features, by handler."""

    def is_held(call: Call) -> bool:
        return health.holds_lease(time.monotonic()) and call.node == health.incarnation

    http = HttpExecutor(
        AddressPolicy(settings.engine.callback_allow), per_host=settings.engine.per_host, is_held=is_held
    )
    http.traces = traces
    await http.open()
    streams = jetstream_executors(settings.engine.brokers, settings.engine.in_flight, is_held)
    executors = {"": http, **streams, **builtin}
    of_engine = replace(settings.engine, public_url=settings.access.public_url)
    engine = Engine(url, settings.name, executors, wakeups, health, of_engine, settings.roles, traces=traces)
    gates, rooms = engine.gates, engine.host_rooms
    for each in (http, *streams.values()):
        each.on_end, each.hold_back, each.on_full = gates.ended, gates.hold_back, gates.filled
    rooms.room_of, gates.on_end = http.room, rooms.ended
    by_host = {each.host: each for each in streams.values()}
    gates.busy_of = lambda host: by_host.get(host, http).busy(host)
    await engine.start()
    try:
        yield engine
    finally:
        await engine.stop()
        for each in (http, *streams.values()):
            await each.close()


def _description(settings: NodeSettings) -> str:
    return f"node {settings.name} ({', '.join(role for role in Role if role in settings.roles)})"
