"""Jobs in a virtual time: everything at its own moment, in order, on the product's SQL."""

import asyncio
import time as real
from datetime import datetime
from typing import Any, Literal

import pytest
from virtual_shop import START, application, at

from horai import Instance, InstanceFailed, Retry, RetryLater, Unrecoverable
from horai.core.put import PutDecision
from horai.testing import Harness


async def test_a_cron_job_keeps_to_the_wall_clock_when_the_clocks_change() -> None:
    app = application()

    @app.job(cron="30 2 * * *", timezone="Europe/Berlin")
    async def nightly() -> None: ...

    async with Harness(app, start="2026-03-27T12:00:00+01:00") as time:
        await time.advance("3d")
        spring = [fired.fire_time.isoformat() for fired in time.fired(nightly)]

    assert spring == [
        "2026-03-28T01:30:00+00:00",
        "2026-03-29T01:00:00+00:00",  # 02:30 does not exist: the first instant after the gap
        "2026-03-30T00:30:00+00:00",
    ]


async def test_an_interval_fires_at_each_of_its_moments() -> None:
    app = application()

    @app.job(every="15m")
    async def sync_stock() -> None: ...

    async with Harness(app, START) as time:
        fired = await time.advance("1h")

    assert [one.ran_at for one in fired] == [at(8, 15), at(8, 30), at(8, 45), at(9)]
    assert all(one.ran_at == one.fire_time and one.state == "SUCCESS" for one in fired)


async def test_a_retry_comes_when_its_back_off_is_over() -> None:
    app = application()

    @app.job(retry=Retry(max=3, base="10s"))
    async def charge(instance: Instance[Any]) -> str:
        if instance.attempt < 3:
            raise ConnectionError("the bank is away")
        return "paid"

    async with Harness(app, START) as time:
        handle = await charge.enqueue({"order": 7})
        await time.advance("20s")
        assert [fired.state for fired in time.fired(charge)] == ["FAIL", "FAIL"]

        await time.advance("40s")

        assert [fired.ran_at for fired in time.fired(charge)] == [at(8), at(8, 0, 20), at(8, 1)]
        assert [fired.error for fired in time.fired(charge)] == ["ConnectionError", "ConnectionError", None]
        assert time.fired(charge)[0].payload == {"order": 7}
        assert await handle.result() == "paid" == time.fired(charge)[-1].result


async def test_later_is_later_and_no_failure() -> None:
    app = application()

    @app.job(retry=Retry(max=0))
    async def report(instance: Instance[Any]) -> None:
        if instance.attempt < 4:
            raise RetryLater("30m")

    async with Harness(app, START) as time:
        await report.enqueue()
        await time.advance("2h")

        assert [fired.ran_at for fired in time.fired(report)] == [at(8), at(8, 30), at(9), at(9, 30)]
        assert [fired.state for fired in time.fired(report)] == ["INIT", "INIT", "INIT", "SUCCESS"]


async def test_an_unrecoverable_failure_is_dead_after_one_attempt() -> None:
    app = application()

    @app.job
    async def ship() -> None:
        raise Unrecoverable("no such address")

    async with Harness(app, START) as time:
        handle = await ship.enqueue()
        await time.advance("1d")

        (only,) = time.fired(ship)
        assert (only.state, only.error) == ("DEAD", "Unrecoverable")
        assert "no such address" in (only.message or "")
        with pytest.raises(InstanceFailed):
            await handle.result()


async def test_a_put_moves_what_waits_and_leaves_what_is_done() -> None:
    app = application()

    @app.job
    async def publish(instance: Instance[Any]) -> None: ...

    async with Harness(app, START) as time:
        first = await publish.put("article:42", at=at(10), payload={"title": "old"})
        moved = await publish.put("article:42", at=at(9), payload={"title": "new"})
        await time.advance("1d")
        again = await publish.put("article:42", delay="1h")
        await time.advance("1d")

        assert [handle.decision for handle in (first, moved, again)] == [
            PutDecision.INSERTED,
            PutDecision.UPDATED,
            PutDecision.IGNORED,
        ]
        (only,) = time.fired(publish)
        assert (only.ran_at, only.key, only.payload) == (at(9), "article:42", {"title": "new"})


async def test_a_delay_counts_from_the_virtual_now() -> None:
    app = application()

    @app.job
    async def remind(instance: Instance[Any]) -> None: ...

    async with Harness(app, START) as time:
        await time.advance("5h")
        await remind.put("user:1", delay="10m")
        await remind.enqueue(delay="20m")
        await time.advance("1h")

        assert [fired.ran_at for fired in time.fired(remind)] == [at(13, 10), at(13, 20)]


async def test_a_put_over_what_runs_replaces_it() -> None:
    app = application()
    begun, cancelled = asyncio.Event(), asyncio.Event()

    @app.job
    async def publish(instance: Instance[Any]) -> None:
        if instance.payload == "old":
            begun.set()
            await instance.cancelled()
            cancelled.set()

    async with Harness(app, START) as time:
        await publish.put("article:42", at=at(9), payload="old")
        working = asyncio.create_task(time.advance("1h"))
        await begun.wait()
        handle = await publish.put("article:42", at=at(10), payload="new")
        await working
        await time.advance("1h")

        assert cancelled.is_set()
        assert handle.decision is PutDecision.SUPERSEDED
        assert [(fired.payload, fired.state) for fired in time.fired()] == [("old", "CANCELLED"), ("new", "SUCCESS")]


async def test_an_idempotency_key_is_good_for_a_week() -> None:
    app = application()

    @app.job
    async def charge() -> None: ...

    async with Harness(app, START) as time:
        first = await charge.enqueue(idempotency_key="order:7")
        second = await charge.enqueue(idempotency_key="order:7")
        await time.advance("8d")
        third = await charge.enqueue(idempotency_key="order:7")
        await time.drain()

        assert (first.duplicate, second.duplicate, third.duplicate) == (False, True, False)
        assert second.id == first.id != third.id
        assert len(time.fired(charge)) == 2


@pytest.mark.parametrize(("when", "runs"), [("before", 1), ("after", 2)])
async def test_a_crash_costs_an_attempt_and_the_instance_is_rescued(
    when: Literal["before", "after"], runs: int
) -> None:
    app = application()
    ran: list[int] = []

    @app.job
    async def charge(instance: Instance[Any]) -> None:
        ran.append(instance.attempt)

    async with Harness(app, START) as time:
        time.crash(charge, when=when)
        handle = await charge.enqueue()
        await time.drain()
        assert [fired.state for fired in time.fired(charge)] == ["RUNNING"]

        await time.advance("1m")
        await handle.result()

        first, second = time.fired(charge)
        assert (first.ran_at, first.state, first.error) == (at(8), "FAIL", "NODE_LOST")
        assert (second.ran_at, second.state) == (at(8, 0, 12), "SUCCESS")  # a lease of 8 s, a back-off of 4 s
        assert len(ran) == runs


async def test_a_crash_leaves_the_neighbours_alone() -> None:
    app = application()

    @app.job(retry=Retry(max_lost=5))
    async def poison() -> None: ...

    @app.job
    async def neighbour() -> None: ...

    async with Harness(app, START) as time:
        time.crash(poison, times=6)
        bad = await poison.enqueue()
        await neighbour.enqueue_many([None] * 20)
        await time.advance("1h")

        assert [fired.state for fired in time.fired(neighbour)] == ["SUCCESS"] * 20
        assert [fired.state for fired in time.fired(poison)] == ["FAIL"] * 5 + ["DEAD"]
        with pytest.raises(InstanceFailed, match="NODE_LOST"):
            await bad.result()


async def test_a_failure_on_request_takes_the_place_of_the_function() -> None:
    app = application()
    ran: list[datetime] = []

    @app.job
    async def charge(instance: Instance[Any]) -> None:
        ran.append(instance.execute_time)

    async with Harness(app, START) as time:
        time.fail(charge, TimeoutError("the bank sleeps"), times=2)
        await charge.enqueue()
        await time.advance("1m")

        assert [fired.error for fired in time.fired(charge)] == ["TimeoutError", "TimeoutError", None]
        assert ran == [at(8, 0, 3)]


async def test_jobs_interleave_in_the_order_of_time() -> None:
    app = application()

    @app.job(cron="*/20 * * * *")
    async def often() -> None: ...

    @app.job(every="30m")
    async def seldom() -> None: ...

    @app.job
    async def once() -> None: ...

    async with Harness(app, START) as time:
        await once.enqueue(at=at(8, 50))
        await once.enqueue(at=at(8, 10))
        fired = await time.advance("59m")

        assert [(one.job, one.ran_at.minute) for one in fired] == [
            ("once", 10),
            ("often", 20),
            ("seldom", 30),
            ("often", 40),
            ("once", 50),
        ]


async def test_a_year_of_a_daily_job_takes_seconds() -> None:
    app = application()

    @app.job(cron="0 9 * * *", timezone="America/New_York")
    async def daily() -> None: ...

    async with Harness(app, START) as time:
        begun = real.monotonic()
        await time.advance("365d")

        assert len({fired.fire_time for fired in time.fired(daily)}) == len(time.fired(daily)) == 365
        assert {fired.fire_time.hour for fired in time.fired(daily)} == {13, 14}
        assert real.monotonic() - begun < 60  # 2 s on a machine that has nothing else to do
