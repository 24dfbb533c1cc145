"""Functions in a virtual time: they log, wait, fail to end, and share the time with what runs beside them."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import pytest
from virtual_shop import START, application, at

from horai import Instance, InstanceFailed, Retry, RetryLater
from horai.testing import Harness, NotEnded, Stuck


async def test_progress_and_log_lines_of_functions_are_stored_with_their_attempt() -> None:
    app = application()

    @app.job(retry=Retry(base="1s", jitter="none"))
    def export(instance: Instance[Any]) -> None:
        instance.progress(0.5, "half of it")
        instance.log(f"attempt {instance.attempt}")
        if instance.attempt == 1:
            raise OSError("disk full")

    async with Harness(app, START) as time:
        await export.enqueue()
        await time.advance("1m")

        first, second = time.fired(export)
        assert (first.progress, first.log) == (0.5, ["half of it", "attempt 1"])
        assert second.log == ["half of it", "attempt 2"]
        connection = await asyncpg.connect(time.database_url)
        notes = await connection.fetch("select attempt, at, message from horai.note order by fence, n")
        await connection.close()
        assert [tuple(note) for note in notes] == [
            (1, at(8), "half of it"),
            (1, at(8), "attempt 1"),
            (2, at(8, 0, 2), "half of it"),
            (2, at(8, 0, 2), "attempt 2"),
        ]


async def test_an_instance_can_be_run_on_the_spot() -> None:
    app = application()

    @app.job
    async def double(number: int) -> int:
        return number * 2

    @app.job(retry=Retry(base="10m", cap="24h"))
    async def flaky(instance: Instance[Any]) -> int:
        if instance.attempt < 3:
            raise ConnectionError
        return instance.attempt

    @app.job(retry=Retry(max=0))
    async def broken() -> None:
        raise ValueError("always")

    async with Harness(app, START) as time:
        assert await time.run(double, 21) == 42
        assert time.now == START
        assert await time.run(flaky) == 3
        assert time.now == at(9)  # 20 and 40 minutes later
        with pytest.raises(InstanceFailed, match="always"):
            await time.run(broken)


async def test_a_function_may_wait_for_another() -> None:
    app = application()

    @app.job
    async def part(number: int) -> int:
        return number * number

    @app.job
    async def whole() -> int:
        parts = await part.enqueue_many([1, 2, 3])
        return sum([await each.result() for each in parts])

    async with Harness(app, START) as time:
        assert await time.run(whole) == 14
        assert [fired.job for fired in time.fired()] == ["whole", "part", "part", "part"]


async def test_a_function_that_is_not_async_uses_the_same_time() -> None:
    app = application()

    @app.job
    def later(instance: Instance[Any]) -> None: ...

    @app.job
    def first() -> str:
        later.sync.enqueue(delay="1h")
        return later.sync.put("now", delay=0).id

    async with Harness(app, START) as time:
        await time.advance("30m")
        await time.run(first)
        await time.advance("1d")

        assert [fired.ran_at for fired in time.fired(later)] == [at(8, 30), at(9, 30)]


async def test_a_result_that_is_not_there_yet_is_not_waited_for() -> None:
    app = application()

    @app.job
    async def remind() -> str:
        return "reminded"

    async with Harness(app, START) as time:
        handle = await remind.enqueue(delay="1h")
        with pytest.raises(NotEnded, match="INIT, due at 2026-03-01T09:00:00"):
            await handle.result()
        await time.advance("1h")
        assert await handle.result() == "reminded"
        assert await (await remind.enqueue()).result() == "reminded"  # due: it need not be asked to run


async def test_the_harness_names_the_job_or_error_that_does_not_end() -> None:
    app = application()

    @app.job
    async def hangs() -> None:
        await asyncio.Event().wait()

    @app.job
    async def restless() -> None:
        raise RetryLater(0)

    async with Harness(app, START, patience="500ms") as time:
        await hangs.enqueue()
        with pytest.raises(Stuck, match="still running: hangs"):
            await time.drain()
    async with Harness(app, START, patience="500ms") as time:
        await restless.enqueue()
        with pytest.raises(Stuck, match="RetryLater"):
            await time.advance("1h")


async def test_after_an_outage_the_misfire_policy_decides() -> None:
    app = application()

    @app.job(cron="0 * * * *")
    async def hourly() -> None: ...

    async with Harness(app, START) as time:
        await time.outage("5h30m")

        (only,) = time.fired(hourly)
        assert (only.fire_time, only.ran_at) == (at(13), at(13, 30))


async def test_time_moves_forward_and_by_one_hand() -> None:
    app = application()
    errors: list[str] = []

    async with Harness(app, START) as time:

        @app.job
        async def meddler() -> None: ...

        with pytest.raises(ValueError, match="is in the past"):
            await time.advance_to("2026-03-01T07:00:00Z")
        with pytest.raises(ValueError, match="UTC offset"):
            await time.advance_to("2026-03-01T09:00:00")
        with pytest.raises(ValueError, match="not a job of this application"):
            time.fired("metler")

    @app.job
    async def clumsy() -> None:
        try:
            await time.advance("1h")
        except RuntimeError as error:
            errors.append(str(error))

    async with Harness(app, START) as time:
        await time.run(clumsy)
        assert len(errors) == 1
        assert time.now == START


async def test_the_application_is_its_own_again_afterwards() -> None:
    app = application()

    @app.job
    async def charge() -> None: ...

    async with Harness(app, START):
        with pytest.raises(RuntimeError, match="Another harness with the application"):
            async with Harness(app, START):
                pass
    assert "client" not in vars(app)

    async with Harness(app) as time:
        assert abs(time.now - datetime.now(UTC)) < timedelta(minutes=1)
        assert await time.drain() == []


async def test_without_an_event_loop_the_verbs_are_not_awaited() -> None:
    app = application()

    @app.job(every="1h")
    def sweep() -> None: ...

    @app.job
    def double(number: int) -> int:
        return number * 2

    def test() -> None:
        with Harness(app, START) as time:
            handle = double.sync.enqueue(4, delay="30m")
            assert len(time.advance("2h")) == 3
            assert handle.result() == 8
            assert time.run(double, 5) == 10
            time.crash(double)
            time.fail(double, ValueError("no"))
            assert time.run(double, 6) == 12
            assert [fired.error for fired in time.fired(double)[-3:]] == ["NODE_LOST", "ValueError", None]
            assert time.advance_to(time.now) == time.drain() == []
            assert len(time.outage("1h")) == 1

    await asyncio.to_thread(test)


async def test_a_service_in_an_event_loop_of_its_own_uses_the_same_time() -> None:
    app = application()

    @app.job
    async def publish(instance: Instance[Any]) -> None: ...

    async def serve() -> None:
        async with app:
            await publish.put("article:1", delay="1h")
            await publish.put("article:2", delay="2h")
            assert await publish.cancel("article:2")
            await publish.trigger("at once")

    async with Harness(app, START) as time:
        await time.advance("1d")
        await asyncio.to_thread(lambda: asyncio.run(serve()))
        await time.advance("1d")

        assert [(fired.key, fired.ran_at) for fired in time.fired(publish)] == [
            (None, at(8, day=2)),
            ("article:1", at(9, day=2)),
        ]
