"""Waiting for the results of instances: one query for all of them, repeated less often as time passes."""

import asyncio
from contextlib import suppress

import structlog

from horai.db import instance_queries
from horai.db.instance_queries import EndedInstance
from horai.db.pool import Plans, Pool, acquire

log = structlog.get_logger(__name__)

FIRST_PAUSE = 0.005
LONGEST_PAUSE = 0.25
ASKED_AT_ONCE = 1_000


class Results:
    """The instances that callers in this process wait for."""

    def __init__(self, pool: Pool, tenant_id: int) -> None:
        self._pool = pool
        self._tenant_id = tenant_id
        self._awaited: dict[int, list[asyncio.Future[EndedInstance]]] = {}
        self._asking: asyncio.Task[None] | None = None
        self._is_new = asyncio.Event()

    async def of(self, instance_id: int) -> EndedInstance:
        """Wait until the instance is final and return it."""
        future: asyncio.Future[EndedInstance] = asyncio.get_running_loop().create_future()
        self._awaited.setdefault(instance_id, []).append(future)
        self._is_new.set()
        if self._asking is None:
            self._asking = asyncio.create_task(self._ask())
        try:
            return await future
        finally:
            self._forget(instance_id, future)

    def _forget(self, instance_id: int, future: "asyncio.Future[EndedInstance]") -> None:
        if waiting := self._awaited.get(instance_id):
            with suppress(ValueError):
                waiting.remove(future)
            if not waiting:
                del self._awaited[instance_id]

    async def _ask(self) -> None:
        pause = FIRST_PAUSE
        try:
            while self._awaited:
                with suppress(TimeoutError):
                    async with asyncio.timeout(pause):
                        await self._is_new.wait()
                        self._is_new.clear()
                        pause = FIRST_PAUSE
                        await asyncio.sleep(FIRST_PAUSE)  # callers that arrive at the same time share the query
                pause = min(pause * 1.5, LONGEST_PAUSE)
                await self._look()
        finally:
            self._asking = None

    async def _look(self) -> None:
        try:
            async with acquire(self._pool, Plans.KEPT) as connection:
                ids = list(self._awaited)
                for first in range(0, len(ids), ASKED_AT_ONCE):
                    for ended in await instance_queries.ended(
                        connection, self._tenant_id, ids[first : first + ASKED_AT_ONCE]
                    ):
                        self._tell(ended)
        except Exception as error:  # the callers go on waiting: each has its own timeout
            log.warning("results could not be read", waiting=len(self._awaited), error=repr(error))

    def _tell(self, ended: EndedInstance) -> None:
        for future in self._awaited.get(ended.id, ()):
            if not future.done():
                future.set_result(ended)

    async def close(self) -> None:
        """Stop asking for results."""
        if self._asking is not None:
            self._asking.cancel()
            await asyncio.gather(self._asking, return_exceptions=True)
