"""The result, error or exit of a function is the outcome of its own attempt, and of nothing else."""

import asyncio
import sys
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from horai import Cancelled, Instance, RetryLater, Unrecoverable
from horai.core.calls import Call, WorkerTarget
from horai.core.outcome import FailedRetryable, FailedUnrecoverable, NotSent, Outcome, Postponed, Succeeded, outcome_of
from horai.sdk.functions import AsyncFunction, Crew, ThreadedFunction, executor_of
from horai.sdk.payloads import signature_of

NOW = datetime(2026, 11, 15, 9, tzinfo=UTC)


def call(payload: str | None = None, timeout: timedelta | None = None, instance_id: int = 1) -> Call:
    return Call(
        instance_id, 2, "job", "default", "k", NOW, NOW, 1, 3, NOW, -1, payload, WorkerTarget("job"), timeout, (), 9
    )


def executor(function: Callable[..., Any], crew: Crew | None = None) -> AsyncFunction | ThreadedFunction:
    return executor_of(function, signature_of(function), crew or Crew(10))


async def outcome(function: Callable[..., Any], **given: Any) -> Outcome:
    return await run(executor(function), call(**given))


async def run(executor: AsyncFunction | ThreadedFunction, call: Call) -> Outcome:
    """Make an attempt, first step and rest in one task."""
    return await outcome_of(executor.run(call))


async def test_B9_a_returned_value_is_a_success_with_a_result():
    async def nothing() -> None: ...
    async def number() -> int:
        return 42

    assert await outcome(nothing) == Succeeded()
    assert await outcome(number) == Succeeded("42")
    assert await outcome(lambda: {"a": [1]}) == Succeeded('{"a":[1]}')


async def test_B9_an_exception_is_a_retryable_failure_that_names_its_source_file():
    async def broken() -> None:
        raise ValueError("no stock")

    failed = await outcome(broken)
    assert isinstance(failed, FailedRetryable)
    assert failed.code == "ValueError"
    assert "no stock" in failed.message
    assert "test_functions.py" in failed.message


async def test_B9_unrecoverable_is_a_dead_letter_at_once():
    def hopeless() -> None:
        raise Unrecoverable("no such article")

    failed = await outcome(hopeless)
    assert isinstance(failed, FailedUnrecoverable)
    assert "no such article" in failed.message


@pytest.mark.parametrize("delay", [90, "90s", timedelta(seconds=90)])
async def test_retry_later_is_no_failure(delay: Any):
    async def not_yet() -> None:
        raise RetryLater(delay)

    assert await outcome(not_yet) == Postponed(timedelta(seconds=90))


@pytest.mark.parametrize("is_async", [True, False])
async def test_a_function_that_exits_ends_itself_and_nothing_else(is_async: bool):
    async def leaves() -> None:
        sys.exit(3)

    failed = await outcome(leaves if is_async else lambda: sys.exit(3))
    assert isinstance(failed, FailedRetryable)
    assert failed.code == "SystemExit"


async def test_an_async_function_that_takes_too_long_is_cancelled():
    ended = asyncio.Event()

    async def slow() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    failed = await outcome(slow, timeout=timedelta(milliseconds=20))
    assert isinstance(failed, FailedRetryable)
    assert failed.code == "TIMEOUT"
    assert ended.is_set()


async def test_a_timeout_of_the_functions_own_is_its_own():
    async def impatient() -> None:
        raise TimeoutError("their server")

    failed = await outcome(impatient, timeout=timedelta(seconds=5))
    assert isinstance(failed, FailedRetryable)
    assert failed.code == "TimeoutError"


async def test_a_thread_that_takes_too_long_keeps_its_place_until_it_ends():
    let_go, crew = threading.Event(), Crew(1)

    def hang() -> None:
        let_go.wait()

    async def at_once() -> int:
        return 1

    failed = await run(executor(hang, crew), call(timeout=timedelta(milliseconds=20)))
    assert isinstance(failed, FailedRetryable)
    assert failed.code == "TIMEOUT"
    waiting = asyncio.create_task(run(executor(at_once, crew), call(instance_id=2)))
    for _ in range(5):
        await asyncio.sleep(0)
    assert not waiting.done()
    let_go.set()
    assert await waiting == Succeeded("1")


async def test_a_function_is_told_that_its_time_is_over():
    told = threading.Event()

    def patient(instance: Instance[Any]) -> None:
        while not instance.is_cancelled:
            threading.Event().wait(0.001)
        told.set()

    await outcome(patient, timeout=timedelta(milliseconds=20))
    assert await asyncio.to_thread(told.wait, 5)


async def test_a_cancelled_instance_is_told_to_its_function():
    crew, began = Crew(1), asyncio.Event()

    async def stoppable(instance: Instance[Any]) -> None:
        began.set()
        await instance.cancelled()
        instance.raise_if_cancelled()

    running = asyncio.create_task(run(executor(stoppable, crew), call()))
    await began.wait()
    crew.claim_over(1, 2)
    await asyncio.sleep(0)
    assert not running.done()
    crew.claim_over(1, 3)
    failed = await running
    assert isinstance(failed, FailedRetryable)
    assert failed.code == Cancelled.__name__


async def test_no_more_run_at_once_than_there_are_places():
    crew, most, now = Crew(3), 0, 0

    async def counted() -> None:
        nonlocal most, now
        now += 1
        most = max(most, now)
        await asyncio.sleep(0.001)
        now -= 1

    runs = [run(executor(counted, crew), call(instance_id=n)) for n in range(20)]
    assert await asyncio.gather(*runs) == [Succeeded()] * 20
    assert most == 3


async def test_a_call_that_is_cancelled_in_line_does_not_block_the_calls_behind_it():
    crew, gate = Crew(1), asyncio.Event()
    first = asyncio.create_task(run(executor(gate.wait, crew), call()))
    second = asyncio.create_task(run(executor(gate.wait, crew), call(instance_id=2)))
    third = asyncio.create_task(run(executor(gate.wait, crew), call(instance_id=3)))
    await asyncio.sleep(0)
    second.cancel()
    gate.set()
    assert await first == Succeeded("true")
    assert await third == Succeeded("true")


async def test_a_claim_that_ends_while_it_waits_for_a_place_never_begins():
    crew, gate, began = Crew(1), asyncio.Event(), False

    async def second() -> None:
        nonlocal began
        began = True

    first = asyncio.create_task(run(executor(gate.wait, crew), call()))
    waiting = asyncio.create_task(run(executor(second, crew), call(instance_id=2)))
    await asyncio.sleep(0)
    crew.claim_over(2, 3)
    gate.set()
    assert await waiting == NotSent()
    assert await first == Succeeded("true")
    assert not began
    assert await run(executor(second, crew), call(instance_id=4)) == Succeeded()


async def test_a_claim_that_was_lost_while_it_waited_for_a_place_never_begins():
    gate = asyncio.Event()
    crew = Crew(1, is_held=lambda call: call.instance_id == 1)
    first = asyncio.create_task(run(executor(gate.wait, crew), call()))
    waiting = asyncio.create_task(run(executor(gate.wait, crew), call(instance_id=2)))
    await asyncio.sleep(0)
    gate.set()
    assert await waiting == NotSent()
    assert await first == Succeeded("true")


async def test_a_function_fails_when_the_task_that_it_awaits_is_cancelled():
    async def confused() -> None:
        inner = asyncio.create_task(asyncio.sleep(60))
        asyncio.get_running_loop().call_soon(inner.cancel)
        await inner

    failed = await outcome(confused)
    assert isinstance(failed, FailedRetryable)
    assert failed.code == "CancelledError"


async def test_a_stopping_worker_cancels_the_attempt_itself():
    async def endless() -> None:
        await asyncio.Event().wait()

    running = asyncio.create_task(run(executor(endless), call()))
    await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


async def test_a_payload_that_does_not_fit_is_a_dead_letter_and_the_function_does_not_begin():
    began = False

    async def typed(instance: Instance[int]) -> None:
        nonlocal began
        began = True

    failed = await outcome(typed, payload='"seven"')
    assert isinstance(failed, FailedUnrecoverable)
    assert failed.code == "PAYLOAD_INVALID"
    assert not began


async def test_a_result_that_cannot_be_stored_is_a_dead_letter_that_says_so():
    failed = await outcome(lambda: "x" * 70_000)
    assert isinstance(failed, FailedUnrecoverable)
    assert failed.code == "RESULT_INVALID"
    assert "has done its work" in failed.message


async def test_an_instance_tells_who_it_is():
    seen: list[Instance[Any]] = []
    await run(executor(seen.append), call('{"a": 1}'))
    (instance,) = seen
    assert (instance.id, instance.key, instance.attempt, instance.fence) == ("1", "k", 1, 3)
    assert instance.unit == "default:job:k"
    assert instance.payload == {"a": 1}
    assert instance.payload is instance.payload
    with pytest.raises(ValueError, match="between 0 and 1"):
        instance.progress(1.5)


async def test_a_function_goes_on_in_the_task_that_began_it():
    tasks: list[asyncio.Task[Any] | None] = []

    async def waits() -> None:
        tasks.append(asyncio.current_task())
        async with asyncio.timeout(30):
            await asyncio.sleep(0)
        tasks.append(asyncio.current_task())

    assert await outcome(waits, timeout=timedelta(seconds=5)) == Succeeded()
    assert tasks == [asyncio.current_task()] * 2


async def test_a_timeout_ends_a_function_that_only_yields_to_the_event_loop():
    async def polls() -> str:
        give_up_at = time.monotonic() + 2
        while time.monotonic() < give_up_at:
            await asyncio.sleep(0)
        return "not stopped"

    failed = await outcome(polls, timeout=timedelta(milliseconds=20))
    assert isinstance(failed, FailedRetryable)
    assert failed.code == "TIMEOUT"


async def test_an_awaitable_that_is_no_coroutine_is_awaited():
    def returns_a_future(instance: Instance[Any]) -> asyncio.Future[int]:
        future = asyncio.get_running_loop().create_future()
        future.set_result(instance.attempt)
        return future

    executor = AsyncFunction(returns_a_future, signature_of(returns_a_future), Crew(1), "job")
    assert await run(executor, call()) == Succeeded("1")


async def test_a_call_that_ends_without_a_wait_leaves_its_place_free():
    crew = Crew(1)

    async def at_once() -> None:
        pass

    for number in range(3):
        assert executor(at_once, crew).run(call(instance_id=number)) == Succeeded()
    assert crew.enter("")
