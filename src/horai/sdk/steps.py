"""Durable steps of a function: a finished step never runs again, and a sleep or a wait frees the worker.

See docs/guides/durable-steps.md. The records and their guards are in `features/steps`.
"""

from collections.abc import Awaitable, Callable, Coroutine
from datetime import timedelta
from types import coroutine
from typing import Any, NoReturn, TypeVar, TypeVarTuple, overload

from horai.core.errors import Invalid
from horai.core.retry import Jitter, RetryPolicy
from horai.sdk.code_versions import ONLY
from horai.sdk.declaration import Retry
from horai.sdk.deferred import runtime
from horai.sdk.outcomes import seconds_of
from horai.sdk.step_tasks import ONCE, ChildTask, StepTask, named, running_step
from horai.sdk.suspension import UnderWay, under_way

R = TypeVar("R")
A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
Ts = TypeVarTuple("Ts")
Branch = Coroutine[Any, Any, R]
_DEFAULT = RetryPolicy()


@overload
async def step(
    name: str,
    function: Callable[[*Ts], Awaitable[R]],
    *args: *Ts,
    key: str | None = None,
    retry: int | Retry | None = None,
    compensate: Callable[[R], object] | None = None,
    conn: Any = None,
) -> R: ...
@overload
async def step(
    name: str,
    function: Callable[[*Ts], R],
    *args: *Ts,
    key: str | None = None,
    retry: int | Retry | None = None,
    compensate: Callable[[R], object] | None = None,
    conn: Any = None,
) -> R: ...
async def step(
    name: str,
    function: Callable[..., Any],
    *args: Any,
    key: str | None = None,
    retry: int | Retry | None = None,
    compensate: Callable[[Any], object] | None = None,
    conn: Any = None,
) -> Any:
    """Run `function(*args)` once for this instance, and return its result in every later attempt.

    A step that did not finish may run again, with the same `step_key()`. `key` tells steps apart that run at once under
    one name. `retry` gives the step retries of its own; `StepFailed` is raised when they are used up. With `conn`, a
    connection with an open transaction, the record commits with the transaction.

    `compensate(result)` undoes the step: it runs, recorded like a step, if the step has finished and the instance dies or
    is cancelled with `compensate=True`. The last step is compensated first.
    """
    task = StepTask(function, args, _policy(retry), conn, compensate)
    return await (await _run()).step(named(name, key), task)


async def sleep(duration: float | str | timedelta, *, key: str | None = None) -> None:
    """Sleep for a duration (seconds, "10m", or a timedelta). Above one second the function is suspended meanwhile."""
    await (await _run()).sleep(named("sleep", key), seconds_of(duration))


async def wait_for(name: str, timeout: float | str | timedelta | None = None, *, key: str | None = None) -> Any:
    """Wait for a signal and return its payload; None after `timeout`. The function is suspended meanwhile.

    Signals of one name are taken in the order in which they were sent, each once.
    """
    if key is not None:
        raise Invalid.field("key", "is not accepted: signals of one name are taken in order", "Use another name.")
    return await (await _run()).wait(named(name, None), None if timeout is None else seconds_of(timeout))


@overload
async def gather(first: Branch[A], second: Branch[B], /) -> tuple[A, B]: ...
@overload
async def gather(first: Branch[A], second: Branch[B], third: Branch[C], /) -> tuple[A, B, C]: ...
@overload
async def gather(*branches: Branch[R]) -> tuple[R, ...]: ...
async def gather(*branches: Branch[Any]) -> tuple[Any, ...]:
    """Run steps, sleeps, waits and calls side by side, and return their results in order."""
    return tuple(await (await _run()).gather(branches))


async def call_job(task: ChildTask, key: str | None) -> str | None:
    """Call a job and return the result of its instance, as JSON text."""
    return await (await _run()).call(named(task.job, key), task)


async def start_over(job: str, payload: str | None) -> NoReturn:
    """End the attempt; the function of the job begins again with another payload, as JSON text, and without records."""
    await (await _run()).start_over(job, payload)


def step_key() -> str:
    """Return the idempotency key of the running step, `instance:name:occurrence`: the same in every try."""
    key = running_step.get()
    if key is None:
        raise Invalid("No step runs here.", "Call step_key() in the function of a step.")
    return key


def _policy(retry: int | Retry | None) -> RetryPolicy:
    if retry is None:
        return ONCE
    given = Retry(max=retry) if isinstance(retry, int) else retry
    return RetryPolicy(
        given.max,
        _DEFAULT.base if given.base is None else seconds_of(given.base),
        _DEFAULT.cap if given.cap is None else seconds_of(given.cap),
        Jitter(given.jitter or Jitter.ADDITIVE),
    )


async def _run() -> "runtime.DurableRun":
    """Return the durable run of the function in this context."""
    found = _found()
    if found is None and runtime.running.get() is not None:
        await _turn()  # the executor learns that the function waits, and names the attempt
        found = _found()
    if found is None:
        raise Invalid(
            "A durable step is called outside of the async function of a job.",
            "Call it with await in such a function. Run steps side by side with horai.gather.",
        )
    if found.call.is_encrypted:
        raise Invalid(
            f"The job {found.call.job!r} is encrypted, and results of steps are stored as they are.",
            "Use steps in a job that is not encrypted.",
        )
    if found.recorder is None:
        raise Invalid(
            f"The function of {found.call.job!r} runs where durable steps are not available.",
            "Run it on a worker with the database: not on Ray, and not on a remote worker.",
        )
    if not found.runs:
        boundary = _boundary_of(found.recorder)
        found.runs.append(runtime.DurableRun(found.recorder, found.call, found.instance, boundary, found.code or ONLY))
    (run,) = found.runs
    assert isinstance(run, runtime.DurableRun)  # noqa: S101 - no other class is added
    return run


def _found() -> UnderWay | None:
    """Return the attempt of this context. A context that an earlier function used may still have that one's."""
    found = under_way.get()
    return found if found is not None and found.call is runtime.running.get() else None


def _boundary_of(recorder: object) -> Any:
    return getattr(recorder, "boundary", None)


@coroutine
def _turn() -> Any:
    yield
