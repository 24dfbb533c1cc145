"""One node process of Horai: its API beside its engine."""

import asyncio
import contextlib
import ipaddress
import os
import socket
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from functools import partial

import uvicorn

from horai import engine_node
from horai.api.context import Context
from horai.api.protocol import LimitedProtocol
from horai.app import create_app
from horai.core.health import EngineHealth
from horai.core.settings import ServerLimits
from horai.core.shards import Role
from horai.db import jobs
from horai.db.pool import Pool, acquire
from horai.db.wakeups import Wakeups
from horai.engine_node import ChildProcesses, NodeSettings
from horai.features.registry import JOB_HOOKS
from horai.process import StartError

KEYLESS = "No key has been created: everyone on this machine may use this server as the tenant `default`."


async def run(
    settings: NodeSettings, stop: asyncio.Event, ready: Callable[[str], None], children: ChildProcesses | None = None
) -> None:
    """Serve until `stop` is set.

    `ready` is called with the address once requests are answered, or with the name of a node without an API.
    """
    if Role.api not in settings.roles:
        return await engine_node.run(settings, stop, ready, children)
    with _listen(settings.host, settings.port) as listening:
        return await engine_node.run(
            settings, stop, lambda _: ready(_address(listening)), children, partial(_api, settings, listening)
        )


@asynccontextmanager
async def _api(
    settings: NodeSettings, listening: socket.socket, connections: Pool, wakeups: Wakeups, health: EngineHealth
) -> AsyncGenerator["asyncio.Task[None]"]:
    tenant, sources = await _tenant(connections), frozenset(settings.sources)
    key_file = settings.engine.audit_key_file
    context = Context(connections, wakeups, health, tenant, "default", JOB_HOOKS, (KEYLESS,), sources, key_file)
    async with _server(context, listening, settings.limits) as serving:
        yield serving


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
