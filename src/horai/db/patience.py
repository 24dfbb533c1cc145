"""Protection against a database that has stopped answering.

A statement may be slow for good reasons, so its duration alone proves nothing. After `CALM` seconds, a second
connection probes the database. If it gets no answer within `PROBE` seconds, the waiting connection is terminated and
its caller gets an error at once, also inside a transaction. If the database answers, the statement keeps its full time
limit.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, TypeAlias

import asyncpg
from asyncpg.pool import PoolConnectionProxy

from horai.db.dial import FAILURES, dial
from horai.db.route import Dedicated, ServerUnfit

Dial: TypeAlias = Callable[..., Awaitable[Dedicated]]
"""Opens a connection to the URL, as `dial` does."""
CALM = 2.8
PROBE = 1.2


class Prober:
    """A probe of one database. Concurrent callers share one probe."""

    def __init__(self, url: str, dialled: Dial) -> None:
        self._url = url
        self._dial = dialled
        self._asking: asyncio.Task[bool] | None = None

    async def answers(self) -> bool:
        """Return False if a new connection gets no answer within `PROBE` seconds."""
        if self._asking is None or self._asking.done():
            self._asking = asyncio.create_task(self._ask(), name="database probe")
        return await asyncio.shield(self._asking)

    async def _ask(self) -> bool:
        try:
            connection = await self._dial(self._url, timeout=PROBE, server_settings={"application_name": "horai probe"})
        except ServerUnfit:
            return True  # a host answered
        except (OSError, TimeoutError):
            return False
        except FAILURES:
            return True  # a refusal is an answer
        connection.terminate()
        return True


_PROBERS: "dict[asyncpg.Pool[Any], Prober]" = {}


def watch_over(pool: "asyncpg.Pool[Any]", url: str, dialled: Dial = dial) -> None:
    """Watch the connections that `acquire` returns from this pool, until `unwatch`. Probes connect as the pool does."""
    _PROBERS[pool] = Prober(url, dialled)


def unwatch(pool: "asyncpg.Pool[Any]") -> None:
    """Forget a pool that is closed."""
    _PROBERS.pop(pool, None)


class Watch:
    """A watch of one acquired connection until `end`: terminates it if the database stops answering."""

    def __init__(self, pool: "asyncpg.Pool[Any]", connection: "PoolConnectionProxy[Any]") -> None:
        self._prober = _PROBERS.get(pool)
        self._connection = connection
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._asking: asyncio.Task[None] | None = None
        if self._prober is not None:
            self._timer = self._loop.call_later(CALM, self._look)

    def end(self) -> None:
        """Stop watching; call it when the connection is released."""
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
        with suppress(asyncpg.InterfaceError):  # released meanwhile
            self._connection.terminate()
