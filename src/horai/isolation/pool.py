"""The children of a worker: their assignment to calls, the start of new ones, and their replacement."""

import asyncio
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta

import structlog

from horai.core.calls import Call, WorkerTarget
from horai.core.outcome import PROCESS_DIED, FailedRetryable, FailedUnrecoverable, NotSent, Outcome
from horai.core.stored_text import clean_text
from horai.engine.dispatch.attempts import STOPPED
from horai.engine.executors.bulkhead import Bulkhead
from horai.isolation.child import Child, ChildStartFailed, NeverBegun
from horai.isolation.orphan_killer import OrphanKiller
from horai.isolation.outlook import RoomOutlook
from horai.sdk.instance import Notes

log = structlog.get_logger(__name__)

FIRST_PAUSE = timedelta(seconds=0.5)
LONGEST_PAUSE = timedelta(seconds=30)
SUSPECTS = 2
"""The most instances that run alone at a time, each in a process that is started for its call and ends with it."""


def pause_after(failures: int) -> timedelta:
    """Return the pause in which no child is started after failed starts in a row: 0.5 s, 1 s, 2 s, … at most 30 s."""
    return min(FIRST_PAUSE * 2 ** min(failures - 1, 10), LONGEST_PAUSE)


@dataclass(slots=True, eq=False)
class _Attempt:
    """A call on its way through the pool."""

    call: Call
    handler: str
    outlook: RoomOutlook
    child: Child | None = None
    is_over: bool = False


class IsolatedFunctions:
    """Runs functions of `app` ("module:app") in at most `processes` processes, each started when it is needed.

    It is the executor of every isolated job. At most `waiting` calls wait in line and the others go back, so that slow
    isolated calls do not fill the worker. A process is replaced after `max_runs` calls.
    `environment` is added to the worker's own; `is_held` returns whether a claim is still this worker's.
    """

    def __init__(
        self,
        app: str,
        processes: int,
        *,
        waiting: int = 64,
        max_runs: int = 10_000,
        environment: Mapping[str, str] | None = None,
        is_held: Callable[[Call], bool] = lambda _: True,
    ) -> None:
        self._app = app
        self._processes = processes
        self._max_runs = max_runs
        self._environment = environment or {}
        self._is_held = is_held
        self._waiting = waiting
        self._outlooks: dict[str, RoomOutlook] = {}
        self._bulkhead = Bulkhead(in_flight=processes, waiting=waiting)
        self._places = asyncio.Semaphore(processes)
        self._attempts: dict[tuple[int, int], _Attempt] = {}
        self._children: set[Child] = set()
        self._idle: list[Child] = []
        self._leaving: set[asyncio.Task[None]] = set()
        self._orphan_killer = OrphanKiller()
        self._starting = 0
        self._failures = 0
        self._no_start_until = 0.0
        self._is_closed = False
        self.notes: Notes | None = None
        """The receiver of the functions' progress and messages."""

    async def run(self, call: Call) -> Outcome:
        """Run the call and return its outcome. Raises only if cancelled, which kills the process that runs the call."""
        if not isinstance(call.target, WorkerTarget):
            return FailedUnrecoverable("INVALID_TARGET", "the job is called over HTTP, not run by workers")
        handler = call.target.handler
        attempt = _Attempt(call, handler, self._outlooks.setdefault(handler, RoomOutlook(self._processes)))
        self._attempts[call.instance_id, call.fence] = attempt
        try:
            return await self._in_turn(attempt)
        except Exception as error:  # log only the place: the text and the frames' variables could hold the payload
            name, where = type(error).__name__, "".join(traceback.format_tb(error.__traceback__))
            log.error("an isolated call failed unexpectedly", instance=call.instance_id, error=name, traceback=where)
            return FailedRetryable("EXECUTOR_ERROR", f"Horai failed to make the call ({name}); its log says where")
        finally:
            del self._attempts[call.instance_id, call.fence]

    def claim_over(self, instance_id: int, fence: int) -> None:
        """Tell the function of a cancelled or replaced instance. A function that has not begun will not begin."""
        if (attempt := self._attempts.get((instance_id, fence))) is not None:
            attempt.is_over = True
            if attempt.child is not None:
                attempt.child.claim_over(instance_id, fence)

    async def close(self) -> None:
        """End all processes and wait until none is left. Idle ones end by themselves; the others are killed."""
        self._is_closed = True
        self._bulkhead.close()
        for child in self._children.difference(self._idle):
            child.kill()
        for _ in range(self._processes):  # with every place taken, no call runs and no process starts
            await self._places.acquire()
        self._idle.clear()
        await asyncio.gather(*(child.leave() for child in self._children), *self._leaving)
        await asyncio.to_thread(self._orphan_killer.close)
        for _ in range(self._processes):
            self._places.release()

    async def _in_turn(self, attempt: _Attempt) -> Outcome:
        """Run the attempt when its handler's turn comes.

        All handlers share one line, and each may have as many calls under way as there are processes: so they take
        turns.
        """
        outlook, handler = attempt.outlook, attempt.handler
        outlook.arrived()
        if outlook.present >= self._processes and self._bulkhead.waiting >= self._waiting:
            is_delayed = self._starting > 0
            return NotSent(outlook.turn(_now(), self._waiting, attempt.call.attempt, is_delayed=is_delayed))
        outlook.present += 1
        try:
            if (delay := await self._bulkhead.enter(handler)) is not None:
                return NotSent(delay)
            try:
                async with self._places:
                    return await self._in_some_child(attempt)
            finally:
                self._bulkhead.leave(handler)
        finally:
            outlook.present -= 1

    async def _in_some_child(self, attempt: _Attempt) -> Outcome:
        """Run the attempt in an idle child, or in a new one if there is none or the idle ones turn out to be dead."""
        while self._idle and self._is_wanted(attempt):
            with suppress(NeverBegun):
                return await self._in_child(self._idle.pop(), attempt)
        pause = self._no_start_until - _now()
        if pause > 0 or not self._is_wanted(attempt):
            return NotSent(timedelta(seconds=max(pause, 0)))
        try:
            child = await self._fresh_child()
            if self._is_wanted(attempt):
                return await self._in_child(child, attempt)
            self._take_back(child)
            return NotSent()
        except NeverBegun:
            return self._start_failed("The process died, or hung, before the function began.")
        except ChildStartFailed as error:
            return self._start_failed(str(error))

    def _is_wanted(self, attempt: _Attempt) -> bool:
        """Return whether the attempt may still begin. Checked after each wait in line or for an import."""
        return not self._is_closed and not attempt.is_over and self._is_held(attempt.call)

    async def _in_child(self, child: Child, attempt: _Attempt) -> Outcome:
        attempt.child, begun_at = child, _now()
        attempt.outlook.begun(begun_at)
        try:
            outcome = await child.run(attempt.call, attempt.handler, self.notes)
        finally:
            attempt.child = None
            attempt.outlook.ended(_now(), begun_at)
        self._failures = 0
        if not child.is_busy:
            self._take_back(child)
        elif self._is_closed:
            return STOPPED
        return outcome

    def _take_back(self, child: Child) -> None:
        if child.runs < self._max_runs:
            if not child.ended.done():
                self._idle.append(child)
            return
        leaving = asyncio.create_task(child.leave())
        self._leaving.add(leaving)
        leaving.add_done_callback(self._leaving.discard)

    async def _fresh_child(self) -> Child:
        child = await Child.start(self._app, self._environment, self._orphan_killer)
        self._children.add(child)
        child.ended.add_done_callback(lambda _: self._forget(child))
        if self._is_closed:
            child.kill()
        self._starting += 1
        try:
            await child.ready()
        finally:
            self._starting -= 1
        return child

    def _forget(self, child: Child) -> None:
        self._children.discard(child)
        if child in self._idle:
            log.warning("an idle process for isolated functions has ended", pid=child.pid, status=child.ended.result())
            self._idle.remove(child)

    def _start_failed(self, reason: str) -> Outcome:
        """Fail the attempt that needed the process, with the reason. Attempts that need one in the pause go back."""
        if self._is_closed:
            return NotSent()
        self._failures += 1
        pause = pause_after(self._failures)
        self._no_start_until = _now() + pause.total_seconds()
        log.error("a process for isolated functions cannot be started", app=self._app, reason=reason, pause=str(pause))
        return FailedRetryable(PROCESS_DIED, clean_text(reason))


def _now() -> float:
    return asyncio.get_running_loop().time()
