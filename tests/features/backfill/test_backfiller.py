"""Backfills, step by step: which slots are run, how many at once, how fast, and what a crash leaves."""

import asyncio
from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import make
import pytest
from stages import Workbench, workbench

from horai.core.backfill_status import BackfillStatus
from horai.core.outcome import Accepted, FailedUnrecoverable, Outcome, Succeeded
from horai.core.queue import parse_rate
from horai.db.catalog import sql
from horai.db.verify import verify
from horai.engine.dispatch.dispatcher import Dispatcher
from horai.features.backfill import service as backfills
from horai.features.backfill.rules import BackfillRequest, Mode
from horai.features.backfill.stage import PORTION, BackfillStage
from horai.features.backfill.store import BackfillRow
from horai.operations import jobs as accepted
from horai.operations.request_keys import Once
from horai.time.schedule import CronSchedule, EverySchedule, fires_between

MINUTE = timedelta(minutes=1)
MOMENT = timedelta(microseconds=1)
BEGIN = datetime(2026, 1, 10, tzinfo=UTC)
"""Long before any job of these tests was there."""


def minutes(count: int, begin: datetime = BEGIN) -> list[datetime]:
    return [begin + n * MINUTE for n in range(count)]


async def started(
    bench: Workbench, count: int = 10, mode: Mode = Mode.missing, begin: datetime = BEGIN, **wish: Any
) -> BackfillRow:
    """A backfill over so many slots of the job `job`, one a minute."""
    asked = BackfillRequest(begin, begin + count * MINUTE, mode, **wish)
    return await backfills.start_backfill(bench.scope, "job", asked)


class Yard:
    """A backfiller, and somebody who runs what it makes."""

    def __init__(self, bench: Workbench) -> None:
        self.bench = bench
        self.backfiller = bench.backfiller()
        self.dispatcher: Dispatcher = bench.dispatcher()

    async def step(self) -> None:
        """Makes what there is room for; nobody runs it."""
        await until_content(self.bench, self.backfiller)

    async def work(self, steps: int = 50) -> None:
        """Makes and runs, until nothing is left or so many rounds are over."""
        self.bench.executor.gate.set()
        for _ in range(steps):
            await self.step()
            if not await self.bench.connection.fetchval("select count(*) from horai.instance_live"):
                return
            await self.bench.until_idle(self.dispatcher)
            await self.bench.settle()

    async def read(self, backfill: BackfillRow) -> BackfillRow:
        return await backfills.read_backfill(self.bench.scope, backfill.id)


async def until_content(bench: Workbench, backfiller: BackfillStage) -> None:
    """Steps until it wants to wait."""
    async with asyncio.timeout(30):
        while await backfiller.step(now := bench.clock.now()) <= now:
            pass


async def yard(bench: Workbench, **fields: Any) -> Yard:
    await make.job(bench.scope, "job", **{"every": "1m", **fields})
    return Yard(bench)


async def made(bench: Workbench) -> list[tuple[datetime, int]]:
    """Every slot with its generation, in order."""
    found = await bench.connection.fetch(
        """select fire_time, slot from horai.instance_live where slot >= 0
           union all select fire_time, slot from horai.instance_history where slot >= 0 order by 1, 2"""
    )
    return [(row["fire_time"], row["slot"]) for row in found]


async def kinds(bench: Workbench) -> list[str]:
    found = await bench.connection.fetch("select kind from horai.event where kind like 'BACKFILL%' order by id")
    return [row["kind"] for row in found]


async def test_C21_every_missing_slot_is_run_once_and_the_backfill_is_done(url: str):
    async with workbench(url) as bench:
        place = await yard(bench)
        backfill = await started(bench, 25)
        assert (backfill.progress.slots, backfill.progress.total) == (25, 25)

        await place.work()

        done = await place.read(backfill)
        assert await made(bench) == [(slot, 0) for slot in minutes(25)]
        assert (done.status, done.progress.succeeded, done.progress.running) == (BackfillStatus.DONE, 25, 0)
        assert done.finished_at is not None
        assert await kinds(bench) == ["BACKFILL_STARTED", "BACKFILL_DONE"]
        assert await bench.connection.fetchval("select count(*) from horai.backfill_instance") == 0
        assert [finding for finding in await verify(bench.connection) if finding.violations] == []


async def test_C21_what_is_there_is_not_missing(url: str):
    async with workbench(url) as bench:
        place = await yard(bench)
        await started(bench, 5, begin=BEGIN + 5 * MINUTE)
        await place.work()

        second = await started(bench, 20)
        await place.work()

        done = await place.read(second)
        assert (second.progress.slots, second.progress.total) == (20, 15)
        assert (done.progress.made, done.progress.skipped) == (15, 5)
        assert await made(bench) == [(slot, 0) for slot in minutes(20)]


async def test_X11_failed_runs_the_dead_again_in_the_next_generation(url: str):
    async with workbench(url) as bench:
        place = await yard(bench)
        bad = set(minutes(10)[3:6])
        bench.executor.answer = lambda call: _verdict(call.fire_time not in bad)
        await started(bench, 10)
        await place.work()
        bench.executor.answer = lambda _: Succeeded()

        again = await started(bench, 10, Mode.failed)
        await place.work()

        assert (again.progress.slots, again.progress.total) == (10, 3)
        assert await made(bench) == sorted([(slot, 0) for slot in minutes(10)] + [(slot, 1) for slot in bad])
        keys = [call.idempotency_key for call in bench.executor.calls]
        assert len(set(keys)) == len(keys) == 13, "a run of a slot that was run before has a key of its own"
        letters = await bench.connection.fetch("select replay_status from horai.dead_letter")
        assert {row["replay_status"] for row in letters} == {"SUPERSEDED"}
        third = await started(bench, 10, Mode.failed)
        assert third.progress.total == 0, "what was run again is not failed any more"


async def test_X11_a_slot_whose_letter_was_discarded_is_not_failed(url: str):
    async with workbench(url) as bench:
        place = await yard(bench)
        bench.executor.answer = lambda _: _verdict(False)
        await started(bench, 4)
        await place.work()
        await bench.connection.execute(
            "update horai.dead_letter set replay_status = 'DISCARDED' where id = (select min(id) from horai.dead_letter)"
        )

        assert (await started(bench, 4, Mode.failed)).progress.total == 3
        assert (await started(bench, 4, Mode.all)).progress.total == 4


async def test_X11_all_runs_every_slot_again_but_what_is_under_way(url: str):
    async with workbench(url) as bench:
        place = await yard(bench)
        await started(bench, 6)
        await place.work()
        for generation in (1, 2):
            await started(bench, 6, Mode.all)
            await place.work()
            assert await made(bench) == [(slot, n) for slot in minutes(6) for n in range(generation + 1)]
        bench.executor.gate.clear()
        await started(bench, 6, Mode.all, max_concurrency=2)
        await place.step()

        beside = await started(bench, 6, Mode.all)

        assert beside.progress.total == 4, "two of them run already"
        assert [finding for finding in await verify(bench.connection) if finding.violations] == []


async def test_C21_no_more_than_the_cap_is_under_way(url: str):
    async with workbench(url) as bench:
        place = await yard(bench)
        await started(bench, 50, max_concurrency=7)
        for _ in range(5):
            await place.step()
        assert len(await made(bench)) == 7

        bench.executor.gate.set()
        most = 0
        for _ in range(20):
            await place.step()
            most = max(most, await bench.connection.fetchval("select count(*) from horai.instance_live"))
            await bench.until_idle(place.dispatcher)
            await bench.settle()

        assert most == 7
        assert await made(bench) == [(slot, 0) for slot in minutes(50)]


async def test_C62_one_step_makes_no_more_than_a_portion_however_high_the_cap(url: str):
    async with workbench(url) as bench:
        place = await yard(bench)
        await started(bench, 3 * PORTION, max_concurrency=2 * PORTION + 1)
        sizes = list[int]()
        async with asyncio.timeout(30):
            while await place.backfiller.step(now := bench.clock.now()) <= now:
                sizes.append(len(await made(bench)))

        assert sizes == [PORTION, 2 * PORTION]
        assert await made(bench) == [(slot, 0) for slot in minutes(2 * PORTION + 1)]


async def test_C21_C62_four_nodes_at_once_make_each_slot_once_and_keep_the_cap(url: str):
    async with workbench(url) as bench:
        place = await yard(bench)
        backfill = await started(bench, 120, max_concurrency=5)
        nodes = [bench.backfiller() for _ in range(4)]
        bench.executor.gate.set()
        most = 0
        async with asyncio.timeout(60):
            while (await place.read(backfill)).finished_at is None:
                for _ in range(2):
                    await asyncio.gather(*(until_content(bench, node) for node in nodes))
                most = max(most, await bench.connection.fetchval("select count(*) from horai.instance_live"))
                await bench.until_idle(place.dispatcher)
                await bench.settle()

        assert most <= 5
        assert Counter(await made(bench)) == Counter({(slot, 0): 1 for slot in minutes(120)})


async def test_C62_it_lies_in_the_low_lane_of_its_queue(url: str):
    async with workbench(url) as bench:
        place = await yard(bench, queue="reports", priority="core")
        await started(bench)

        await place.step()

        lanes = await bench.connection.fetch(
            "select distinct lane.queue, lane.priority, lane.handler from horai.instance_live live join horai.lane on lane.id = live.lane"
        )
        assert [tuple(row) for row in lanes] == [("reports", 3, "")]


async def test_C62_work_of_now_is_called_before_a_backfill_that_waits(url: str):
    async with workbench(url, in_flight=4) as bench:
        place = await yard(bench)
        await started(bench, 500, max_concurrency=30)
        await place.step()
        await make.job(bench.scope, "online", queue="online")
        await make.many(bench.scope, 40, job="online")
        bench.executor.gate.set()

        for _ in range(20):
            await place.dispatcher.step(bench.clock.now())
            await bench.settle()

        assert [call.job for call in await bench.called(50)][:40] == ["online"] * 40


async def test_C21_the_rate_spaces_the_starts(url: str):
    async with workbench(url) as bench:
        place = await yard(bench)
        await started(bench, 500, max_concurrency=400, rate=parse_rate("50/s"))

        await place.step()
        found = await bench.connection.fetch("select execute_time from horai.instance_live order by execute_time")

        starts = [row["execute_time"] for row in found]
        assert 95 <= len(starts) <= 130, "two seconds ahead, and no more"
        gaps = {later - earlier for earlier, later in pairwise(starts)}
        assert gaps == {timedelta(milliseconds=20)}


async def test_C21_after_a_pause_the_rate_does_not_catch_up(url: str):
    async with workbench(url) as bench:
        place = await yard(bench)
        backfill = await started(bench, 500, max_concurrency=400, rate=parse_rate("60/m"))
        await bench.connection.execute("update horai.backfill set next_start = now() - interval '1 hour'")

        await place.step()

        assert len(await made(bench)) == 3, "now, and one a second within two seconds"
        assert (await place.read(backfill)).next_start is not None


async def test_C21_paused_it_makes_nothing_and_resumed_it_goes_on(url: str):
    async with workbench(url) as bench:
        place = await yard(bench)
        backfill = await started(bench, 40, max_concurrency=5)
        await place.step()
        paused = await backfills.pause_backfill(bench.scope, backfill.id, "too much")
        assert (paused.status, paused.note) == (BackfillStatus.PAUSED, "too much")
        await place.work()
        assert len(await made(bench)) == 5, "what was made goes on, and nothing follows"
        counted = await place.read(backfill)
        assert (counted.progress.succeeded, counted.status) == (5, BackfillStatus.PAUSED)
        assert counted.progress.eta(counted.status, counted.now, None) is None

        await backfills.resume_backfill(bench.scope, backfill.id)
        await place.work()

        assert await made(bench) == [(slot, 0) for slot in minutes(40)]
        assert (await place.read(backfill)).status is BackfillStatus.DONE
        told = ["BACKFILL_STARTED", "BACKFILL_PAUSED", "BACKFILL_RESUMED", "BACKFILL_DONE"]
        assert await kinds(bench) == told


async def test_C21_cancelled_what_waits_ends_and_what_runs_finishes(url: str):
    async with workbench(url) as bench:
        place = await yard(bench)
        backfill = await started(bench, 40, max_concurrency=6)
        await place.step()
        waiting = "select id from horai.instance_live order by id limit 4"
        await bench.connection.execute(
            f"update horai.instance_live set due = now() + interval '1h' where id in ({waiting})"
        )
        await bench.until_idle(place.dispatcher)
        assert await bench.states() == {"INIT": 4, "RUNNING": 2}

        cancelled = await backfills.cancel_backfill(bench.scope, backfill.id, "wrong range")
        assert (cancelled.status, cancelled.finished_at) == (BackfillStatus.CANCELLED, None)
        await place.work()

        done = await place.read(backfill)
        assert await bench.states() == {"CANCELLED": 4, "SUCCESS": 2}
        assert (done.progress.succeeded, done.progress.cancelled, done.progress.made) == (2, 4, 6)
        assert done.finished_at is not None
        reasons = await bench.connection.fetch("select distinct reason from horai.instance_history where state = 5")
        assert [row["reason"] for row in reasons] == [1]
        again = await backfills.cancel_backfill(bench.scope, backfill.id)
        assert again.status is BackfillStatus.CANCELLED


async def test_C21_a_step_that_dies_leaves_no_slot_twice_and_no_hole(url: str):
    async with workbench(url) as bench:
        place = await yard(bench)
        backfill = await started(bench, 60, max_concurrency=8)
        bench.executor.gate.set()
        rounds = 0
        while (await place.read(backfill)).finished_at is None:
            doomed = bench.backfiller()
            step = asyncio.ensure_future(doomed.step(bench.clock.now()))
            for _ in range(rounds % 40):  # one turn of the loop later each time
                await asyncio.sleep(0)
            doomed.line.drop()
            step.cancel()
            await asyncio.wait({step})
            await bench.backfiller().step(bench.clock.now())
            await bench.until_idle(place.dispatcher)
            await bench.settle()
            rounds += 1
            assert rounds < 200

        done = await place.read(backfill)
        assert await made(bench) == [(slot, 0) for slot in minutes(60)]
        assert (done.progress.made, done.progress.succeeded) == (60, 60)


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
        gatekeeper = bench.gatekeeper()
        backfill = await started(bench, 3)
        assert backfill.max_concurrency == 1, "one at a time, where nobody says"
        await place.step()
        await gatekeeper.step(bench.clock.now())
        await bench.until_idle(place.dispatcher)
        assert await bench.states() == {"RUNNING": 1}

        now = bench.clock.now()
        (slot,) = fires_between(EverySchedule(MINUTE), now - 2 * MINUTE, now, 1)
        await bench.connection.execute("update horai.job set active_from = '2020-01-01'")
        await bench.connection.execute("update horai.schedule set fire_time = $1", slot)
        await bench.trigger().step(bench.clock.now())
        gatekeeper.rescan_all()
        await gatekeeper.step(bench.clock.now())
        await bench.until_idle(place.dispatcher)

        assert await bench.states() == {"RUNNING": 2}, "the slot of now runs beside it"
        await place.work()
        gatekeeper.rescan_all()
        await gatekeeper.step(bench.clock.now())
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


async def test_what_was_deleted_by_hand_does_not_hold_it_up(url: str):
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


async def test_a_backfill_that_cannot_be_read_keeps_nobody_waiting(url: str):
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


def _verdict(is_good: bool) -> Outcome | Accepted:
    return Succeeded() if is_good else FailedUnrecoverable("BAD", "on purpose")


async def test_a_backfill_whose_job_nobody_runs_is_looked_at_less_and_less_often(url: str):
    """Two statements a second, or more, for as long as no worker came."""
    async with workbench(url) as bench:
        await make.job(bench.scope, "job", every="1m")
        await started(bench, 10, max_concurrency=1)
        backfiller = bench.backfiller()
        await until_content(bench, backfiller)
        tap, now = await bench.tap(backfiller.line), bench.clock.now()
        begin = now
        while now < begin + timedelta(minutes=10):
            now = await backfiller.step(now)
        looked = len(await tap.names())
        while now < begin + timedelta(minutes=20):
            now = await backfiller.step(now)
        per_minute = (len(await tap.names()) - looked) / 10
        assert per_minute <= 12

        backfiller.hear()
        assert backfiller.signal.is_set()
        assert await backfiller.step(now) - now <= timedelta(milliseconds=100), "a process has come that may run it"
