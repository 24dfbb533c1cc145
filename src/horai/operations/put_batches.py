"""Puts of one job that arrive at the same time share a transaction.

A put that finds no other one of its job at work is written at once, with those that the process reads in the next turns of its
event loop. Puts that arrive meanwhile wait for it and are then written together, so that each of them costs a part of the round trips and of the commit. A batch that fails for a reason
of one of its puts is written again one by one: a locked key, a quota or an invalid payload concerns only its own put.
"""

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass, field
from datetime import timedelta

from horai.core.errors import DatabaseUnavailable
from horai.core.put import PutDecision
from horai.db.instance_queries import InstanceRow
from horai.db.pool import GONE
from horai.operations.instances import AskedPut, WrittenPut, answer_put, write_fresh_puts, write_puts
from horai.operations.scope import Scope

AT_ONCE = 200
"""Most puts of one transaction."""
TURNS = 5
"""Most turns of the event loop for which a batch waits for requests that the process is reading. More turns would leave nothing to
read while the batch is written."""
PATIENCE = timedelta(milliseconds=20)
"""Time for which a batch waits for a lock, and the next batch for a put that is written alone, which waits as long as any request."""


@dataclass(frozen=True, slots=True)
class _Waiting:
    """A put that waits for its decision."""

    asked: AskedPut
    done: asyncio.Future[WrittenPut] = field(default_factory=lambda: asyncio.get_running_loop().create_future())

    def settle(self, written: WrittenPut) -> None:
        if not self.done.done():  # it is if the request was cancelled
            self.done.set_result(written)

    def fail(self, error: BaseException) -> None:
        if not self.done.done():
            self.done.set_exception(error)


class PutBatches:
    """The puts of a process that wait, by tenant and job."""

    def __init__(self) -> None:
        self._waiting: dict[tuple[int, str], list[_Waiting]] = {}
        self._writing: set[asyncio.Task[None]] = set()

    async def put_instance(self, scope: Scope, reference: str, asked: AskedPut) -> tuple[PutDecision, InstanceRow]:
        """Create or reschedule the instance of a key, together with other puts of the job that wait."""
        put, queue = _Waiting(asked), self._waiting.get((scope.tenant_id, reference))
        if queue is None:
            self._waiting[scope.tenant_id, reference] = [put]
            self._begin(self._write_all(scope, reference))
        else:
            queue.append(put)
        written = await put.done
        return written.verdict, await answer_put(scope, written)

    def _begin(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._writing.add(task)
        task.add_done_callback(self._writing.discard)
        return task

    async def _write_all(self, scope: Scope, reference: str) -> None:
        """Write the puts that wait, then those that have arrived meanwhile, until none is left."""
        queue = self._waiting[scope.tenant_id, reference]
        batch: list[_Waiting] = []
        try:
            while queue:
                await _gathered(queue)
                batch, queue[:] = queue[:AT_ONCE], queue[AT_ONCE:]
                await self._write(scope, reference, batch)
                batch = []
        finally:
            del self._waiting[scope.tenant_id, reference]
            for put in [*batch, *queue]:  # none, unless the process ends
                put.done.cancel()

    async def _write(self, scope: Scope, reference: str, batch: list[_Waiting]) -> None:
        """Decide a batch. If that fails for a reason of a put, decide each put alone; the next batch waits only shortly for them."""
        left = await _left_by_fresh(scope, reference, batch)
        if len(left) == 1 or not await _is_written_together(scope, reference, left):
            alone = [self._begin(_write_alone(scope, reference, put)) for put in left]
            await asyncio.wait(alone, timeout=PATIENCE.total_seconds())


async def _gathered(queue: list[_Waiting]) -> None:
    """Wait for `TURNS` turns of the event loop at most, as long as each of them brings further puts."""
    for _ in range(TURNS):
        waiting = len(queue)
        await asyncio.sleep(0)
        if len(queue) == waiting or waiting >= AT_ONCE:
            return


async def _left_by_fresh(scope: Scope, reference: str, batch: list[_Waiting]) -> list[_Waiting]:
    """Write the puts of new keys by one statement, and return the others: of a key that occurs twice, the later ones."""
    firsts = {put.asked.key: put for put in reversed(batch)}
    try:
        made = await write_fresh_puts(scope, reference, [put.asked for put in firsts.values()], PATIENCE)
    except (DatabaseUnavailable, *GONE) as error:
        for put in batch:
            put.fail(error)
        return []
    except Exception:  # as below
        return batch
    for key, written in made.items():
        firsts[key].settle(written)
    return [put for put in batch if put.asked.key not in made or put is not firsts[put.asked.key]]


async def _is_written_together(scope: Scope, reference: str, batch: list[_Waiting]) -> bool:
    """Decide puts in one transaction. Return False if one of them is to blame that nothing was written."""
    if not batch:
        return True
    try:
        written = await write_puts(scope, reference, [put.asked for put in batch], PATIENCE)
    except GONE as error:
        for put in batch:
            put.fail(error)
    except Exception:  # each put meets its own error again when it is written alone
        return False
    else:
        for put, own in zip(batch, written, strict=True):
            put.settle(own)
    return True


async def _write_alone(scope: Scope, reference: str, put: _Waiting) -> None:
    try:
        put.settle((await write_puts(scope, reference, [put.asked]))[0])
    except Exception as error:
        put.fail(error)
