"""Ends the wait for a database that has stopped answering.

A statement may be slow for good reasons, so that its time alone says nothing. After `CALM` seconds a second connection
asks the database for an answer; without one within `PROBE` seconds the waiting connection is cut, and its caller gets an
error at once, in a transaction too. A database that answers leaves the statement its full time.
"""

import asyncio
from contextlib import suppress
from typing import Any

import asyncpg
from asyncpg.pool import PoolConnectionProxy

from horai.db.dial import dial
from horai.db.route import ServerUnfit

CALM = 2.8
PROBE = 1.2


class Prober:
    """Asks one database whether it answers. Callers that ask at the same time share the question."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._asking: asyncio.Task[bool] | None = None

    async def answers(self) -> bool:
        """False if a new connection gets no answer within `PROBE` seconds."""
        if self._asking is None or self._asking.done():
            self._asking = asyncio.create_task(self._ask(), name="database probe")
        return await asyncio.shield(self._asking)

    async def _ask(self) -> bool:
        try:
            connection = await dial(self._url, timeout=PROBE, server_settings={"application_name": "horai probe"})
        except ServerUnfit:
            return True  # a host answered
        except (OSError, TimeoutError):
            return False
        except (asyncpg.PostgresError, asyncpg.InterfaceError):
            return True  # a refusal is an answer
        connection.terminate()
        return True


_PROBERS: "dict[asyncpg.Pool[Any], Prober]" = {}


def watch_over(pool: "asyncpg.Pool[Any]", url: str) -> None:
    """Watch the connections that `acquire` lends from this pool, until `unwatch`."""
    _PROBERS[pool] = Prober(url)


def unwatch(pool: "asyncpg.Pool[Any]") -> None:
    """Forget a pool that is closed."""
    _PROBERS.pop(pool, None)


class Watch:
    """Cuts one lent connection once the database has stopped answering, until `end`."""

    def __init__(self, pool: "asyncpg.Pool[Any]", connection: "PoolConnectionProxy[Any]") -> None:
        self._prober = _PROBERS.get(pool)
        self._connection = connection
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._asking: asyncio.Task[None] | None = None
        if self._prober is not None:
            self._timer = self._loop.call_later(CALM, self._look)

    def end(self) -> None:
        """The connection has been given back."""
        if self._timer is not None:
            self._timer.cancel()
        if self._asking is not None:
            self._asking.cancel()

    def _look(self) -> None:
        self._asking = self._loop.create_task(self._ask(), name="database watch")

    async def _ask(self) -> None:
        if self._prober is None or await self._prober.answers():
            self._timer = self._loop.call_later(CALM, self._look)
            return
        with suppress(asyncpg.InterfaceError):  # given back meanwhile
            self._connection.terminate()
