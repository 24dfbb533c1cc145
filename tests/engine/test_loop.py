"""The one runner of all stages."""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Literal, cast

from horai.core.health import EngineHealth
from horai.db.clock import DatabaseClock
from horai.db.stage_connection import StageConnection
from horai.engine import loop

HOUR = timedelta(hours=1)


class HandClock:
    """A monotonic clock that tests move."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class FakeLine:
    def __init__(self) -> None:
        self.drops = 0
        self.turn = asyncio.Lock()

    def drop(self) -> None:
        self.drops += 1

    async def rest(self) -> None: ...


class FakeStage:
    """Counts its steps; `during` runs inside each of them."""

    name = "fake"

    def __init__(self, pause: timedelta = HOUR) -> None:
        self.signal = asyncio.Event()
        self.fake_line = FakeLine()
        self.line = cast("StageConnection", self.fake_line)
        self.steps = 0
        self.pause = pause
        self.stepped = asyncio.Condition()
        self.during: Callable[[int], None] = lambda _: None

    async def step(self, now: datetime) -> datetime:
        self.steps += 1
        async with self.stepped:
            self.stepped.notify_all()
        self.during(self.steps)
        return now + self.pause

    async def until(self, steps: int) -> None:
        async with asyncio.timeout(30), self.stepped:
            await self.stepped.wait_for(lambda: self.steps >= steps)
        for _ in range(10):
            await asyncio.sleep(0)


def database_clock(monotonic: Callable[[], float] = time.monotonic) -> DatabaseClock:
    clock = DatabaseClock(monotonic)
    clock.observe(datetime.now(UTC), monotonic())
    return clock


@asynccontextmanager
async def running(
    stage: FakeStage, health: EngineHealth | None = None, after: timedelta = timedelta(0)
) -> AsyncGenerator[None]:
    task = asyncio.create_task(loop.run(stage, database_clock(), health or EngineHealth(), after))
    try:
        yield
    finally:
        assert not task.done(), "no error of a step ends the loop"
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_E4_E5_twenty_wakes_before_the_loop_runs_are_one_step():
    stage = FakeStage()
    async with running(stage):
        await stage.until(1)
        for _ in range(20):
            stage.signal.set()
        await stage.until(2)

        assert stage.steps == 2


async def test_E4_wakes_before_the_first_step_are_served_by_it():
    stage = FakeStage()
    for _ in range(20):
        stage.signal.set()
    async with running(stage):
        await stage.until(1)

        assert stage.steps == 1


class FakeBackgroundStage(FakeStage):
    is_background: Literal[True] = True


async def test_a_background_stage_begins_when_its_time_is_over_and_any_other_at_once():
    usual, early, late = FakeStage(), FakeBackgroundStage(), FakeBackgroundStage()
    late.signal.set()
    async with running(usual, after=HOUR), running(late, after=HOUR), running(early, after=timedelta(milliseconds=20)):
        await usual.until(1)
        await early.until(1)

        assert late.steps == 0


async def test_a_wake_during_a_step_brings_one_more():
    stage = FakeStage()

    def wake_during_the_first(step: int) -> None:
        if step == 1:
            for _ in range(5):
                stage.signal.set()

    stage.during = wake_during_the_first
    async with running(stage):
        await stage.until(2)

        assert stage.steps == 2


async def test_without_any_wake_the_timer_fires():
    stage = FakeStage(timedelta(milliseconds=20))
    async with running(stage):
        await stage.until(4)


async def test_an_error_drops_the_connection_and_the_step_is_tried_again():
    stage, health = FakeStage(), EngineHealth()

    def fail_twice(step: int) -> None:
        if step <= 2:
            raise ConnectionResetError("gone")

    stage.during = fail_twice
    async with running(stage, health):
        await stage.until(1)
        assert health.beats == {}, "a failing loop gives no sign of life"
        await stage.until(3)

        assert stage.fake_line.drops == 2
        assert "fake" in health.beats


async def test_a_success_promises_when_the_next_one_comes():
    stage, health = FakeStage(timedelta(seconds=100)), EngineHealth()
    async with running(stage, health):
        await stage.until(1)

        assert 129 < health.patience["fake"] <= 130


async def test_no_sleep_is_longer_than_a_second_without_a_look_at_the_clock():
    """The database's clock jumps by an hour: a sleep for the whole time would not notice."""
    monotonic = HandClock()
    clock = database_clock(monotonic)
    waiting = asyncio.create_task(loop.wait_until(asyncio.Event(), clock, clock.now() + HOUR))
    await asyncio.sleep(0)
    monotonic.now += 3601

    async with asyncio.timeout(loop.LONGEST_SLEEP + 1):
        await waiting


async def test_a_set_signal_is_not_waited_for():
    signal = asyncio.Event()
    signal.set()
    clock = database_clock()

    async with asyncio.timeout(loop.LONGEST_SLEEP * 0.9):
        await loop.wait_until(signal, clock, clock.now() + HOUR)


async def test_a_moment_that_has_passed_is_not_waited_for():
    clock = database_clock()

    async with asyncio.timeout(loop.LONGEST_SLEEP * 0.9):
        await loop.wait_until(asyncio.Event(), clock, clock.now() - HOUR)


class FakeSharer(FakeStage):
    """Notes the begin and the end of each step, which takes many turns of the event loop."""

    def __init__(self, name: str, line: StageConnection, noted: list[str]) -> None:
        super().__init__()
        self.name, self.line, self.noted = name, line, noted

    async def step(self, now: datetime) -> datetime:
        self.noted.append(f"{self.name} begins")
        for _ in range(100):
            await asyncio.sleep(0)
        self.noted.append(f"{self.name} ends")
        return await super().step(now)


async def test_stages_that_share_a_connection_step_one_after_the_other():
    noted: list[str] = []
    first = FakeSharer("first", FakeStage().line, noted)
    second = FakeSharer("second", first.line, noted)
    async with running(first), running(second):
        await first.until(1)
        await second.until(1)

    assert noted == ["first begins", "first ends", "second begins", "second ends"]
