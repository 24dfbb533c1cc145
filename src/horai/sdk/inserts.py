"""Many callers' instances in one statement.

Whoever comes while nothing is under way is served at once; whoever comes meanwhile goes with the next statement, all of
them together. So a lone caller waits for one round trip, and a thousand at once cost a few.
"""

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime

import asyncpg

from horai.accept.enqueues import enqueue_within
from horai.core.errors import HoraiError
from horai.db.claims import Woken
from horai.db.line import Line
from horai.db.pool import GONE, unavailable
from horai.db.wakeups import Wakeups

AT_ONCE = 1_000


@dataclass(slots=True, eq=False)
class _Wish:
    at: datetime | None
    payload: str | None
    made: "asyncio.Future[int]" = field(default_factory=lambda: asyncio.get_running_loop().create_future())


class Inserts:
    """The instances without a key that this process adds, on a connection of their own."""

    def __init__(self, line: Line, wakeups: Wakeups, tenant_id: int) -> None:
        self._line = line
        self._wakeups = wakeups
        self._tenant_id = tenant_id
        self._waiting: defaultdict[str, list[_Wish]] = defaultdict(list)
        self._writing: asyncio.Task[None] | None = None

    async def add(self, job: str, at: datetime | None, payload: str | None) -> int:
        """The id of a new instance, durable when it returns."""
        wish = _Wish(at, payload)
        self._waiting[job].append(wish)
        if self._writing is None:
            self._writing = asyncio.create_task(self._write_all())
        return await wish.made

    async def _write_all(self) -> None:
        try:
            while self._waiting:
                job, wishes = next(iter(self._waiting.items()))
                self._waiting[job], batch = wishes[AT_ONCE:], wishes[:AT_ONCE]
                if not self._waiting[job]:
                    del self._waiting[job]
                await self._write(job, [wish for wish in batch if not wish.made.done()])
        finally:
            self._writing = None

    async def _write(self, job: str, batch: Sequence[_Wish]) -> None:
        if not batch:
            return
        try:
            made = await self._insert(job, batch)
        except Exception as error:
            if len(batch) > 1 and not isinstance(error, HoraiError):  # perhaps one of them is to blame
                for wish in batch:
                    await self._write(job, [wish])
                return
            for wish in batch:
                _refuse(wish, error)
            return
        self._wakeups.announce(made)
        for wish, woken in zip(batch, made, strict=True):
            if not wish.made.done():
                wish.made.set_result(woken.id)

    async def _insert(self, job: str, batch: Sequence[_Wish]) -> list[Woken]:
        try:
            connection = await self._line.get()
            return await enqueue_within(connection, self._tenant_id, job, [(w.at, w.payload) for w in batch])
        except GONE as error:  # whether it was done, nobody knows: whoever asks again may do it twice
            self._line.drop()
            raise unavailable(error) from error
        except asyncpg.PostgresError as error:
            if isinstance(error, NOT_A_ROW):
                self._line.drop()
                raise unavailable(error) from error
            raise

    async def close(self) -> None:
        """Returns when all that was asked for is written."""
        if self._writing is not None:
            with suppress(Exception):
                await self._writing
        await self._line.close()


NOT_A_ROW = (
    asyncpg.QueryCanceledError,
    asyncpg.LockNotAvailableError,
    asyncpg.InsufficientResourcesError,
    asyncpg.ReadOnlySQLTransactionError,
    asyncpg.OperatorInterventionError,
)
"""No row is to blame for these: nobody's wish is taken apart for them."""


def _refuse(wish: _Wish, error: Exception) -> None:
    if not wish.made.done():
        wish.made.set_exception(error)
