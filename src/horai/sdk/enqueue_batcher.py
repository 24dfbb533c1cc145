"""The instances of many callers in one statement.

A caller that arrives while no statement is under way is served at once. Callers that arrive during a statement share
the next one. So a lone caller waits for one round trip, and a thousand callers at once cost a few.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime

import asyncpg

from horai.core.errors import DatabaseUnavailable, NotFound
from horai.db.claims import Claimable
from horai.db.instances import Unkeyed
from horai.db.pool import GONE, unavailable
from horai.db.stage_connection import StageConnection
from horai.db.wakeups import Wakeups
from horai.engine.dispatch.births import Births, unclaimed
from horai.operations.enqueue import enqueue_within, require_known

AT_ONCE = 1_000


@dataclass(slots=True, eq=False)
class _Insert:
    at: datetime | None
    payload: str | None
    made: "asyncio.Future[int]" = field(default_factory=lambda: asyncio.get_running_loop().create_future())


class EnqueueBatcher:
    """Adds the instances without a key of this process, on a connection of its own.

    If the worker of this process has room, `births` claims those that are due now as it inserts them.
    """

    def __init__(
        self,
        line: StageConnection,
        wakeups: Wakeups,
        tenant_id: int,
        births: Callable[[], Births | None] = lambda: None,
    ) -> None:
        self._line = line
        self._births = births
        self._using = asyncio.Lock()
        self._wakeups = wakeups
        self._tenant_id = tenant_id
        self._waiting: defaultdict[str, list[_Insert]] = defaultdict(list)
        self._writing: asyncio.Task[None] | None = None
        self._is_busy = False

    async def add(self, job: str, at: datetime | None, payload: str | None) -> int:
        """Add an instance and return its id. The instance is durable when this returns."""
        if not self._is_busy:
            return await self._add_alone(job, (at, payload))
        wish = _Insert(at, payload)
        self._waiting[job].append(wish)
        return await wish.made

    async def _add_alone(self, job: str, item: Unkeyed) -> int:
        """Add one instance while no statement is under way, then start writing those that arrived meanwhile."""
        self._is_busy = True
        try:
            (made,) = await self._insert(job, [item])
        finally:
            self._writing = asyncio.create_task(self._write_all()) if self._waiting else None
            self._is_busy = self._writing is not None
        return made

    async def _write_all(self) -> None:
        """Write the waiting instances, up to `AT_ONCE` of one job per statement, job after job in turn."""
        try:
            while self._waiting:
                job, wishes = next(iter(self._waiting.items()))
                del self._waiting[job]
                if rest := wishes[AT_ONCE:]:
                    self._waiting[job] = rest
                await self._write(job, [wish for wish in wishes[:AT_ONCE] if not wish.made.done()])
        finally:
            self._writing, self._is_busy = None, False

    async def _write(self, job: str, batch: Sequence[_Insert]) -> None:
        if not batch:
            return
        try:
            made = await self._insert(job, [(wish.at, wish.payload) for wish in batch])
        except Exception as error:
            if len(batch) > 1 and not isinstance(error, WHOLE):  # perhaps one of them is to blame
                for wish in batch:
                    await self._write(job, [wish])
                return
            for wish in batch:
                _refuse(wish, error)
            return
        for wish, made_id in zip(batch, made, strict=True):
            if not wish.made.done():
                wish.made.set_result(made_id)

    async def add_now(self, job: str, payloads: Sequence[str | None]) -> list[int] | None:
        """Add instances that are due now, all or none, in one statement that claims them. Return None without room."""
        if not self._room_for(job):
            return None
        return await self._insert(job, [(None, payload) for payload in payloads])

    def _room_for(self, job: str) -> int:
        births = self._births()
        return 0 if births is None else births.room_for(self._tenant_id, job)

    async def _insert(self, job: str, items: Sequence[Unkeyed]) -> list[int]:
        """Insert the items in one statement, and wake the processes that may claim them."""
        async with self._using:
            made, waiting = await self._written(job, items)
        self._wakeups.announce(waiting)
        if self._wakeups.on_made is not None:
            self._wakeups.on_made(made)
        return made

    async def _written(self, job: str, items: Sequence[Unkeyed]) -> tuple[list[int], list[Claimable]]:
        """Return the ids of the new instances, and those of them that wait to be claimed."""
        try:
            connection, births = await self._line.get(), self._births()
            room = self._room_for(job) if all(at is None for at, _ in items) else 0
            if births is not None and room:
                born = await births.insert(connection, job, [payload for _, payload in items], room)
                await require_known(connection, self._tenant_id, job, born)
                return [row.id for row in born], unclaimed(born)
            waiting = await enqueue_within(connection, self._tenant_id, job, items)
            if births is not None:
                births.note_lane(job, waiting[0].lane)
            return [row.id for row in waiting], waiting
        except GONE as error:  # the outcome is unknown: a caller that retries may add it twice
            self._line.drop()
            raise unavailable(error) from error
        except asyncpg.PostgresError as error:
            if isinstance(error, NOT_A_ROW):
                self._line.drop()
                raise unavailable(error) from error
            raise

    async def close(self) -> None:
        """Wait until all instances are written, then close the connection."""
        if self._writing is not None:
            with suppress(Exception):
                await self._writing
        await self._line.close()


WHOLE = (NotFound, DatabaseUnavailable)
"""Errors that concern every instance of a batch. A quota may have room for some of them."""
NOT_A_ROW = (
    asyncpg.QueryCanceledError,
    asyncpg.LockNotAvailableError,
    asyncpg.InsufficientResourcesError,
    asyncpg.ReadOnlySQLTransactionError,
    asyncpg.OperatorInterventionError,
)
"""Errors that no single row causes: the batch is not retried row by row."""


def _refuse(wish: _Insert, error: Exception) -> None:
    if not wish.made.done():
        wish.made.set_exception(error)
