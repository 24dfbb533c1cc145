"""The lease of this node and its shards.

A thread with its own connection keeps the lease, so that a busy event loop delays no beat. A beat is one statement. It
renews the node and all its shards, and returns the state of the other nodes. From the result the node decides which
shards to take (free, or the owner has been silent for a lease) and which to give back (another live node should own
them). The result also shows whether live rows may have been added without a wake, and the controls of the governor.

The node trusts its leases for less time than the database does, counted from when the renewal was *sent*, and stops
trusting a shard before it gives it back: no two nodes trust one shard at the same moment. A fenced node takes a new
incarnation; the claims of the old one are rescued like those of any other dead node.
"""

import asyncio
import math
import os
import socket
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial
from typing import Protocol

import structlog

from horai import __version__
from horai.core.change_marks import ChangeDetector
from horai.core.controls import ControlBoard
from horai.core.health import EngineHealth
from horai.core.shards import EVERY_ROLE, Duty, Holding, Peer, Role, next_expiry, rebalance
from horai.db import nodes, shards
from horai.db.clock import DatabaseClock
from horai.db.migrate import newest_known
from horai.db.nodes import Renewal
from horai.db.pool import Platform
from horai.db.stage_connection import StageConnection

log = structlog.get_logger(__name__)

TRUST = 0.75
"""The share of the lease for which the node trusts it."""
AFTER_EXPIRY = 0.005
"""Seconds from the end of another node's lease to the beat that follows it."""
SHORTEST_PAUSE = 0.05
"""Seconds between two beats at least, however many nudges arrive: every client of the database may notify."""
PAUSE_AFTER_ERROR = 0.2
CLOCK_TOLERANCE = timedelta(seconds=2)
"""The database's clock may go back by this much without a report."""
SHARP_CLOCK = 0.001
"""Seconds by which timers may be late because the database's time is not known better."""
SHARPEN_EVERY = 60.0
SHARPEN_TRIES = 3
LONGEST_PAUSE = 2.7
"""Seconds between two beats at most, however long the lease: the next beat finds rows that no wake announced."""


class Lease(Protocol):
    """The part of a node's lease that stages use."""

    @property
    def incarnation(self) -> int:
        """Return the current incarnation. It changes when the node was fenced."""
        ...

    @property
    def trusted_until(self) -> float:
        """Return the monotonic time until which the lease is trusted, as known now."""
        ...

    @property
    def on_change(self) -> list[Callable[[], None]]:
        """Return the listeners that are called when the incarnation or any set of shards has changed."""
        ...

    @property
    def on_lost_node(self) -> list[Callable[[], None]]:
        """Return the listeners that are called when a node was lost and is not rescued yet."""
        ...

    def holds(self) -> bool:
        """Return whether this node may claim."""
        ...

    def shards(self, duty: Duty, /) -> frozenset[int]:
        """Return the shards of a duty that this node owns now."""
        ...


FIRST_SHARD = 0


def leads(lease: Lease) -> bool:
    """Return whether this node does the work that one node does for all: it owns the first trigger shard."""
    return FIRST_SHARD in lease.shards(Duty.trigger)


class NodeLease:
    """The lease of a running node, kept by a thread."""

    def __init__(
        self,
        url: str,
        name: str,
        lease: timedelta,
        clock: DatabaseClock,
        health: EngineHealth,
        roles: frozenset[Role] = EVERY_ROLE,
    ) -> None:
        self.on_change: list[Callable[[], None]] = []
        """Listeners called in the event loop of `start` when the incarnation or any set of shards has changed."""
        self.on_lost_node: list[Callable[[], None]] = []
        """Listeners called there when a beat saw a node that is expired, fenced or stopped, and not rescued yet."""
        self.on_news: list[Callable[[], None]] = []
        """Listeners called there when any process may have added or moved live rows since the last beat."""
        self.on_events: list[Callable[[], None]] = []
        """Listeners called there when any process has written an event since the last beat."""
        self._last_event = 0
        self.controls = ControlBoard()
        """The limits of the governor, as of the last beat."""
        self._news = ChangeDetector()
        self._newest_known = newest_known()
        self._latest: datetime | None = None
        self._sharpened_at = -math.inf
        """The latest time that the database has reported, to this node or to the nodes before it."""
        self._line = StageConnection(url, "horai lease", lease / 3)  # a slower answer would come too late
        self._name = name
        self._lease = lease
        self._clock = clock
        self._health = health
        self._roles = roles
        self._held: dict[Holding, int] = {}  # values: epochs
        self._owned = _by_duty({})  # for other threads: replaced, never changed in place
        self._doubts = 0
        """The number of times that `holds` returned False; counted in the engine's thread only."""
        self._doubts_answered = 0
        self._is_draining = False
        self._is_stopping = False
        self._engine_loop: asyncio.AbstractEventLoop | None = None
        self._own_loop: asyncio.AbstractEventLoop | None = None
        self._nudged = asyncio.Event()
        self._registered = asyncio.Event()
        self._handed_over = asyncio.Event()
        self._thread = threading.Thread(target=self._work, name="horai-lease", daemon=True)

    @property
    def incarnation(self) -> int:
        """Return the current incarnation.

        It changes when the node was fenced; each claim records the one it was made under.
        """
        return self._health.incarnation

    @property
    def trusted_until(self) -> float:
        """Return the monotonic time until which the lease is trusted, as known now."""
        return self._health.trusted_until

    def holds(self) -> bool:
        """Return whether this node may claim. After a False, `on_change` reports when it may claim again."""
        if self._is_trusted():
            return True
        self._doubts += 1
        return False

    def _is_trusted(self) -> bool:
        return not self._is_stopping and self._health.holds_lease(time.monotonic())

    def shards(self, duty: Duty) -> frozenset[int]:
        """Return the shards of a duty that this node owns now; none while its lease is not trusted or it drains."""
        return self._owned[duty] if self.holds() and not self._is_draining else frozenset()

    async def start(self) -> None:
        """Register the node. Return when its lease is kept and it has taken the free shards that it should own."""
        self._engine_loop = asyncio.get_running_loop()
        self._thread.start()
        try:
            await self._registered.wait()
        except BaseException:
            self._is_stopping = True
            self.nudge()
            raise

    async def hand_over(self) -> None:
        """Give every shard back but keep the node's own lease, so that the node can finish its running calls.

        Return when other nodes may take the shards. If the database does not answer, return as soon as the lease is no
        longer trusted: the shards then expire.
        """
        self._is_draining = True
        self.nudge()
        with suppress(TimeoutError):
            async with asyncio.timeout(max(self._health.trusted_until - time.monotonic(), 0.0)):
                await self._handed_over.wait()

    async def stop(self) -> None:
        """Give the lease and the shards back. The node claims nothing from here on."""
        self._is_stopping = True
        self.nudge()
        await asyncio.to_thread(self._thread.join)
        self._health.trusted_until = 0.0

    def nudge(self) -> None:
        """Request a beat now, because another node has joined or left. Any thread may call this."""
        _call_in(self._own_loop, [self._nudged.set])

    def _work(self) -> None:
        asyncio.run(self._keep())

    async def _keep(self) -> None:
        self._own_loop = asyncio.get_running_loop()
        while not self._is_stopping:
            try:
                wait = await self._beat()
            except Exception as error:
                self._line.drop()
                wait = min(self._lease.total_seconds() / 3, PAUSE_AFTER_ERROR)
                log.warning("lease not renewed", node=self._name, error=repr(error))
            await self._pause(wait)
        await self._resign()

    async def _pause(self, seconds: float) -> None:
        """Wait until the next beat is due or a nudge arrives. Nudges within the shortest pause do not end it early."""
        begun = time.monotonic()
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._nudged.wait()
        self._nudged.clear()
        soonest = min(seconds, SHORTEST_PAUSE) - (time.monotonic() - begun)
        if soonest > 0 and not self._is_stopping:
            await asyncio.sleep(soonest)

    async def _beat(self) -> float:
        """Renew the lease, rebalance shards and call listeners. Return the seconds until the next beat."""
        sent, is_draining = time.monotonic(), self._is_draining
        renewal = await self._renew(is_draining)
        if renewal is None:
            await self._register()
            sent = time.monotonic()
            renewal = await self._renew(is_draining)
            if renewal is None:
                raise RuntimeError("fenced as soon as registered")
        self._compare(renewal)
        self._tell([partial(self.controls.apply, renewal.controls)])
        was_held, was_trusted = self._held, self._is_trusted()
        try:
            await self._rebalance(renewal, sent, is_draining)
        finally:
            doubts = self._doubts  # counts a lapse between our check and the renewal, which only other threads saw
            if self._held != was_held or not was_trusted or doubts != self._doubts_answered:
                self._doubts_answered = doubts
                self._tell(self.on_change)
        if any(peer.is_lost for peer in renewal.others):
            self._tell(self.on_lost_node)
        if self._news.is_look_due(renewal.mark):
            self._tell(self.on_news)
        if renewal.last_event != self._last_event:
            self._last_event = renewal.last_event
            self._tell(self.on_events)
        self._tell([self._registered.set, *([self._handed_over.set] if is_draining else [])])
        pause = min(self._lease.total_seconds() / 3, LONGEST_PAUSE)
        expiry = next_expiry(self.incarnation, renewal.others, renewal.leases)
        return pause if expiry is None else min(pause, expiry + AFTER_EXPIRY)

    def _compare(self, renewal: Renewal) -> None:
        """Report in health a schema newer than this version knows, and a database clock that was set back."""
        is_newer = renewal.schema_number > self._newest_known
        if is_newer and not self._health.unknown_schema:
            log.error("the database has a newer schema than this version knows", migration=renewal.schema_number)
        self._health.unknown_schema = renewal.schema_number if is_newer else 0
        self._latest = max(self._latest or renewal.now, renewal.now)
        behind = self._latest - renewal.now
        if behind > CLOCK_TOLERANCE and not self._health.clock_behind:
            log.error("the clock of the database was set back: schedules wait until it catches up", by=str(behind))
        self._health.clock_behind = round(behind.total_seconds()) if behind > CLOCK_TOLERANCE else 0

    async def _renew(self, is_draining: bool) -> Renewal | None:
        if not self.incarnation:
            return None
        told = self._health.reading(time.monotonic()).to_text()
        connection = await self._line.get()
        return await nodes.renew_node(connection, self.incarnation, self._lease, told, is_draining=is_draining)

    async def _register(self) -> None:
        """Take a new incarnation, which holds no shard yet."""
        self._health.trusted_until = 0.0
        self._hold({})
        if self.incarnation:
            log.warning("fenced: taking a new incarnation", node=self._name, incarnation=self.incarnation)
        connection = await self._line.get()
        self._health.incarnation, latest = await nodes.register_node(
            connection, self._name, socket.gethostname(), os.getpid(), __version__, self._lease, self._roles
        )
        self._latest = max(filter(None, (self._latest, latest)), default=None)

    async def _rebalance(self, renewal: Renewal, sent: float, is_draining: bool) -> None:
        """Trust the renewed shards except those to give back, give those back, then take free shards.

        Take only the free shards that this node should own.
        """
        me = Peer(self.incarnation, self._roles, is_draining=is_draining)
        moves = rebalance(me.incarnation, (me, *renewal.others), renewal.leases)
        going = {(lease.duty, lease.shard) for lease in moves.give}
        staying = renewal.kept - going
        self._hold({place: lease.epoch for lease in renewal.leases if (place := (lease.duty, lease.shard)) in staying})
        self._clock.observe(renewal.now, sent)
        self._health.trusted_until = sent + self._lease.total_seconds() * TRUST
        self._health.renewed_at = sent
        connection = await self._line.get()
        if moves.give:
            await shards.give_back_shards(connection, me.incarnation, moves.give)
        if moves.take:
            self._hold(self._held | await shards.take_shards(connection, me.incarnation, moves.take))
        await self._sharpen_clock(connection)
        if moves.give or moves.take:
            log.info("shards changed hands", node=self._name, given=len(moves.give), held=len(self._held))

    async def _sharpen_clock(self, connection: Platform) -> None:
        """Ask for the time alone if it is not known well: the answer of a renewal waits for its commit."""
        if self._clock.width <= SHARP_CLOCK or time.monotonic() < self._sharpened_at + SHARPEN_EVERY:
            return
        self._sharpened_at = time.monotonic()
        for _ in range(SHARPEN_TRIES):
            await self._clock.ask(connection)
            if self._clock.width <= SHARP_CLOCK:
                return

    def _hold(self, held: dict[Holding, int]) -> None:
        self._held, self._owned = held, _by_duty(held)

    async def _resign(self) -> None:
        try:
            await nodes.stop_node(await self._line.get(), self.incarnation)
        except Exception as error:
            log.warning("lease not given back", node=self._name, error=repr(error))
        await self._line.close()

    def _tell(self, listeners: Iterable[Callable[[], None]]) -> None:
        _call_in(self._engine_loop, listeners)


def _by_duty(held: Iterable[Holding]) -> dict[Duty, frozenset[int]]:
    places = tuple(held)
    return {duty: frozenset(shard for each, shard in places if each is duty) for duty in Duty}


def _call_in(loop: asyncio.AbstractEventLoop | None, listeners: Iterable[Callable[[], None]]) -> None:
    """Call the listeners in another thread's loop. Skip them if that loop has not started or has ended."""
    if loop is None:
        return
    with suppress(RuntimeError):
        for listener in tuple(listeners):
            loop.call_soon_threadsafe(listener)
