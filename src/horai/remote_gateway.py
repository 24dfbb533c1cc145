"""The engine that claims for the remote workers of a server. It runs while workers are connected.

It is the engine of a worker whose functions run elsewhere: one set of connections and one claiming loop for all sessions.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace

import structlog

from horai.core.calls import Call
from horai.core.health import EngineHealth, health_over
from horai.core.settings import EngineSettings
from horai.core.shards import Role
from horai.db.wakeups import Wakeups
from horai.engine.dispatch.in_flight import SlotOwner
from horai.features.remote_workers.hub import RESTART, WorkerHub
from horai.features.remote_workers.session_limits import SessionLimits
from horai.operations.traces import Traces
from horai.stages import Engine
from horai.wire.worker_messages import Drain

log = structlog.get_logger(__name__)

BATCH, IN_HAND = 2_000, 8_000
"""The most instances in one statement and in flight."""
TICK = 0.2
IDLE = 30.0
"""Seconds without a session after which the engine stops."""


class RemoteGateway:
    """Starts the engine with the first session and stops it after the last one."""

    def __init__(self, url: str, name: str, settings: EngineSettings, hub: WorkerHub, traces: Traces | None) -> None:
        self._url = url
        self._name = f"{name}-remote"
        self._settings = replace(settings, claim_batch=BATCH, settle_batch=BATCH, in_flight=IN_HAND)
        self._hub = hub
        self._traces = traces
        self._engine: Engine | None = None
        self._ticking: asyncio.Task[None] | None = None
        self._changing = asyncio.Lock()

    async def ensure(self) -> None:
        """Start the engine unless it runs."""
        async with self._changing:
            if self._engine is None:
                await self._start()

    async def _start(self) -> None:
        hub, health = self._hub, health_over(self._settings.figure_window)
        engine = Engine(
            self._url,
            self._name,
            hub.executors,
            Wakeups(),
            health,
            self._settings,
            frozenset({Role.worker}),
            hub,
            hub.book,
            hub.alone,
            self._traces,
        )
        engine.on_settled = hub.settled
        engine.claim_revoker.listen(hub.claim_over)
        await engine.start()
        self._engine, hub.link = engine, _Link(engine)
        self._ticking = asyncio.create_task(self._tick(engine, health), name="remote workers")

    async def _tick(self, engine: Engine, health: EngineHealth) -> None:
        """Watch the sessions and the engine. Stop the engine when no session is left for `IDLE`, or a loop of it has ended."""
        hub, loop = self._hub, asyncio.get_running_loop()
        watched = asyncio.create_task(engine.watch())
        used_at = loop.time()
        try:
            while not watched.done() and loop.time() - used_at < IDLE:
                await asyncio.wait({watched}, timeout=TICK)
                hub.tick()
                health.handlers, health.slots = tuple(sorted(hub.book.names)), hub.slots
                used_at = loop.time() if hub.sessions else used_at
            has_failed = watched.done()
        finally:
            watched.cancel()
            results = await asyncio.gather(watched, return_exceptions=True)
        if has_failed:
            log.error("the engine of remote workers has failed", error=repr(results[0]))
            hub.close_all(RESTART, "the engine of the server has failed")
        async with self._changing:
            if hub.sessions:  # a worker has connected meanwhile
                self._ticking = asyncio.create_task(self._tick(engine, health), name="remote workers")
                return
            self._engine = hub.link = self._ticking = None
            await engine.stop()
            hub.forget_reports()

    async def stop(self) -> None:
        """Tell the workers that the server stops, take their reports within the grace period, and close the connections."""
        hub = self._hub
        hub.drain(Drain(self._settings.grace.total_seconds()))
        async with self._changing:
            if self._ticking is not None:
                self._ticking.cancel()
                await asyncio.gather(self._ticking, return_exceptions=True)
            if self._engine is not None:
                await self._engine.stop()
                self._engine = hub.link = None
        hub.close_all(RESTART, "the server stops")


class _Link:
    """The engine as the hub uses it."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def owner_of(self, instance_id: int, fence: int) -> SlotOwner | None:
        return self._engine.owner_of(instance_id, fence)

    def make_room(self) -> None:
        self._engine.make_room()

    def relearn(self) -> None:
        self._engine.relearn()

    def note(self, call: Call, progress: float | None, message: str | None) -> None:
        self._engine.progress_writer.note(call, progress, message)


@asynccontextmanager
async def gateway_of(
    url: str, name: str, settings: EngineSettings, session_limits: SessionLimits, hub: WorkerHub, traces: Traces | None
) -> AsyncGenerator[None]:
    """Serve remote workers until the server stops."""
    gateway = RemoteGateway(url, name, settings, hub, traces)
    session_limits.start_engine, hub.lease = gateway.ensure, settings.lease.total_seconds()
    try:
        yield
    finally:
        session_limits.start_engine = None
        await gateway.stop()
