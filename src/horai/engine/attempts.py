"""Attempts under way: each claimed row becomes a call, and whatever comes of it is handed to the settler."""

import asyncio
import random
import time
from collections.abc import Mapping
from datetime import timedelta
from typing import Protocol

from horai.core.calls import Call, HttpTarget
from horai.core.retry import RetryPolicy
from horai.core.settlement import TIMEOUT, Accepted, FailedRetryable, Outcome, plan
from horai.core.vitals import Vitals
from horai.db.claims import Claimed, Held
from horai.db.clock import DatabaseClock
from horai.db.jobs import Runnable
from horai.engine.settler import Settlement, Settler


class Executor(Protocol):
    """Makes one attempt; never raises but for cancellation."""

    async def run(self, call: Call) -> Outcome | Accepted:
        """What the attempt came to."""
        ...


class Attempts:
    """The calls of this process. `executors` are by handler; the empty one is for HTTP."""

    def __init__(
        self, executors: Mapping[str, Executor], settler: Settler, clock: DatabaseClock, vitals: Vitals
    ) -> None:
        self._executors = executors
        self._settler = settler
        self._clock = clock
        self._vitals = vitals
        self._tasks: set[asyncio.Task[None]] = set()
        self._awaited: dict[tuple[int, int], asyncio.Event] = {}

    @property
    def handlers(self) -> frozenset[str]:
        """What can be run here."""
        return frozenset(self._executors)

    def start(self, row: Claimed, job: Runnable) -> None:
        """Takes a claimed row over; it will be settled, whatever comes."""
        now = self._clock.now()
        self._vitals.observe_delay(time.monotonic(), (now - row.execute_time).total_seconds())
        if row.held.retry_count:
            self._vitals.retry_backlog = max(self._vitals.retry_backlog - 1, 0)
        task = asyncio.create_task(self._execute(row, job))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _execute(self, row: Claimed, job: Runnable) -> None:
        """One attempt from call to settlement; every way out settles or releases."""
        call = call_of(row, job)
        executor = self._executors[job.definition.handler]
        outcome: Outcome | Accepted = FailedRetryable("NODE_STOPPED", "The node stopped before the call had ended.")
        is_quiet = False
        try:
            outcome = await executor.run(call)
            if isinstance(outcome, Accepted):
                await self._outcome_of(row.held, outcome.remaining)
                is_quiet = True
                outcome = FailedRetryable(TIMEOUT, "Accepted with 202, but no outcome was reported in time.")
        finally:
            if isinstance(outcome, Accepted):
                outcome = FailedRetryable("NODE_STOPPED", "The node stopped while the outcome was awaited.")
            self._settler.submit(_settlement(row.held, job.definition.retry, outcome, is_quiet=is_quiet))

    async def _outcome_of(self, held: Held, within: timedelta) -> None:
        """Returns when the outcome has been reported here, or its time is over. Reported elsewhere, the row tells."""
        reported = self._awaited.setdefault((held.id, held.fence), asyncio.Event())
        try:
            async with asyncio.timeout(within.total_seconds()):
                await reported.wait()
        except TimeoutError:
            pass
        finally:
            del self._awaited[held.id, held.fence]

    def outcome_reported(self, instance_id: int, fence: int) -> None:
        """Nobody needs to wait for this outcome any more."""
        if (reported := self._awaited.get((instance_id, fence))) is not None:
            reported.set()

    async def break_off(self) -> None:
        """Ends what still runs; its outcome is that the node stopped."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


def call_of(row: Claimed, job: Runnable) -> Call:
    """The attempt a claim stands for."""
    definition = job.definition
    return Call(
        instance_id=row.held.id,
        job_id=job.id,
        job=job.name,
        tenant=job.tenant,
        key=row.key,
        fire_time=row.fire_time,
        execute_time=row.execute_time,
        attempt=row.held.attempt,
        fence=row.held.fence,
        idempotency_key=row.idempotency_key,
        payload=row.payload,
        target=definition.target,
        timeout=definition.timeout,
        secrets=job.secrets if isinstance(definition.target, HttpTarget) else (),
    )


def _settlement(held: Held, retry: RetryPolicy, outcome: Outcome, *, is_quiet: bool) -> Settlement:
    return Settlement(held, plan(retry, held.retry_count, outcome, random.uniform), is_quiet)
