"""Keeps this node's lease: a thread and a connection of its own, so that a busy event loop misses no heartbeat.

The node trusts its lease for less time than the database does, counted from when the renewal was *sent*. A node that
has been fenced takes a new incarnation; what the old one held is rescued like anybody's.
"""

import asyncio
import os
import socket
import threading
import time
from datetime import timedelta

import structlog

from horai import __version__
from horai.core.vitals import Vitals
from horai.db import nodes
from horai.db.clock import DatabaseClock
from horai.db.line import Line

log = structlog.get_logger(__name__)

TRUST = 0.75
"""The share of the lease for which the node trusts it."""


class Keeper:
    """The node's incarnation and its right to claim."""

    def __init__(self, url: str, name: str, lease: timedelta, clock: DatabaseClock, vitals: Vitals) -> None:
        self._line = Line(url, "horai keeper", lease / 3)  # an answer that takes longer is as good as none
        self._name = name
        self._lease = lease
        self._clock = clock
        self._vitals = vitals
        self._incarnation = 0
        self._stop = threading.Event()
        self._registered = threading.Event()
        self._thread = threading.Thread(target=self._work, name="horai-keeper", daemon=True)

    @property
    def incarnation(self) -> int:
        """Changes when the node was fenced: claims remember the one they were made under."""
        return self._incarnation

    def holds(self) -> bool:
        """Whether this node may claim."""
        return self._vitals.holds_lease(time.monotonic())

    async def start(self) -> None:
        """Returns when the node is registered and its lease is being kept."""
        self._thread.start()
        await asyncio.to_thread(self._registered.wait)

    async def stop(self) -> None:
        """Gives the lease back: the node claims nothing from here on."""
        self._vitals.trusted_until = 0.0
        self._stop.set()
        await asyncio.to_thread(self._thread.join)

    def _work(self) -> None:
        asyncio.run(self._keep())

    async def _keep(self) -> None:
        pause = self._lease.total_seconds() / 3
        while not self._stop.is_set():
            try:
                await self._beat()
                wait = pause
            except Exception as error:
                self._line.drop()
                wait = min(pause, 0.2)
                log.warning("lease not renewed", node=self._name, error=repr(error))
            await asyncio.to_thread(self._stop.wait, wait)
        await self._resign()

    async def _beat(self) -> None:
        sent = time.monotonic()
        connection = await self._line.get()
        now = await nodes.renew_node(connection, self._incarnation, self._lease) if self._incarnation else None
        if now is None:
            if self._incarnation:
                log.warning("fenced: taking a new incarnation", node=self._name, incarnation=self._incarnation)
            self._incarnation, now = await nodes.register_node(
                connection, self._name, socket.gethostname(), os.getpid(), __version__, self._lease
            )
        self._clock.observe(now)
        self._vitals.trusted_until = sent + self._lease.total_seconds() * TRUST
        self._registered.set()

    async def _resign(self) -> None:
        try:
            await nodes.stop_node(await self._line.get(), self._incarnation)
        except Exception as error:
            log.warning("lease not given back", node=self._name, error=repr(error))
        await self._line.close()
