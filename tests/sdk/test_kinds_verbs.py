"""Kinds of work with the SDK: one-off, delayed and periodic. Backfills are in test_backfill_verb.py."""

import asyncio
from datetime import UTC, datetime, timedelta

from harness import node
from working import working

from horai import Horai, Instance

SECOND = timedelta(seconds=1)


async def test_C1i_an_instance_for_a_time_runs_once_at_that_time(url: str):
    app, ran = Horai("shop", database_url=url), list[tuple[datetime, datetime]]()

    @app.job
    async def remind(instance: Instance[None]) -> None:
        ran.append((instance.execute_time, datetime.now(UTC)))

    async with working(app):
        at = datetime.now(UTC).replace(microsecond=123_000) + SECOND
        handle = await remind.enqueue(at=at)
        await handle.result(timeout=30)

    ((due, began),) = ran
    assert due == at
    assert at <= began < at + 3 * SECOND


async def test_C1j_an_instance_with_a_delay_runs_once_after_it(url: str):
    app, ran = Horai("shop", database_url=url), list[datetime]()

    @app.job
    async def remind() -> None:
        ran.append(datetime.now(UTC))

    async with working(app):
        asked = datetime.now(UTC)
        handle = await remind.enqueue(delay="300ms")
        await handle.result(timeout=30)

    (began,) = ran
    assert timedelta(milliseconds=290) <= began - asked < 3 * SECOND


async def test_C1k_a_job_with_an_interval_runs_at_each_of_its_fire_times(url: str):
    app, ran, has_run_twice = Horai("shop", database_url=url), list[datetime](), asyncio.Event()

    @app.job(every="1s")
    async def tick(instance: Instance[None]) -> None:
        ran.append(instance.fire_time)
        if len(ran) == 2:
            has_run_twice.set()

    async with node(url), working(app):  # a worker runs the job; a node makes its slots
        async with asyncio.timeout(30):
            await has_run_twice.wait()

    assert ran[1] - ran[0] == SECOND
