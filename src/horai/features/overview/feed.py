"""Tells whoever watches that there may be news, once a second at most.

What this process does is told by its own wakes and vitals; what others do is found by one small statement a second, for
all who watch together, and by none while nobody does. A message names topics and carries no data, so that those which a
slow reader has not taken yet are one message in the end: nothing piles up.
"""

import asyncio
import secrets
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

import structlog

from horai.api.context import Context
from horai.core.errors import TooManyReaders
from horai.core.settings import ServerLimits
from horai.db.pool import acquire
from horai.db.wakeups import Wakeups
from horai.features.overview.change_marks import pulse
from horai.features.overview.topics import EVERY_TOPIC, Pulse, Topic, changed
from horai.text import Hint, Refused
from horai.text.phrase import Phrase

log = structlog.get_logger(__name__)

INTERVAL = 1.0
"""Seconds between two messages, and between two looks at the database."""


class Reader:
    """One who watches: the topics that it has not been told of yet."""

    def __init__(self, pending: Iterable[Topic] = (), address: str = "") -> None:
        self.address = address
        self._pending = set(pending)
        self._is_over = False
        self._roused = asyncio.Event()
        if self._pending:
            self._roused.set()

    def tell(self, topics: Iterable[Topic]) -> None:
        """There may be news of these."""
        self._pending.update(topics)
        self._roused.set()

    def end(self) -> None:
        """There will be nothing more."""
        self._is_over = True
        self._roused.set()

    async def news(self, patience: float) -> frozenset[Topic] | None:
        """What there is news of, empty when there was none for `patience` seconds; None at the end."""
        with suppress(TimeoutError):
            async with asyncio.timeout(patience):
                await self._roused.wait()
        if self._is_over:
            return None
        self._roused.clear()
        told, self._pending = frozenset(self._pending), set[Topic]()
        return told


class Feed:
    """All who watch, and the one look that is made for them. Made once, in the process's event loop or before it."""

    def __init__(
        self,
        context: Context,
        limits: ServerLimits,
        interval: float = INTERVAL,
    ) -> None:
        self._context = context
        self._most = limits.readers
        self._per_address = limits.readers_per_address
        self._interval = interval
        self._readers: set[Reader] = set()
        self._noted: set[Topic] = set()
        self._is_closed = False
        self._watching: asyncio.Task[None] | None = None
        self._signal = asyncio.Event()
        self._boot = secrets.token_hex(4)
        self._count = 0
        self.looks = 0
        self._listen(context.wakeups)

    @property
    def id(self) -> str:
        """Of the last message: a reader that comes back with it has missed none."""
        return f"{self._boot}-{self._count}"

    def enter(self, last_id: str | None, address: str = "") -> Reader:
        """One more who watches. One that has seen messages before, and not the last, may have missed anything."""
        if (refusal := self._refusal(address)) is not None:
            raise TooManyReaders(refusal, Hint.ASK_LATER(), extra={"retryAfter": "5"})
        has_missed = last_id is not None and last_id != self.id
        reader = Reader(EVERY_TOPIC if has_missed else (), address)
        self._readers.add(reader)
        if self._watching is None:
            self._noted.clear()
            self._watching = asyncio.create_task(self._watch(), name="feed")
        return reader

    def _refusal(self, address: str) -> Phrase | None:
        if self._is_closed:
            return Refused.STOPPING()
        if len(self._readers) >= self._most:
            return Refused.TOO_MANY_WATCH(most=self._most)
        if sum(reader.address == address for reader in self._readers) >= self._per_address:
            return Refused.TOO_MANY_WATCH_FROM(most=self._per_address)
        return None

    def leave(self, reader: Reader) -> None:
        """One less; with the last one the looks end."""
        self._readers.discard(reader)
        if not self._readers and self._watching is not None:
            self._watching.cancel()
            self._watching = None

    def close(self) -> None:
        """Everybody goes home: the server stops."""
        self._is_closed = True
        for reader in tuple(self._readers):
            reader.end()

    async def _watch(self) -> None:
        before, seen = await self._look(), self._own()
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._interval):
                    await self._signal.wait()
            began = time.monotonic()
            self._signal.clear()
            now, own = await self._look(), self._own()
            topics = frozenset(self._noted) | ({Topic.instances} if own != seen else set[Topic]())
            if now is not None:
                topics |= changed(before, now)
                before, seen = now, own
                self._noted.clear()
                self._tell(topics)
            await asyncio.sleep(max(began + self._interval - time.monotonic(), 0.0))

    def _tell(self, topics: frozenset[Topic]) -> None:
        if topics:
            self._count += 1
            for reader in self._readers:
                reader.tell(topics)

    async def _look(self) -> Pulse | None:
        """None while the database cannot be asked: nobody could look anything up."""
        self.looks += 1
        try:
            async with acquire(self._context.pool) as connection:
                return await pulse(connection)
        except Exception as error:
            log.warning("nobody knows whether there is news", error=repr(error))
            return None

    def _own(self) -> tuple[int, ...]:
        vitals = self._context.vitals
        return vitals.started, vitals.settled, vitals.released_claims

    def _listen(self, wakeups: Wakeups) -> None:
        """Each kind of wake, with what it is news of."""
        wakeups.listen(self._noting(Topic.instances))
        wakeups.listen_to_outcomes(self._noting(Topic.instances))
        wakeups.listen_to_runs(self._noting(Topic.instances, Topic.workflows))
        wakeups.listen_to_schedules(self._noting(Topic.jobs))
        wakeups.listen_to_relanes(self._noting(Topic.jobs))
        wakeups.listen_to_queues(self._noting(Topic.queues))
        wakeups.listen_to_nodes(self._noting(Topic.nodes))

    def _noting(self, *topics: Topic) -> Callable[..., None]:
        def note(*_: Any) -> None:
            if self._readers:
                self._noted.update(topics)
                self._signal.set()

        return note
