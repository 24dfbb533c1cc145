"""The time that coroutines keep the event loop from other work, charged step by step."""

import asyncio
from dataclasses import dataclass

import pytest

from horai.core.loop_shares import WINDOW
from horai.operations import loop_time
from horai.operations.loop_time import LoopLoad, LoopTime, metered


@dataclass
class Clock:
    """A clock that moves when a test works, not when it waits."""

    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(loop_time.time, "perf_counter", made)
    return made


async def test_each_step_is_charged_and_waiting_is_not(clock: Clock):
    gate = asyncio.Event()
    charged: list[float] = []

    async def work() -> str:
        clock.now += 1.0
        await gate.wait()
        clock.now += 2.0
        return "done"

    task = asyncio.ensure_future(_await(metered(work(), charged.append)))
    await asyncio.sleep(0)
    clock.now += 100.0
    gate.set()
    assert await task == "done"
    assert charged == [1.0, 2.0]


async def _await(awaitable: object) -> object:
    return await awaitable  # type: ignore[misc]


async def test_an_error_goes_through_and_its_step_is_charged(clock: Clock):
    charged: list[float] = []

    async def work() -> None:
        clock.now += 1.0
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        await metered(work(), charged.append)
    assert charged == [1.0]


async def test_a_cancel_reaches_the_coroutine_which_may_clean_up(clock: Clock):
    charged: list[float] = []
    cleaned: list[bool] = []

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            clock.now += 1.0
            cleaned.append(True)

    task = asyncio.ensure_future(_await(metered(work(), charged.append)))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert cleaned == [True]
    assert charged == [0.0, 1.0]


def test_the_load_is_the_share_of_the_time_that_the_thread_has_worked():
    now, worked = Clock(), Clock()
    load = LoopLoad(now, worked)
    now.now, worked.now = WINDOW / 2, WINDOW / 2
    assert load() == 0.0, "it is measured over a whole window"
    now.now, worked.now = WINDOW, WINDOW * 0.8
    assert load() == pytest.approx(0.8)


async def test_the_time_of_shared_work_is_charged_by_the_rows_of_each_tenant(clock: Clock):
    time = LoopTime()
    first, second = time.account(1), time.account(2)

    async def work() -> str:
        clock.now += 0.01
        return "done"

    assert await time.share(work(), {1: 3, 2: 1}) == "done"
    assert (first.used, second.used) == (pytest.approx(0.0075), pytest.approx(0.0025))


async def test_the_steps_of_a_call_are_charged_to_its_tenant(clock: Clock):
    time = LoopTime()
    account = time.account(1)

    async def call() -> None:
        clock.now += 0.01

    await time.run(call(), 1)
    assert (account.used, account.begun) == (pytest.approx(0.01), 1)
    assert not time.shares.is_shared
    time.account(2)
    assert time.shares.is_shared
