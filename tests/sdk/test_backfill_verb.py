"""`job.backfill(…)`."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from harness import node
from working import working

from horai import BackfillPlan, Horai, Instance
from horai.core.backfill_status import BackfillStatus
from horai.core.errors import AlreadyFinal, Duplicate, Invalid

START = datetime(2026, 1, 10, tzinfo=UTC)
HOUR = timedelta(hours=1)


async def test_C1l_C21_a_job_runs_slots_of_its_past_and_is_waited_for(url: str):
    app, ran, begun = Horai("shop", database_url=url), list[datetime](), datetime.now(UTC)

    @app.job(every="1h")
    async def hourly(instance: Instance[None]) -> None:
        ran.append(instance.fire_time)

    plan = await hourly.backfill(START, START + 24 * HOUR, dry_run=True)
    assert plan == BackfillPlan(24, 24, START, START + 23 * HOUR)
    async with node(url), working(app):  # a worker runs slots; a node makes them
        backfill = await hourly.backfill(START, START + 24 * HOUR, max_concurrency=5)
        done = await backfill.wait(timeout="20s")
        again = await hourly.backfill(START, START + 24 * HOUR)
        nothing = await again.wait(timeout=30)

    backfilled = [at for at in ran if at < begun]  # the schedule makes a slot of its own if a full hour comes meanwhile
    assert sorted(backfilled) == [START + n * HOUR for n in range(24)]
    assert (done.status, done.succeeded, done.percent, done.is_over) == (BackfillStatus.DONE, 24, 100.0, True)
    assert (again.total, nothing.made, nothing.skipped) == (0, 0, 24)


async def test_C21_a_backfill_is_paused_resumed_and_cancelled(url: str):
    app = Horai("shop", database_url=url)

    @app.job(every="1h")
    async def hourly() -> None: ...

    backfill = await hourly.backfill(START, START + 3 * HOUR, rate="1/m")
    assert (await backfill.pause("a busy day")).status is BackfillStatus.PAUSED
    assert (await backfill.resume()).status is BackfillStatus.RUNNING
    told = await backfill.progress()
    assert (told.total, told.made, told.is_over) == (3, 0, False)
    assert told.eta is not None
    with pytest.raises(TimeoutError):
        await backfill.wait(timeout=0.05)
    assert (await backfill.cancel()).status is BackfillStatus.CANCELLED
    with pytest.raises(AlreadyFinal):
        await backfill.resume()
    await app.close()


async def test_C21_a_repeated_call_gets_the_first_backfill(url: str):
    app = Horai("shop", database_url=url)

    @app.job(every="1h")
    async def hourly() -> None: ...

    first = await hourly.backfill(START, START + HOUR, idempotency_key="k")
    again = await hourly.backfill(START, START + HOUR, idempotency_key="k")
    assert first.id == again.id
    with pytest.raises((Duplicate, Invalid)):
        await hourly.backfill(START, START + 2 * HOUR, idempotency_key="k")
    await app.close()


async def test_C21_an_invalid_backfill_call_is_refused(url: str):
    app = Horai("shop", database_url=url)

    @app.job(every="1h")
    async def hourly() -> None: ...

    with pytest.raises(Invalid, match="from: has no UTC offset"):
        await hourly.backfill(datetime(2026, 1, 10))  # noqa: DTZ001 — that is what is wrong with it
    with pytest.raises(Invalid, match="is not a mode"):
        await hourly.backfill(START, mode="every")  # pyright: ignore[reportCallIssue, reportArgumentType]
    with pytest.raises(Invalid, match="rate"):
        await hourly.backfill(START, START + HOUR, rate="fast")
    with pytest.raises(Invalid, match="from: is not before to"):
        await hourly.backfill(START, START)
    await app.close()


async def test_C21_a_thread_backfills_without_an_event_loop(url: str):
    app = Horai("shop", database_url=url)

    @app.job(every="1h")
    async def hourly() -> None: ...

    def story() -> None:
        assert hourly.sync.backfill(START, START + 2 * HOUR, dry_run=True).total == 2
        backfill = hourly.sync.backfill(START, START + 2 * HOUR)
        assert (backfill.total, backfill.wait("20s").succeeded) == (2, 2)
        slow = hourly.sync.backfill(START, START + 2 * HOUR, mode="all", rate="1/h")
        assert slow.pause().status is BackfillStatus.PAUSED
        assert slow.resume().status is BackfillStatus.RUNNING
        assert slow.cancel().status is BackfillStatus.CANCELLED
        assert slow.progress().total == 2

    async with node(url), working(app):  # a worker runs slots; a node makes them
        await asyncio.to_thread(story)
        app.close_sync()
