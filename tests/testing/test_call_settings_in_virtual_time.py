"""`queue`, `priority` and `expires` of a call in a virtual time: exact times, retries, moves and durable functions."""

from datetime import timedelta

import pytest
from virtual_shop import START, application, at

from horai import Instance, InstanceCancelled, Retry, sleep, step
from horai.core.errors import Invalid
from horai.testing import Harness


async def test_an_instance_that_has_not_started_when_it_expires_never_starts() -> None:
    app, ran = application(), list[int]()

    @app.job
    async def send_code(number: int) -> None:
        ran.append(number)

    async with Harness(app, START) as time:
        late = await send_code.options(expires="5m", delay="10m").enqueue(1)
        gone = await send_code.options(expires="5m").enqueue(2)
        await time.outage("5m")
        assert await gone.state() == "CANCELLED"
        with pytest.raises(InstanceCancelled, match="EXPIRED"):
            await gone.result()
        await time.advance("10m")
        assert await late.state() == "SUCCESS"

    assert ran == [1]


async def test_an_instance_starts_up_to_the_last_moment_before_it_expires() -> None:
    app = application()

    @app.job
    async def send_code(number: int) -> int:
        return number

    async with Harness(app, START) as time:
        in_time = await send_code.options(expires="5m").enqueue(1)
        await time.outage(timedelta(minutes=5) - timedelta(milliseconds=1))
        assert await in_time.result() == 1
        by_instant = await send_code.options(expires=time.now + timedelta(minutes=1)).enqueue(2)
        await time.outage("1m")
        assert await by_instant.state() == "CANCELLED"


async def test_no_retry_begins_after_the_expiry_and_a_running_attempt_ends_as_it_ends() -> None:
    app, tried = application(), list[int]()

    @app.job(retry=Retry(max=5, base="2m", cap="2m", jitter="none"))
    async def send_code(instance: Instance[int]) -> None:
        tried.append(instance.attempt)
        raise ConnectionError("the gateway is away")

    async with Harness(app, START) as time:
        handle = await send_code.options(expires="5m").enqueue(1)
        await time.advance("1h")
        assert tried == [1, 2, 3]
        assert await handle.state() == "CANCELLED"
        assert [fired.ran_at for fired in time.fired(send_code)] == [at(8), at(8, 2), at(8, 4)]


async def test_a_durable_function_that_has_suspended_itself_or_recorded_a_step_no_longer_expires() -> None:
    app, attempts = application(), list[int]()

    async def book() -> int:
        return 7

    @app.job
    async def sleeper() -> str:
        await sleep("1h")
        return "rested"

    @app.job(retry=Retry(max=3, base="10m", jitter="none"))
    async def booker(instance: Instance[None]) -> int:
        booked = await step("book", book)
        attempts.append(instance.attempt)
        if len(attempts) == 1:
            raise ConnectionError("away")
        return booked

    async with Harness(app, START) as time:
        slept = await sleeper.options(expires="5m").enqueue()
        stepped = await booker.options(expires="5m").enqueue()
        await time.advance("2h")
        assert (await slept.result(), await stepped.result()) == ("rested", 7)


async def test_a_put_that_moves_an_instance_moves_its_expiry_and_a_new_one_replaces_it() -> None:
    app, ran = application(), list[str]()

    @app.job
    async def remind(name: str) -> None:
        ran.append(name)

    async with Harness(app, START) as time:
        await remind.options(at=at(9), expires="5m").put("a", "a")
        await remind.put("a", at=at(12))
        await remind.options(at=at(9), expires="5m").put("b", "b")
        await remind.options(at=at(9), expires="4h").put("b", "b")
        await time.advance_to(at(8, 59))
        await time.outage("2h")
        assert ran == ["b"]
        await time.advance_to(at(12))
        assert ran == ["b", "a"]


async def test_a_debounced_call_that_moves_its_instance_moves_the_expiry() -> None:
    app, ran = application(), list[int]()

    @app.job
    async def reindex(number: int) -> None:
        ran.append(number)

    async with Harness(app, START) as time:
        joined = reindex.options(debounce="3m", expires="1m")
        for _ in range(3):
            await joined.enqueue(1)
            await time.advance("2m")
        await time.advance("10m")

    assert ran == [1]


async def test_an_expiry_before_the_time_of_the_instance_is_refused() -> None:
    app = application()

    @app.job
    async def remind() -> None: ...

    async with Harness(app, START) as time:
        with pytest.raises(Invalid, match="expires: is not after the time of the instance"):
            await remind.options(at=at(9), expires=at(9)).enqueue()
        for given in ("0s", "soon", "2026-13-01T00:00:00Z", 0, "366d", float("inf"), True):
            with pytest.raises(Invalid, match="expires"):
                await remind.options(expires=given).enqueue()
        with pytest.raises(Invalid, match="time zone"):
            await remind.options(expires=at(9).replace(tzinfo=None)).enqueue()
        assert await time.drain() == []


async def test_instances_of_a_higher_priority_start_first_and_keep_it_through_a_retry() -> None:
    app, order = application(), list[str]()

    @app.job(retry=Retry(max=1, base="1m", jitter="none"))
    async def work(instance: Instance[str]) -> None:
        order.append(f"{instance.payload}{instance.attempt}")
        if instance.attempt == 1:
            raise ConnectionError("away")

    async with Harness(app, START) as time:
        low = await work.options(priority="low").enqueue("low")
        core = await work.options(priority="core").enqueue("core")
        await time.advance("2m")
        assert (await low.state(), await core.state()) == ("SUCCESS", "SUCCESS")

    assert sorted(order) == ["core1", "core2", "low1", "low2"]
