"""One node process of Horai: its API beside its engine."""

import asyncio
import contextlib
import ipaddress
import os
import socket
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from functools import partial

import structlog
import uvicorn
from fastapi import FastAPI

from horai import engine_node
from horai.api.context import Context
from horai.api.hosts import HostRules
from horai.api.protocol import LimitedProtocol
from horai.api.routes.health import KEYLESS, SINGLE_ROLE
from horai.api.socket_protocol import WorkerSocketProtocol
from horai.app import create_app
from horai.core.addresses import AddressPolicy
from horai.core.health import EngineHealth
from horai.core.settings import ReplicaSettings, ServerAccess
from horai.core.shards import Role
from horai.db import access, jobs
from horai.db.isolation import is_isolated
from horai.db.pool import Pool, acquire
from horai.db.replicas import ReadReplicas, opened_replicas
from horai.db.standby import OtherDatabase
from horai.db.urls import BadUrl
from horai.db.wakeups import Wakeups
from horai.engine_node import ChildProcesses, NodeSettings
from horai.features.access.service import first_keys
from horai.features.registry import JOB_HOOKS
from horai.operations.archive_place import ArchiveStore, store_of
from horai.operations.keyring import keyring_of
from horai.operations.loop_time import LoopTime
from horai.operations.nats_brokers import nats_brokers
from horai.operations.traces import Traces
from horai.process import StartError
from horai.remote_gateway import gateway_of

log = structlog.get_logger(__name__)

GRACE = 5.0
"""Seconds that requests under way have to be answered when the node stops."""
LOOK_EVERY = 0.005
READ_HINT = "Give the URL of a streaming standby of the database that --database-url names."


async def run(
    settings: NodeSettings, stop: asyncio.Event, ready: Callable[[str], None], children: ChildProcesses | None = None
) -> None:
    """Serve until `stop` is set.

    `ready` is called with the address once requests are answered, or with the name of a node without an API.
    """
    if Role.api not in settings.roles:
        return await engine_node.run(settings, stop, ready, children)
    _require_safe(settings.host, settings.access)
    with _listen(settings.host, settings.port) as listening:
        address = _address(listening, settings.access)
        return await engine_node.run(
            settings, stop, lambda _: ready(address), children, partial(_api, settings, listening)
        )


@asynccontextmanager
async def _api(
    settings: NodeSettings,
    listening: socket.socket,
    url: str,
    connections: Pool,
    wakeups: Wakeups,
    health: EngineHealth,
    loop_time: LoopTime,
    traces: Traces | None,
) -> AsyncGenerator["asyncio.Task[None]"]:
    tenant, sources = await _tenant(connections), frozenset(settings.sources)
    key_file = settings.engine.audit_key_file
    async with acquire(connections) as connection:
        has_walls = await is_isolated(connection)
    if not has_walls:
        log.warning(SINGLE_ROLE, hint="`horai migrate --admin-url URL` creates the roles.")
    keyring = keyring_of(settings.engine).forget_when_erased(wakeups)
    brokers = frozenset(settings.engine.brokers)
    await _require_key(connections, settings)
    async with _archive(settings) as archive, _replicas(settings.replica, connections, health) as replicas:
        context = Context(
            connections,
            wakeups,
            health,
            tenant,
            "default",
            JOB_HOOKS,
            sources,
            key_file,
            has_walls,
            keyring,
            loop_time,
            brokers,
            frozenset(nats_brokers(settings.engine.brokers)),
            traces,
            AddressPolicy(settings.engine.callback_allow),
            settings.access.public_url,
            archive,
            replicas,
        )
        async with _server(context, listening, settings) as (app, serving):
            if not await app.state.authenticator.is_keyed():
                log.warning(KEYLESS)
            of_workers = (app.state.session_limits, app.state.workers)
            async with gateway_of(url, settings.name, settings.engine, *of_workers, traces):
                yield serving


@asynccontextmanager
async def _archive(settings: NodeSettings) -> AsyncGenerator[ArchiveStore | None]:
    """Open the archive of a server that has one, and close it at the end."""
    archive = store_of(settings.engine)
    try:
        yield archive
    finally:
        if archive is not None:
            await archive.close()


@asynccontextmanager
async def _replicas(
    settings: ReplicaSettings | None, connections: Pool, health: EngineHealth
) -> AsyncGenerator[ReadReplicas | None]:
    """Open the standbys that answer lists. Raises `StartError` if one of them is no copy of the database."""
    if settings is None:
        yield None
        return
    async with AsyncExitStack() as stack:
        try:
            opened = opened_replicas(settings, connections, lambda: health.incarnation)
            replicas = await stack.enter_async_context(opened)
        except (OtherDatabase, BadUrl) as error:
            raise StartError(f"--read-database-url: {error}.", READ_HINT) from error
        yield replicas


async def _require_key(connections: Pool, settings: NodeSettings) -> None:
    """Create the first keys if `--require-key` asks for them. Raise `StartError` if a network could reach an open server."""
    async with acquire(connections) as connection:
        if await access.is_keyed(connection):
            return
        if settings.access.requires_key:
            for key in await first_keys(connection):
                print(f"Key of the {key.row.role}{_of(key.row.tenant)}, shown only now: {key.text}", flush=True)
        elif settings.access.oidc is not None:
            raise StartError(
                "Refusing to serve --oidc-issuer without a key: every client could do everything without signing in.",
                "Add --require-key, which creates the first keys and prints them once.",
            )
        elif not _is_loopback(settings.host):
            raise StartError(
                f"Refusing to listen on {settings.host} without a key: any client that can reach it could use it.",
                "Add --require-key, which creates the first keys and prints them once.",
            )


def _of(tenant: str | None) -> str:
    return "" if tenant is None else f" of the tenant {tenant}"


@contextmanager
def _listen(host: str, port: int) -> Generator[socket.socket]:
    """Open the port before anything else: a second Horai fails here, before it touches the database."""
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


def _require_safe(host: str, reached: ServerAccess) -> None:
    """Raise `StartError` if keys would travel over a network in clear text."""
    if _is_loopback(host) or reached.has_tls or reached.trusted_proxies or reached.is_insecure:
        return
    raise StartError(
        f"Refusing to listen on {host} without TLS: the network could read keys and payloads.",
        "Give --tls-cert and --tls-key, or --trusted-proxy for a proxy that ends TLS. --insecure accepts the risk.",
    )


def _is_loopback(host: str) -> bool:
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return host == "localhost"


async def _tenant(pool: Pool) -> int:
    async with acquire(pool) as connection:
        tenant = await jobs.tenant_id(connection, "default")
    if tenant is None:
        raise StartError("The tenant `default` is missing from the database.")
    return tenant


class _Server(uvicorn.Server):
    """A server that signals when it serves, leaves process signals to the node, and stops at once.

    uvicorn asks ten times a second whether to stop, and pauses for 100 ms before it looks for open connections.
    """

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.serves = asyncio.Event()
        self._stops = asyncio.Event()

    def stop(self) -> None:
        """Accept no more connections, and end when the requests under way are answered."""
        self.should_exit = True
        self._stops.set()

    async def main_loop(self) -> None:
        while not await self.on_tick(0):  # renews the date header
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(1.0):
                    await self._stops.wait()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for listener in (*self.servers, *(sockets or ())):
            listener.close()
        for connection in list(self.server_state.connections):
            connection.shutdown()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(GRACE):
                while self.server_state.connections or self.server_state.tasks:  # noqa: ASYNC110 — uvicorn has no event
                    await asyncio.sleep(LOOK_EVERY)
        for task in self.server_state.tasks:
            task.cancel()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.serves.set()

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


@asynccontextmanager
async def _server(
    context: Context, listening: socket.socket, settings: NodeSettings
) -> AsyncGenerator[tuple[FastAPI, "asyncio.Task[None]"]]:
    hosts = HostRules(settings.access, not _is_loopback(settings.host))
    app = create_app(context, settings.limits, hosts)
    config = uvicorn.Config(
        app,
        http=LimitedProtocol,
        ws=WorkerSocketProtocol,
        ws_max_size=settings.limits.worker_message,
        ws_ping_interval=None,
        ws_per_message_deflate=False,
        proxy_headers=False,
        loop="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        ssl_certfile=settings.access.tls_cert,
        ssl_keyfile=settings.access.tls_key,
    )
    server = _Server(config)
    serving = asyncio.create_task(server.serve(sockets=[listening]))
    await server.serves.wait()
    try:
        yield app, serving
    finally:
        for close in app.state.closing:  # an endless answer would delay the stop
            close()
        server.stop()
        await asyncio.gather(serving, return_exceptions=True)
        app.state.door.tally.close()


def _address(listening: socket.socket, reached: ServerAccess) -> str:
    host, port = listening.getsockname()[:2]
    scheme = "https" if reached.has_tls else "http"
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"
