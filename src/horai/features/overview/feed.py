"""A feed that tells readers that data may have changed, at most once a second.

Changes by this process are known from its own wakes and health counters. Changes by other processes are found by one
small statement a second, shared by all readers; without readers none is sent. A message names topics and carries no
data, so that messages which a slow reader has not taken yet merge into one: nothing piles up.

None of these names the tenant of a change. On a server with several tenants, the reader of a tenant would learn when
others are active. So it is told of changes that marks of its own tenant show, and of every topic each `ROUND` seconds,
with or without a change. Readers of the platform are told of all changes.
"""

import asyncio
import secrets
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import structlog

from horai.api.context import Context
from horai.core.errors import TooManyReaders
from horai.core.settings import ServerLimits
from horai.core.wakes import (
    KeysWake,
    LaneWake,
    MoveWaitingWake,
    NodesWake,
    OutcomeWake,
    QueueWake,
    RunsWake,
    ScheduleWake,
)
from horai.db.pool import acquire
from horai.db.wakeups import Wakeups
from horai.features.overview.change_marks import has_several_tenants, pulse, tenant_pulses
from horai.features.overview.topics import EVERY_TOPIC, OF_TENANTS, Pulse, Topic, changed
from horai.text import Hint, Refused
from horai.text.phrase import Phrase

log = structlog.get_logger(__name__)

INTERVAL = 1.0
"""Seconds between two messages, and between two checks of the database."""
ROUND = 5.0
"""Seconds after which readers of one of several tenants are told of every topic of tenants."""


class Reader:
    """One reader of the feed: the topics that it has not been told of yet."""

    def __init__(
        self, pending: Iterable[Topic] = (), address: str = "", tenant_id: int | None = None, *, sees_all: bool = True
    ) -> None:
        self.address = address
        self.tenant_id = tenant_id
        self.sees_all = sees_all
        """True for readers of the platform."""
        self.on_news: Callable[[], None] = lambda: None
        """Called before the reader is told of changes."""
        self._pending = set(pending)
        self._is_over = False
        self._roused = asyncio.Event()
        if self._pending:
            self._roused.set()

    def tell(self, topics: Iterable[Topic]) -> None:
        """Mark topics as possibly changed."""
        self._pending.update(topics)
        self._roused.set()

    def end(self) -> None:
        """End the reader: it gets no further messages."""
        self._is_over = True
        self._roused.set()

    async def news(self, patience: float) -> frozenset[Topic] | None:
        """Return the changed topics, empty after `patience` seconds without a change; None at the end."""
        with suppress(TimeoutError):
            async with asyncio.timeout(patience):
                await self._roused.wait()
        if self._is_over:
            return None
        self._roused.clear()
        told, self._pending = frozenset(self._pending), set[Topic]()
        if told:
            self.on_news()
        return told


@dataclass(frozen=True, slots=True)
class _Marks:
    """The marks of all data, and those of the tenants that have readers of their own."""

    of_all: Pulse
    of_tenants: Mapping[int, Pulse]


class Feed:
    """All readers, and the one check that they share. Created once, in the process's event loop or before it starts."""

    def __init__(
        self,
        context: Context,
        limits: ServerLimits,
        interval: float = INTERVAL,
        every_round: float | None = None,
    ) -> None:
        self._context = context
        self._limits = limits
        self._interval = interval
        self._every_round = ROUND if every_round is None else every_round
        self._is_shared = True
        """True if the server has several tenants, and until this is known."""
        self._readers: set[Reader] = set()
        self._noted: set[Topic] = set()
        self._is_closed = False
        self._watching: asyncio.Task[None] | None = None
        self._signal = asyncio.Event()
        self._boot = secrets.token_hex(4)
        self._counts: defaultdict[int | None, int] = defaultdict(int)
        self.looks = 0
        self._listen(context.wakeups)

    def id_of(self, reader: Reader) -> str:
        """Return the id of the last message: a reader that reconnects with it has missed none."""
        return f"{self._boot}-{self._counts[self._audience(reader)]}"

    def _audience(self, reader: Reader) -> int | None:
        """Return the tenant whose changes the reader is told of; None for all changes."""
        return reader.tenant_id if self._is_shared and not reader.sees_all else None

    def enter(
        self, last_id: str | None, address: str = "", tenant_id: int | None = None, *, sees_all: bool = True
    ) -> Reader:
        """Add a reader. Raise `TooManyReaders` if the limits allow no further one.

        A reader that has seen messages before, but not the last one, is told of every topic: it may have missed any.
        """
        if (refusal := self._refusal(address, tenant_id)) is not None:
            raise TooManyReaders(refusal, Hint.ASK_LATER(), extra={"retryAfter": "5"})
        reader = Reader((), address, tenant_id, sees_all=sees_all)
        if last_id is not None and last_id != self.id_of(reader):
            reader.tell(EVERY_TOPIC)
        self._readers.add(reader)
        if self._watching is None:
            self._noted.clear()
            self._watching = asyncio.create_task(self._watch(), name="feed")
        return reader

    def _refusal(self, address: str, tenant_id: int | None) -> Phrase | None:
        limits = self._limits
        if self._is_closed:
            return Refused.STOPPING()
        if len(self._readers) >= limits.readers:
            return Refused.TOO_MANY_WATCH(most=limits.readers)
        if sum(reader.tenant_id == tenant_id for reader in self._readers) >= limits.readers_per_tenant:
            return Refused.TOO_MANY_WATCH_OF(most=limits.readers_per_tenant)
        if sum(reader.address == address for reader in self._readers) >= limits.readers_per_address:
            return Refused.TOO_MANY_WATCH_FROM(most=limits.readers_per_address)
        return None

    def leave(self, reader: Reader) -> None:
        """Remove a reader; the checks end with the last reader."""
        self._readers.discard(reader)
        if not self._readers and self._watching is not None:
            self._watching.cancel()
            self._watching = None

    def close(self) -> None:
        """End all readers and accept no new ones: the server stops."""
        self._is_closed = True
        self.end_all()

    def end_all(self) -> None:
        """End all readers: a key has changed. Those that still may read connect again at once."""
        for reader in tuple(self._readers):
            reader.end()

    async def _watch(self) -> None:
        before, seen, round_at = await self._look(), self._own(), time.monotonic() + self._every_round
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._interval):
                    await self._signal.wait()
            began = time.monotonic()
            self._signal.clear()
            now, own = await self._look(), self._own()
            topics = frozenset(self._noted) | ({Topic.instances} if own != seen else set[Topic]())
            if now is not None:
                topics |= changed(None if before is None else before.of_all, now.of_all)
                self._tell(None, topics)
                is_round = began >= round_at
                for tenant_id, marks in now.of_tenants.items():
                    known = None if before is None else before.of_tenants.get(tenant_id)
                    self._tell(tenant_id, OF_TENANTS if is_round else changed(known, marks) & OF_TENANTS)
                round_at = began + self._every_round if is_round else round_at
                before, seen = now, own
                self._noted.clear()
            await asyncio.sleep(max(began + self._interval - time.monotonic(), 0.0))

    def _tell(self, audience: int | None, topics: frozenset[Topic]) -> None:
        if topics:
            self._counts[audience] += 1
            for reader in self._readers:
                if self._audience(reader) == audience:
                    reader.tell(topics)

    async def _look(self) -> _Marks | None:
        """Return the marks; None while the database cannot be reached, as no reader could load changes then."""
        self.looks += 1
        try:
            async with acquire(self._context.pool) as connection:
                of_all = await pulse(connection)
                self._is_shared = await has_several_tenants(connection)
                tenants = {self._audience(reader) for reader in self._readers} - {None}
                of_tenants = await tenant_pulses(connection, [one for one in tenants if one is not None])
                return _Marks(of_all, of_tenants)
        except Exception as error:
            log.warning("change detection failed", error=repr(error))
            return None

    def _own(self) -> tuple[int, ...]:
        health = self._context.health
        return health.started, health.settled, health.released_claims

    def _listen(self, wakeups: Wakeups) -> None:
        """Register for each kind of wake the topics that it changes."""
        wakeups.subscribe(LaneWake, self._noting(Topic.instances))
        wakeups.subscribe(OutcomeWake, self._noting(Topic.instances))
        wakeups.subscribe(RunsWake, self._noting(Topic.instances, Topic.workflows))
        wakeups.subscribe(ScheduleWake, self._noting(Topic.jobs))
        wakeups.subscribe(MoveWaitingWake, self._noting(Topic.jobs))
        wakeups.subscribe(QueueWake, self._noting(Topic.queues))
        wakeups.subscribe(NodesWake, self._noting(Topic.nodes))
        wakeups.subscribe(KeysWake, lambda _: self.end_all())

    def _noting(self, *topics: Topic) -> Callable[..., None]:
        def note(*_: Any) -> None:
            if self._readers:
                self._noted.update(topics)
                self._signal.set()

        return note
