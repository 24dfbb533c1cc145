"""Versions of durable functions: an instance goes on in the version that wrote its first record, or waits for it."""

from datetime import UTC, datetime
from typing import Any

import pytest

from horai import Horai, InstanceFailed, Invalid, Unrecoverable, sleep, step
from horai.features.explain.service import explain_instance
from horai.testing import Harness, VirtualTime

START = datetime(2026, 3, 1, 8, tzinfo=UTC)


def name_of(what: str) -> str:
    return what


async def first_code(order: str) -> str:
    loaded = await step("load", name_of, f"1 {order}")
    await sleep("1d")
    return loaded + await step("ship", name_of, " shipped by 1")


async def second_code(order: str) -> str:
    loaded = await step("load", name_of, f"2 {order}")
    await sleep("1d")
    return loaded + await step("send", name_of, " sent by 2")


async def begun(time: VirtualTime, app: Horai) -> Any:
    handle = await app.jobs["checkout"].enqueue("A-1")
    await time.drain()
    return handle


def shop(code: Any, **options: Any) -> Horai:
    app = Horai("shop")
    app.job(name="checkout", **options)(code)
    return app


async def test_an_instance_goes_on_in_the_version_in_which_it_began() -> None:
    app = shop(first_code)
    async with Harness(app, START) as time:
        handle = await begun(time, app)
        newer = shop(second_code, version=2)
        newer.jobs["checkout"].version(1)(first_code)
        time.deploy(newer)
        fresh = await begun(time, app)
        await time.advance("2d")

        assert await handle.result() == "1 A-1 shipped by 1"
        assert await fresh.result() == "2 A-1 sent by 2"


async def test_an_instance_waits_for_a_worker_that_declares_its_version_and_says_so() -> None:
    app = shop(first_code)
    async with Harness(app, START) as time:
        handle = await begun(time, app)
        time.deploy(shop(second_code, version=2))
        await time.advance("2d")
        assert await handle.state() == "INIT"
        why = await explain_instance((await app.client()).scope, int(handle.id))
        assert "its function began in version 1, and waits for a worker that declares this version" in why.why
        assert why.holds[0].kind.name == "NOT_DUE"

        time.deploy(shop(first_code))
        await time.advance("1d")
        assert await handle.result() == "1 A-1 shipped by 1"
        assert (await handle.progress()) is None


async def test_code_without_a_version_does_not_continue_what_a_later_version_began() -> None:
    app = shop(second_code, version=2)
    async with Harness(app, START) as time:
        handle = await begun(time, app)
        time.deploy(shop(first_code))
        await time.advance("2d")
        assert await handle.state() == "INIT"

        time.deploy(app)
        await time.advance("1d")
        assert await handle.result() == "2 A-1 sent by 2"


async def test_a_version_may_continue_an_earlier_one_and_the_instance_is_then_its_own() -> None:
    app = shop(first_code)
    async with Harness(app, START) as time:
        handle = await begun(time, app)
        time.deploy(shop(second_code, version=2, continues=[1]))
        await time.advance("2d")

        assert await handle.result() == "1 A-1 sent by 2"


async def test_compensations_run_in_the_version_in_which_the_steps_ran() -> None:
    undone = list[str]()

    async def first(order: str) -> None:
        await step("book", name_of, order, compensate=lambda booked: undone.append(f"1 {booked}"))
        await sleep("1d")
        raise Unrecoverable("gone")

    async def second(order: str) -> None:
        await step("reserve", name_of, order, compensate=lambda booked: undone.append(f"2 {booked}"))

    app = shop(first)
    async with Harness(app, START) as time:
        handle = await begun(time, app)
        newer = shop(second, version=2)
        newer.jobs["checkout"].version(1)(first)
        time.deploy(newer)
        await time.advance("2d")

        with pytest.raises(InstanceFailed, match="gone"):
            await handle.result()
        assert undone == ["1 A-1"]


def test_versions_that_cannot_work_are_refused() -> None:
    def not_async(order: str) -> None: ...

    async def other_arguments(order: int) -> None: ...

    for options, message in (
        ({"version": 0}, "whole number"),
        ({"version": 2, "continues": [2]}, "itself"),
        ({"version": 2, "continues": "1"}, "list"),
    ):
        with pytest.raises(Invalid, match=message):
            shop(first_code, **options)
    with pytest.raises(Invalid, match="async"):
        shop(not_async, version=2)
    job = shop(second_code, version=2).jobs["checkout"]
    for number, code, message in (
        (2, first_code, "twice"),
        (1, not_async, "async"),
        (1, other_arguments, "other arguments"),
    ):
        with pytest.raises(Invalid, match=message):
            job.version(number)(code)
