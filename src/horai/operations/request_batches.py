"""Requests about one job that arrive at the same time share a statement.

A request that finds no other one of its kind and job at work is written at once, with those that the process reads in the next
turns of its event loop. Requests that arrive meanwhile wait for it and are then written together, so that each of them costs a
part of the round trip and of the commit. The common case is written by one statement. Requests that it leaves, and all requests
of a batch that fails for a reason of one of them, are written together in a transaction or one by one: a locked key, a quota or an
invalid payload concerns only its own request.
"""

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Coroutine, Mapping, Sequence
from datetime import timedelta
from typing import Generic, TypeVar

from horai.core.errors import DatabaseUnavailable
from horai.db import jobs
from horai.db.pool import GONE, Plans
from horai.operations.scope import Scope

AT_ONCE = 200
"""Most requests of one statement."""
TURNS = 5
"""Most turns of the event loop for which a batch waits for requests that the process is reading. More turns would leave nothing to
read while the batch is written."""
PLAIN_FOR = 5.0
"""Seconds for which a job that was not encrypted is taken for one that is not."""
PLAIN_JOBS = 10_000
PATIENCE = timedelta(milliseconds=20)
"""Time for which a batch waits for a lock, and the next batch for a request that is written alone, which waits as long as any."""

Asked = TypeVar("Asked")
Written = TypeVar("Written")


class _Waiting(Generic[Asked, Written]):
    """A request that waits for its result."""

    __slots__ = ("asked", "done")

    def __init__(self, asked: Asked) -> None:
        self.asked = asked
        self.done: asyncio.Future[Written] = asyncio.get_running_loop().create_future()

    def settle(self, written: Written) -> None:
        if not self.done.done():  # it is if the request was cancelled
            self.done.set_result(written)

    def fail(self, error: BaseException) -> None:
        if not self.done.done():
            self.done.set_exception(error)


class RequestBatches(ABC, Generic[Asked, Written]):
    """The requests of one kind that wait in this process, by tenant and job."""

    def __init__(self) -> None:
        self._waiting: dict[tuple[int, str], list[_Waiting[Asked, Written]]] = {}
        self._writing: set[asyncio.Task[None]] = set()
        self._plain_until: dict[tuple[int, str], float] = {}
        """The jobs that are known not to be encrypted, and until when this is relied on."""

    @abstractmethod
    async def _write_common(self, scope: Scope, job: str, asked: Sequence[Asked]) -> Mapping[int, Written]:
        """Write the common cases by one statement. Return the results by position; the others have to be written otherwise.

        A lock is waited for during `PATIENCE` at most.
        """

    async def _write_together(self, scope: Scope, job: str, asked: Sequence[Asked]) -> Sequence[Written] | None:
        """Write requests in one transaction, all of them or none. Return None if they have to be written one by one."""
        return None

    @abstractmethod
    async def _write_alone(self, scope: Scope, job: str, asked: Asked) -> Written:
        """Write one request."""

    async def _written(self, scope: Scope, job: str, asked: Asked) -> Written:
        """Write a request, together with others that wait, and return its result. Raises its own error."""
        waiting: _Waiting[Asked, Written] = _Waiting(asked)
        queue = self._waiting.get((scope.tenant_id, job))
        if queue is None:
            self._waiting[scope.tenant_id, job] = [waiting]
            self._begin(self._write_all(scope, job))
        else:
            queue.append(waiting)
        return await waiting.done

    def _begin(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._writing.add(task)
        task.add_done_callback(self._writing.discard)
        return task

    async def _write_all(self, scope: Scope, job: str) -> None:
        """Write the requests that wait, then those that have arrived meanwhile, until none is left."""
        queue = self._waiting[scope.tenant_id, job]
        batch: list[_Waiting[Asked, Written]] = []
        try:
            while queue:
                await _gathered(queue)
                batch, queue[:] = queue[:AT_ONCE], queue[AT_ONCE:]
                await self._write(scope, job, batch)
                batch = []
        finally:
            del self._waiting[scope.tenant_id, job]
            for waiting in [*batch, *queue]:  # none, unless the process ends
                waiting.done.cancel()

    async def _write(self, scope: Scope, job: str, batch: Sequence[_Waiting[Asked, Written]]) -> None:
        """Write a batch. The next batch waits only shortly for requests that are written alone."""
        try:
            left = await self._left(scope, job, batch)
        except (DatabaseUnavailable, *GONE) as error:
            for waiting in batch:
                waiting.fail(error)
            return
        if left:
            alone = [self._begin(self._settle_alone(scope, job, waiting)) for waiting in left]
            await asyncio.wait(alone, timeout=PATIENCE.total_seconds())

    async def _left(
        self, scope: Scope, job: str, batch: Sequence[_Waiting[Asked, Written]]
    ) -> Sequence[_Waiting[Asked, Written]]:
        """Write a batch, and return the requests that have to be written alone, where each meets its own error."""
        common: Mapping[int, Written] = {}
        try:
            if await self._is_plain(scope, job):
                common = await self._write_common(scope, job, [waiting.asked for waiting in batch])
        except (DatabaseUnavailable, *GONE):
            raise
        except Exception:  # noqa: S110 — it is raised again for the request to blame
            pass
        for position, written in common.items():
            batch[position].settle(written)
        left = [waiting for position, waiting in enumerate(batch) if position not in common]
        if len(left) < 2:
            return left
        try:
            together = await self._write_together(scope, job, [waiting.asked for waiting in left])
        except (DatabaseUnavailable, *GONE):
            raise
        except Exception:
            return left
        if together is None:
            return left
        for waiting, written in zip(left, together, strict=True):
            waiting.settle(written)
        return ()

    async def _is_plain(self, scope: Scope, job: str) -> bool:
        """Return whether the job exists and is not encrypted: the statement of the common case is sent payloads as they are.

        The statement refuses a job that was encrypted since, but the log of the server may show its values.
        """
        now = time.monotonic()
        if self._plain_until.get((scope.tenant_id, job), now) > now:
            return True
        async with scope.read(Plans.KEPT) as connection:
            found = await jobs.find_job(connection, scope.tenant_id, job)
        if found is None or found.is_encrypted:
            return False
        if len(self._plain_until) >= PLAIN_JOBS:
            self._plain_until.clear()
        self._plain_until[scope.tenant_id, job] = now + PLAIN_FOR
        return True

    async def _settle_alone(self, scope: Scope, job: str, waiting: _Waiting[Asked, Written]) -> None:
        try:
            waiting.settle(await self._write_alone(scope, job, waiting.asked))
        except Exception as error:
            waiting.fail(error)


async def _gathered(queue: Sequence[object]) -> None:
    """Wait for `TURNS` turns of the event loop at most, as long as each of them brings further requests."""
    for _ in range(TURNS):
        waiting = len(queue)
        await asyncio.sleep(0)
        if len(queue) == waiting or waiting >= AT_ONCE:
            return
