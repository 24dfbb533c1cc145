"""`continue_as_new` in a virtual time: the same instance begins again with other arguments and without records."""

from datetime import UTC, datetime

import asyncpg
import pytest

from horai import Horai, InstanceCancelled, InstanceFailed, Retry, Unrecoverable, sleep, step, wait_for
from horai.testing import Harness, crash_everywhere

START = datetime(2026, 3, 1, 8, tzinfo=UTC)
PAGES = 9


async def records(url: str) -> list[str]:
    """Return the names of all records."""
    connection = await asyncpg.connect(url)
    try:
        return [row["name"] for row in await connection.fetch("select name from horai.step order by name, n")]
    finally:
        await connection.close()


async def test_a_loop_goes_on_as_the_same_instance_and_forgets_its_records() -> None:
    app, read = Horai("crawler"), list[int]()

    async def page(number: int) -> int:
        read.append(number)
        return number

    @app.job
    async def follow(first: int, *, total: int = 0) -> int:
        for number in range(first, first + 3):
            total += await step("page", page, number)
        if first + 3 < PAGES:
            await follow.continue_as_new(first + 3, total=total)
        return total

    async with Harness(app, START) as time:
        handle = await follow.enqueue(0)
        assert await handle == sum(range(PAGES))
        assert read == list(range(PAGES))
        assert await records(time.database_url) == ["page", "page", "page"]
        (last,) = [fired for fired in time.fired(follow) if fired.state == "SUCCESS"]
        assert (last.attempt, last.id) == (1, handle.id)


async def test_a_loop_with_the_same_arguments_forgets_its_records_too() -> None:
    app, begun, counted = Horai("crawler"), list[int](), list[int]()

    async def count() -> int:
        counted.append(1)
        return len(counted)

    @app.job
    async def tick() -> int:
        begun.append(1)
        if len(begun) > 20:
            raise Unrecoverable("the step was not run again")
        number = await step("count", count)
        if number < 3:
            await tick.continue_as_new()
        return number

    async with Harness(app, START):
        assert await (await tick.enqueue()) == 3


async def test_the_effects_and_the_result_are_the_same_wherever_the_worker_dies() -> None:
    app, sent = Horai("crawler"), set[str]()

    async def send(text: str) -> str:
        sent.add(text)
        return text

    @app.job(retry=Retry(max=5))
    async def follow(left: int, *, told: list[str] | None = None) -> list[str]:
        told = [*(told or []), await step("send", send, f"message {left}")]
        await sleep("10m")
        if left:
            await follow.continue_as_new(left - 1, told=told)
        return told

    report = await crash_everywhere(follow, follow.arguments(2))
    assert report.result == ["message 2", "message 1", "message 0"]
    assert sent == set(report.result)


async def test_signals_that_were_not_taken_wait_for_the_next_run() -> None:
    app = Horai("crawler")

    @app.job
    async def collect(seen: list[str]) -> list[str]:
        seen = [*seen, await wait_for("news")]
        if len(seen) < 3:
            await collect.continue_as_new(seen)
        return seen

    async with Harness(app, START) as time:
        handle = await collect.enqueue([])
        for word in ("a", "b", "c"):
            await handle.signal("news", word)
        await time.advance("1m")
        assert await handle == ["a", "b", "c"]


async def test_a_cancel_with_compensation_is_not_lost_by_a_new_beginning() -> None:
    app, effects = Horai("crawler"), list[str]()

    async def do(what: str) -> str:
        effects.append(what)
        return what

    async def undo(what: str) -> None:
        effects.append(f"undo {what}")

    async def cancel_myself(instance: str) -> None:
        await app.handle(instance).cancel(compensate=True)

    @app.job
    async def work(instance_id: str) -> None:
        await step("room", do, "room", compensate=undo)
        await cancel_myself(instance_id)
        await work.continue_as_new("again")

    async with Harness(app, START) as time:
        handle = await work.put("one", delay="1h", payload="unknown")
        await work.put("one", delay="1h", payload=handle.id)
        await time.advance("2h")
        with pytest.raises(InstanceCancelled):
            await handle
        assert effects == ["room", "undo room"]


async def test_wrong_uses_are_refused() -> None:
    app = Horai("crawler")

    @app.job(retry=Retry(max=0))
    async def other(number: int) -> None: ...

    @app.job(retry=Retry(max=0))
    async def follow(kind: str) -> None:
        if kind == "other":
            await other.continue_as_new(1)
        await follow.continue_as_new("x" * 1_100_000)

    async with Harness(app, START):
        with pytest.raises(InstanceFailed, match="'other' cannot continue an instance of 'follow'"):
            await (await follow.enqueue("other"))
        with pytest.raises(InstanceFailed, match="larger than 1048576 bytes"):
            await (await follow.enqueue("large"))
