"""Late slots of the policy `all`: every one of them made once, bit by bit, and fresh ones beside them."""

from datetime import datetime, timedelta
from typing import Any

import make
import pytest
from stages import Workbench, workbench

from faults.outside import violations
from horai.core import catch_up_pace
from horai.core.outcome import NotSent
from horai.db import catch_ups
from horai.operations import jobs as accepted
from horai.time.schedule import EverySchedule, fires_between

MINUTE = timedelta(minutes=1)
EVERY_MINUTE = EverySchedule(MINUTE)


async def behind(bench: Workbench, ago: timedelta, count: int = 1, **fields: Any) -> list[datetime]:
    """Jobs whose schedule stands `ago` in the past; the slots since, the coming one not included."""
    for n in range(count):
        await make.job(bench.scope, f"job-{n}", **{"every": "1m", "misfire": "all", **fields})
    now = bench.clock.now()
    passed = [*fires_between(EVERY_MINUTE, now - ago, now, 10_000)]
    await bench.connection.execute("update horai.job set active_from = $1", now - ago)
    await bench.connection.execute("update horai.schedule set fire_time = $1", passed[0])
    return passed


async def slots(bench: Workbench, job: str = "job-0") -> list[datetime]:
    """The slots of a job, in order."""
    found = await bench.connection.fetch(
        "select fire_time from horai.job_instance join horai.job on job.id = job_id where name = $1 order by 1", job
    )
    return [row["fire_time"] for row in found]


async def work(bench: Workbench, catch_up_stage: Any, steps: int = 60) -> None:
    """The trigger goes on, the catcher makes late slots, and what it makes is worked off at once."""
    trigger, dispatcher = bench.trigger(), bench.dispatcher()
    bench.executor.gate.set()
    for _ in range(steps):
        await trigger.step(bench.clock.now())
        await catch_up_stage.step(bench.clock.now())
        await bench.until_idle(dispatcher)
        await bench.settle()


async def test_every_late_slot_is_made_once_for_every_job(url: str):
    async with workbench(url) as bench:
        passed = await behind(bench, timedelta(hours=2), 3)

        await work(bench, bench.catch_up_stage())

        for n in range(3):
            assert (await slots(bench, f"job-{n}"))[: len(passed)] == passed
        assert await bench.connection.fetchval("select count(*) from horai.catchup") == 0
        assert await bench.connection.fetchval("select count(*) from horai.skip") == 0


async def test_a_fresh_slot_does_not_wait_for_the_late_ones(url: str):
    async with workbench(url) as bench:
        passed = await behind(bench, timedelta(hours=2))
        trigger = bench.trigger()

        for _ in range(3):
            await trigger.step(bench.clock.now())

        late = [slot for slot in passed if slot < bench.clock.now() - timedelta(seconds=59)]
        fresh = await slots(bench)
        assert fresh[: len(passed) - len(late)] == passed[len(late) :]
        assert await bench.connection.fetchval("select fire_time from horai.schedule") == max(fresh) + MINUTE


async def test_no_more_are_made_than_the_lane_works_off(url: str):
    async with workbench(url) as bench:
        await behind(bench, timedelta(hours=10))
        trigger, catch_up_stage = bench.trigger(), bench.catch_up_stage()
        await trigger.step(bench.clock.now())

        for _ in range(5):
            await catch_up_stage.step(bench.clock.now())

        assert len(await slots(bench)) <= catch_up_pace.FIRST + 2, "no worker runs: the other slots are not made"


async def test_a_paused_job_catches_up_when_it_is_resumed(url: str):
    async with workbench(url) as bench:
        passed = await behind(bench, timedelta(hours=1))
        await bench.trigger().step(bench.clock.now())
        await accepted.pause_job(bench.scope, "job-0", None)
        catch_up_stage = bench.catch_up_stage()
        await catch_up_stage.step(bench.clock.now())
        assert len(await slots(bench)) <= 2

        await accepted.resume_job(bench.scope, "job-0", None)
        await work(bench, catch_up_stage)

        assert (await slots(bench))[: len(passed)] == passed


async def test_a_pause_is_made_up_for_like_a_downtime(url: str):
    async with workbench(url) as bench:
        passed = await behind(bench, timedelta(hours=3))
        await accepted.pause_job(bench.scope, "job-0", None)
        await bench.connection.execute("update horai.schedule set fire_time = $1", passed[-1] + MINUTE)

        await accepted.resume_job(bench.scope, "job-0", None)
        await work(bench, bench.catch_up_stage())

        assert (await slots(bench))[: len(passed)] == passed


@pytest.mark.parametrize("misfire", ["skip", "once", "all"])
async def test_a_pause_while_the_schedule_is_behind_loses_no_slot(url: str, misfire: str):
    async with workbench(url) as bench:
        passed = await behind(bench, timedelta(minutes=10), misfire=misfire)
        await accepted.pause_job(bench.scope, "job-0", None)
        for _ in range(5):
            await bench.trigger().step(bench.clock.now())

        await accepted.resume_job(bench.scope, "job-0", None)
        await work(bench, bench.catch_up_stage())

        made = await slots(bench)
        skipped = await bench.connection.fetch("select from_time, to_time from horai.skip where job_id is not null")
        left_out = [at for at in passed if any(row["from_time"] <= at <= row["to_time"] for row in skipped)]
        assert sorted([*made, *left_out])[: len(passed)] == passed, "each slot once: made, or kept as skipped"
        late = [at for at in passed if at < bench.clock.now() - timedelta(seconds=70)]
        assert len([at for at in made if at in late]) in {"skip": {0}, "once": {0, 1}, "all": {len(late)}}[misfire]


async def test_late_slots_still_to_be_made_for_a_deleted_job_are_recorded_as_skipped(url: str):
    async with workbench(url) as bench:
        passed = await behind(bench, timedelta(hours=3))
        await bench.trigger().step(bench.clock.now())

        await accepted.delete_job(bench.scope, "job-0")

        (skip,) = await bench.connection.fetch("select * from horai.skip")
        assert skip["reason"] == "JOB_DELETED"
        assert skip["from_time"] <= passed[0]
        assert await bench.connection.fetchval("select count(*) from horai.catchup") == 0


async def test_late_slots_that_may_not_overlap_are_made_one_after_the_other(url: str):
    async with workbench(url) as bench:
        passed = await behind(bench, timedelta(minutes=10), overlap="queue")
        trigger, catch_up_stage, overlap_gate = bench.trigger(), bench.catch_up_stage(), bench.overlap_gate()
        dispatcher = bench.dispatcher()
        await trigger.step(bench.clock.now())
        await catch_up_stage.step(bench.clock.now())
        await overlap_gate.step(bench.clock.now())
        await catch_up_stage.step(bench.clock.now())
        assert len(await slots(bench)) <= 2, "one late slot, and perhaps a fresh one"

        bench.executor.gate.set()
        for _ in range(30):
            await trigger.step(bench.clock.now())
            await catch_up_stage.step(bench.clock.now())
            await overlap_gate.step(bench.clock.now())
            await bench.until_idle(dispatcher)
            await bench.settle()

        assert (await slots(bench))[: len(passed)] == passed
        assert set(await bench.states()) == {"SUCCESS"}, "no slot was cancelled for another"


async def test_late_slots_that_a_jitter_puts_off_do_not_hold_up_the_lane(url: str):
    async with workbench(url) as bench:
        await make.job(bench.scope, "spread", every="1m", misfire="all", jitter="24h")
        passed = await behind(bench, timedelta(hours=2))
        await bench.connection.execute("update horai.schedule set fire_time = $1", passed[0])

        await work(bench, bench.catch_up_stage())

        assert (await slots(bench))[: len(passed)] == passed


async def test_catch_up_counts_calls_that_a_host_had_no_room_for_as_waiting(url: str):
    async with workbench(url) as bench:
        await behind(bench, timedelta(hours=10))
        bench.executor.answer = lambda _: NotSent(timedelta(seconds=60))

        await work(bench, bench.catch_up_stage(), 8)

        assert len(await slots(bench)) <= catch_up_pace.FIRST + 2


async def test_the_invariants_hold_while_late_slots_are_still_to_be_made(url: str):
    async with workbench(url) as bench:
        await behind(bench, timedelta(hours=3))
        trigger, catch_up_stage = bench.trigger(), bench.catch_up_stage()
        for _ in range(3):
            await trigger.step(bench.clock.now())
        await catch_up_stage.step(bench.clock.now())

        assert await bench.connection.fetchval("select count(*) from horai.catchup") == 1
        assert await violations(bench.connection) == []


async def test_the_invariants_know_excluded_dates(url: str):
    async with workbench(url) as bench:
        today = bench.clock.now().replace(hour=0, minute=0, second=0, microsecond=0)
        yesterday = today - timedelta(days=1)
        job = await make.job(bench.scope, "shut", every="1h", calendar=[yesterday.date().isoformat()])
        await bench.connection.execute("update horai.job set active_from = '2020-01-01'")
        await catch_ups.make_late_slots(bench.connection, [(job.id, yesterday - timedelta(hours=1)), (job.id, today)])

        assert await violations(bench.connection) == []
