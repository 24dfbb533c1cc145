"""Backfills and their jobs: clock changes, the schedule, pauses, other queues, gates and deletions."""

import asyncio
from datetime import UTC, datetime, timedelta

import make
import pytest
from backfill_yard import BEGIN, MINUTE, MOMENT, kinds, made, started, until_content, yard
from stages import workbench

from horai.core.backfill_status import BackfillStatus
from horai.db.catalog import sql
from horai.features.backfill import service as backfills
from horai.features.backfill.rules import BackfillRequest
from horai.operations import jobs as accepted
from horai.operations.request_keys import Once
from horai.time.schedule import CronSchedule, EverySchedule, fires_between

SPRING = ("2026-03-28T00:00+01:00", "2026-03-31T00:00+02:00")
AUTUMN = ("2025-10-25T00:00+02:00", "2025-10-28T00:00+01:00")


@pytest.mark.parametrize(
    ("days", "night"),
    [
        (SPRING, ["2026-03-28T23:30Z", "2026-03-29T00:30Z", "2026-03-29T01:00Z", "2026-03-29T01:30Z"]),
        (AUTUMN, ["2025-10-25T22:30Z", "2025-10-25T23:30Z", "2025-10-26T00:30Z", "2025-10-26T02:30Z"]),
    ],
    ids=["spring", "autumn"],
)
async def test_C21_over_a_clock_change_the_slots_are_those_of_the_schedule(
    url: str, days: tuple[str, str], night: list[str]
):
    async with workbench(url) as bench:
        place = await yard(bench, every=None, cron="30 0,1,2,3 * * *", timezone="Europe/Berlin")
        begin, end = (datetime.fromisoformat(day).astimezone(UTC) for day in days)

        backfill = await backfills.start_backfill(bench.scope, "job", BackfillRequest(begin, end, max_concurrency=3))
        await place.work()

        slots = [slot for slot, _ in await made(bench)]
        assert backfill.progress.total == len(slots) == 12, "four a day, three days, one of them of 23 or 25 hours"
        assert slots[4:8] == [datetime.fromisoformat(each) for each in night]
        schedule = CronSchedule("30 0,1,2,3 * * *", "Europe/Berlin")
        assert slots == [*fires_between(schedule, begin - MOMENT, end - MOMENT, 99)]


async def test_the_range_begins_with_from_and_ends_before_to(url: str):
    async with workbench(url) as bench:
        await yard(bench, calendar=["2026-01-11"], startAt=BEGIN + 2 * MINUTE, endAt=BEGIN + timedelta(days=3650))

        first = await started(bench, 5)
        over_a_day = await started(bench, 3 * 1440)

        assert first.progress.slots == 3, "minutes 2, 3 and 4: startAt leaves two out, and `to` is not in it"
        assert over_a_day.progress.slots == 2 * 1440 - 2, "the excluded date has none"


async def test_a_slot_that_will_come_by_itself_is_left_to_itself(url: str):
    async with workbench(url) as bench:
        await yard(bench, misfire="all")
        now = bench.clock.now()
        passed = [*fires_between(EverySchedule(MINUTE), now - 11 * MINUTE, now - MINUTE, 100)]
        await bench.connection.execute("update horai.job set active_from = $1", passed[0] - 3 * MINUTE)
        await bench.connection.execute("update horai.schedule set fire_time = $1", passed[4])

        behind = await started(bench, len(passed), begin=passed[0])
        assert (behind.progress.slots, behind.progress.total) == (len(passed), 4), "its schedule comes to the rest"

        for _ in range(3):
            await bench.trigger().step(bench.clock.now())
        deferred = await bench.connection.fetchval("select count(*) from horai.catchup")
        after = await started(bench, len(passed), begin=passed[0])
        assert (deferred, after.progress.total) == (1, 4), "the catcher makes the rest"


async def test_C21_a_slot_exactly_at_active_from_is_made_by_the_backfill_and_not_by_the_schedule(url: str):
    async with workbench(url) as bench:
        place = await yard(bench, misfire="all", misfireAfter="24h")
        now = bench.clock.now()
        passed = [*fires_between(EverySchedule(MINUTE), now - 11 * MINUTE, now - MINUTE, 100)]
        await bench.connection.execute("update horai.job set active_from = $1", passed[2])
        await bench.connection.execute("update horai.schedule set fire_time = $1", passed[0])

        backfill = await started(bench, 6, begin=passed[0])
        await place.work()
        assert [slot for slot, _ in await made(bench)] == passed[:3]
        assert (backfill.progress.slots, backfill.progress.total) == (6, 3)

        while await bench.connection.fetchval("select fire_time <= $1 from horai.schedule", passed[5]):
            await bench.trigger().step(bench.clock.now())
        slots = await made(bench)

    assert [slot for slot, _ in slots if slot <= passed[5]] == passed[:6], "each slot once"


async def test_C21_while_its_job_is_paused_a_backfill_waits(url: str):
    async with workbench(url) as bench:
        place = await yard(bench)
        backfill = await started(bench, 12, max_concurrency=4)
        await place.step()
        await accepted.pause_job(bench.scope, "job", None)
        await place.work(3)
        assert len(await made(bench)) == 4
        parked = await bench.connection.fetch("select lane from horai.instance_live")
        assert {row["lane"] for row in parked} == {0}

        await accepted.resume_job(bench.scope, "job", None)
        priorities = await bench.connection.fetch(
            "select distinct lane.priority from horai.instance_live live join horai.lane on lane.id = live.lane"
        )
        assert [row["priority"] for row in priorities] == [3], "back to where they were"
        await place.work()

        assert (await place.read(backfill)).status is BackfillStatus.DONE


async def test_another_queue_takes_a_backfill_along_and_keeps_it_low(url: str):
    async with workbench(url) as bench:
        place = await yard(bench)
        await started(bench, 12, max_concurrency=4)
        await place.step()

        await accepted.change_job(bench.scope, "job", accepted.JobChange({"queue": "other", "priority": "high"}))
        await place.step()

        lanes = await bench.connection.fetch(
            "select distinct lane.queue, lane.priority from horai.instance_live live join horai.lane on lane.id = live.lane"
        )
        assert [tuple(row) for row in lanes] == [("other", 3)]


async def test_C21_with_its_job_deleted_a_backfill_is_cancelled(url: str):
    async with workbench(url) as bench:
        place = await yard(bench)
        backfill = await started(bench, 12, max_concurrency=4)
        await place.step()

        await accepted.delete_job(bench.scope, "job")
        await place.step()

        ended = await place.read(backfill)
        assert (ended.status, ended.progress.cancelled) == (BackfillStatus.CANCELLED, 4)
        assert (ended.note, ended.finished_at is not None) == ("the job was deleted", True)


@pytest.mark.parametrize("overlap", ["skip", "queue", "replace"])
async def test_a_backfill_passes_no_gate_and_no_gate_minds_it(url: str, overlap: str):
    async with workbench(url) as bench:
        place = await yard(bench, overlap=overlap, misfireAfter="24h")
        overlap_gate = bench.overlap_gate()
        backfill = await started(bench, 3)
        assert backfill.max_concurrency == 1, "one at a time by default"
        await place.step()
        await overlap_gate.step(bench.clock.now())
        await bench.until_idle(place.dispatcher)
        assert await bench.states() == {"RUNNING": 1}

        now = bench.clock.now()
        (slot,) = fires_between(EverySchedule(MINUTE), now - 2 * MINUTE, now, 1)
        await bench.connection.execute("update horai.job set active_from = '2020-01-01'")
        await bench.connection.execute("update horai.schedule set fire_time = $1", slot)
        await bench.trigger().step(bench.clock.now())
        overlap_gate.rescan_all()
        await overlap_gate.step(bench.clock.now())
        await bench.until_idle(place.dispatcher)

        assert await bench.states() == {"RUNNING": 2}, "the slot of now runs beside it"
        await place.work()
        overlap_gate.rescan_all()
        await overlap_gate.step(bench.clock.now())
        assert set(await bench.states()) == {"SUCCESS"}


async def test_a_paused_backfill_of_a_gated_job_comes_back_by_itself_alone(url: str):
    async with workbench(url) as bench:
        place = await yard(bench, overlap="queue")
        backfill = await started(bench, 3)
        await place.step()
        await accepted.pause_job(bench.scope, "job", None)
        await accepted.resume_job(bench.scope, "job", None)
        assert await bench.connection.fetchval("select count(*) from horai.instance_live where lane = 0") == 0
        await place.work()

        assert (await place.read(backfill)).status is BackfillStatus.DONE


async def test_an_instance_deleted_by_hand_does_not_stall_the_backfill(url: str):
    async with workbench(url) as bench:
        place = await yard(bench)
        backfill = await started(bench, 9, max_concurrency=3)
        await place.step()
        await bench.connection.execute(
            "delete from horai.instance_live where id = (select min(id) from horai.instance_live)"
        )

        await place.work()

        done = await place.read(backfill)
        assert (done.status, done.progress.succeeded, done.progress.cancelled) == (BackfillStatus.DONE, 8, 1)


async def test_an_unreadable_backfill_does_not_delay_another_backfill(url: str):
    async with workbench(url) as bench:
        place = await yard(bench)
        bad, good = await started(bench, 3), await started(bench, 3)
        await bench.connection.execute(
            """update horai.backfill set spec = '{"cron": "0 0 * * *", "timezone": "Mars/Olympus"}' where id = $1""",
            bad.id,
        )

        await place.work()

        assert (await place.read(good)).status is BackfillStatus.DONE


async def test_of_many_requests_with_one_key_one_backfill_is_made(url: str):
    async with workbench(url) as bench:
        await yard(bench)
        wish = BackfillRequest(BEGIN, BEGIN + 5 * MINUTE)

        asked = (backfills.start_backfill(bench.scope, "job", wish, Once("key", b"body")) for _ in range(20))
        rows = await asyncio.gather(*asked)

        assert len({row.id for row in rows}) == 1
        assert await kinds(bench) == ["BACKFILL_STARTED"]


async def test_the_look_at_known_slots_goes_by_an_index(url: str):
    async with workbench(url) as bench:
        job = await make.job(bench.scope, "job", every="1m")

        plan = await bench.connection.fetch("explain " + sql("known_slots"), job.id, BEGIN, BEGIN + MINUTE)

        assert not [row[0] for row in plan if "Seq Scan" in row[0]]


async def test_a_backfill_whose_job_has_no_worker_is_checked_less_and_less_often(url: str):
    """Two statements a second, or more, for as long as no worker came."""
    async with workbench(url) as bench:
        await make.job(bench.scope, "job", every="1m")
        await started(bench, 10, max_concurrency=1)
        backfill_stage = bench.backfill_stage()
        await until_content(bench, backfill_stage)
        tap, now = await bench.tap(backfill_stage.line), bench.clock.now()
        begin = now
        while now < begin + timedelta(minutes=10):
            now = await backfill_stage.step(now)
        looked = len(await tap.names())
        while now < begin + timedelta(minutes=20):
            now = await backfill_stage.step(now)
        per_minute = (len(await tap.names()) - looked) / 10
        assert per_minute <= 12

        backfill_stage.hear()
        assert backfill_stage.signal.is_set()
        assert await backfill_stage.step(now) - now <= timedelta(milliseconds=100), "a process has come that may run it"
