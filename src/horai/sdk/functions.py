"""The executor of functions: async ones in the event loop, others in threads, up to the worker's concurrency.

If a function raises, exits, hangs or blocks, that is an outcome of its own attempt only. A function that cannot be
stopped, such as a thread that exceeds its timeout, keeps its place until it ends; no other call waits for it.
"""

import asyncio
import time
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable
from typing import Any

import structlog

from horai.core.calls import Call
from horai.core.outcome import SUCCESS, NotSent, Outcome
from horai.core.shares import Shares
from horai.logs import running
from horai.sdk.code_versions import CodeVersion
from horai.sdk.eager import Waiting, first_step
from horai.sdk.function_outcomes import SWALLOWED, outcome_of_error, outcome_of_value, timed_out
from horai.sdk.instance import Instance, Notes
from horai.sdk.payloads import Form, Signature
from horai.sdk.suspension import ClaimLost, StepRecorder, SuspensionMark, UnderWay, under_way
from horai.sdk.threads import Threads

log = structlog.get_logger(__name__)


class Crew:
    """The resources that the functions of a process share: places, threads, and the receiver of their notes."""

    def __init__(
        self,
        concurrency: int,
        notes: Notes | None = None,
        is_held: Callable[[Call], bool] = lambda _: True,
        shares: Shares | None = None,
    ) -> None:
        self._shares = shares or Shares(concurrency)
        self.may_begin = self._shares.may_begin
        """Returns whether a handler may take a place. A call that ends without a wait takes none."""
        self._is_held = is_held
        self._lines: defaultdict[str, deque[asyncio.Future[None]]] = defaultdict(deque)
        self.left: Callable[[], None] = lambda: None
        """Called when a thread that ran longer than its claim gives its place back."""
        self._running: dict[tuple[int, int], Instance[Any]] = {}
        self.threads = Threads(concurrency)
        self.notes = notes
        self.steps: StepRecorder | None = None
        """Writes the records of durable steps; None where they are not available."""

    def enter(self, handler: str) -> bool:
        """Take a place, which `leave` gives back. Return False if none is free; `turn` then waits for one."""
        if self._shares.may_begin(handler):
            self._shares.begin(handler)
            return True
        return False

    async def turn(self, handler: str, call: Call, instance: Instance[Any]) -> bool:
        """Wait for a place, first come, first served within a handler.

        Return False, without a place, if the claim is no longer this worker's.
        """
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._lines[handler].append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            self.end(call)
            if turn.done() and not turn.cancelled():
                self.leave(handler)  # the place was given and the task cancelled in the same moment: pass it on
            raise
        is_ours = self._is_held(call) and not instance.is_cancelled
        if not is_ours:
            self.end(call)
            self.leave(handler)
        return is_ours

    def leave(self, handler: str) -> None:
        """Give a place back. Of the waiting handlers that may begin, the one that runs least gets it."""
        self._shares.end(handler)
        while self._lines and (waiting := [name for name in self._lines if self._shares.may_begin(name)]):
            first = min(waiting, key=self._shares.running)
            line = self._lines[first]
            turn = line.popleft()
            if not line:
                del self._lines[first]
            if not turn.done():
                self._shares.begin(first)
                turn.set_result(None)

    def begin(self, call: Call, instance: Instance[Any]) -> None:
        """Record an attempt that is under way or waits for a place."""
        self._running[call.instance_id, call.fence] = instance

    def end(self, call: Call) -> None:
        """Remove an attempt that is no longer under way."""
        self._running.pop((call.instance_id, call.fence), None)

    def claim_over(self, instance_id: int, fence: int) -> None:
        """Tell a running function that it was cancelled or replaced. The function decides how to react."""
        if (instance := self._running.get((instance_id, fence))) is not None:
            instance.end()

    def close(self) -> None:
        """End the threads. Those that still run a function cannot be stopped."""
        self.threads.close()


class _Functions:
    """The common part of both executors: the function of one job and its arguments."""

    def __init__(self, function: Callable[..., Any], signature: Signature, crew: Crew, handler: str) -> None:
        self._function, self._form = signature.adapted(function)
        self._handler = handler
        self._crew = crew
        self._decode = signature.shape.decode
        self.code: CodeVersion | None = None
        """The version that the function declares."""
        self._is_typed = signature.shape.schema is not None

    def _arguments(self, instance: Instance[Any]) -> tuple[Any, ...]:
        """Return the arguments of the function. Raises before it begins if the payload does not fit its type."""
        if self._form is Form.nothing:
            return ()
        if self._form is Form.payload:
            return (instance.payload,)
        if self._is_typed:
            instance.payload  # noqa: B018 — read for its type
        return (instance,)


class AsyncFunction(_Functions):
    """Runs the attempts of an async function, in the event loop."""

    def run(self, call: Call) -> Outcome | Awaitable[Outcome]:
        """Begin an attempt. Return its outcome if the function ends without a wait, otherwise an awaitable of it.

        The calling task must await it at once. It raises only if cancelled.
        """
        crew = self._crew
        instance = Instance(call, self._decode, crew.notes)
        if not crew.may_begin(self._handler):
            return self._in_turn(call, instance)
        running.set(call)
        began = 0.0 if call.timeout is None else time.monotonic()
        try:
            value = first_step(self._function(*self._arguments(instance)))
            return SUCCESS if value is None else outcome_of_value(value)
        except Waiting as waiting:
            crew.enter(self._handler)
            crew.begin(call, instance)
            return self._rest(call, instance, waiting.rest, began)
        except BaseException as error:  # SystemExit too: it ends a function, never a worker
            instance.end()
            return outcome_of_error(error)

    async def _in_turn(self, call: Call, instance: Instance[Any]) -> Outcome:
        """Wait for a place, then run the attempt."""
        self._crew.begin(call, instance)
        if not self._crew.enter(self._handler) and not await self._crew.turn(self._handler, call, instance):
            return NotSent()
        running.set(call)
        return await self._rest(call, instance, self._called(instance), time.monotonic())

    async def _called(self, instance: Instance[Any]) -> Any:
        return await self._function(*self._arguments(instance))

    async def _rest(self, call: Call, instance: Instance[Any], rest: Awaitable[Any], began: float) -> Outcome:
        """Await a function that has a place, and give the place back when it ends."""
        deadline, durable = None, list[SuspensionMark]()
        under_way.set(UnderWay(self._crew.steps, call, instance, durable, self.code))
        try:
            if call.timeout is None:
                value = await rest
            else:
                left = call.timeout.total_seconds() - (time.monotonic() - began)
                async with asyncio.timeout(left) as deadline:
                    value = await rest
            if durable and durable[0].is_rewinding:
                return await _rewound(durable[0])
            if durable and durable[0].is_suspended:
                return SWALLOWED
            if durable:
                durable[0].warn_of_unreached()
            return SUCCESS if value is None else outcome_of_value(value)
        except asyncio.CancelledError as error:
            if _is_being_cancelled():
                instance.end()
                raise
            if durable and durable[0].is_rewinding:
                return await _rewound(durable[0])
            instance.end()
            return outcome_of_error(error)
        except BaseException as error:
            if durable and durable[0].is_rewinding and not isinstance(error, ClaimLost):
                return await _rewound(durable[0])
            instance.end()
            if deadline is not None and deadline.expired() and call.timeout is not None:
                return timed_out(call.timeout)
            return outcome_of_error(error)
        finally:
            under_way.set(None)
            self._crew.end(call)
            self._crew.leave(self._handler)


class ThreadedFunction(_Functions):
    """Runs the attempts of a function that is not async, in threads."""

    async def run(self, call: Call) -> Outcome:
        """Run an attempt and return its outcome. Raises only if cancelled."""
        crew, instance = self._crew, Instance(call, self._decode, self._crew.notes)
        crew.begin(call, instance)
        if not crew.enter(self._handler) and not await crew.turn(self._handler, call, instance):
            return NotSent()
        running.set(call)
        ended = crew.threads.run(lambda: self._function(*self._arguments(instance)))
        try:
            async with asyncio.timeout(None if call.timeout is None else call.timeout.total_seconds()):
                return outcome_of_value(await asyncio.shield(ended))
        except asyncio.CancelledError:
            raise
        except TimeoutError as error:
            if ended.done() or call.timeout is None:
                return outcome_of_error(error)  # the function's own
            log.warning("a function runs beyond its timeout", job=call.job, instance=call.instance_id)
            return timed_out(call.timeout)
        except BaseException as error:
            return outcome_of_error(error)
        finally:
            instance.end()
            crew.end(call)
            _when_ended(ended, crew, self._handler)


def executor_of(
    function: Callable[..., Any], signature: Signature, crew: Crew, handler: str = ""
) -> AsyncFunction | ThreadedFunction:
    """Return the executor of a function. Its places are counted under `handler`."""
    return (AsyncFunction if signature.is_async else ThreadedFunction)(function, signature, crew, handler)


async def _rewound(run: SuspensionMark) -> Outcome:
    """Run the compensations of an instance and return the outcome of the attempt. Raises only if cancelled."""
    try:
        return await run.rewind()
    except asyncio.CancelledError as error:
        if _is_being_cancelled():
            raise
        return outcome_of_error(error)
    except BaseException as error:
        return outcome_of_error(error)


def _is_being_cancelled() -> bool:
    """Return whether this task is being cancelled, and not an awaitable that the function waited for."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _when_ended(ended: "asyncio.Future[Any]", crew: Crew, handler: str) -> None:
    """Give the place of a thread back when the thread ends, even if its caller no longer waits."""

    def left(future: "asyncio.Future[Any]") -> None:
        if not future.cancelled():
            future.exception()  # read it, so that asyncio does not log it as never retrieved
        crew.leave(handler)

    if ended.done():
        left(ended)
    else:
        ended.add_done_callback(left)
        ended.add_done_callback(lambda _: crew.left())
