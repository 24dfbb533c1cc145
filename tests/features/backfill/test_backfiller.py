"""Backfills, step by step: which slots are run, how many at once, how fast, and what a crash leaves."""

import asyncio
from collections import Counter
from datetime import timedelta
from itertools import pairwise

import make
from backfill_yard import BEGIN, MINUTE, kinds, made, minutes, started, until_content, yard
from stages import workbench

from horai.core.backfill_status import BackfillStatus
from horai.core.outcome import Accepted, FailedUnrecoverable, Outcome, Succeeded
from horai.core.queue import parse_rate
from horai.db.verify import verify
from horai.features.backfill import service as backfills
from horai.features.backfill.rules import Mode
from horai.features.backfill.stage import PORTION


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


async def test_C21_slots_that_exist_are_not_missing_and_are_skipped(url: str):
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
            while await place.backfill_stage.step(now := bench.clock.now()) <= now:
                sizes.append(len(await made(bench)))

        assert sizes == [PORTION, 2 * PORTION]
        assert await made(bench) == [(slot, 0) for slot in minutes(2 * PORTION + 1)]


async def test_C21_C62_four_nodes_at_once_make_each_slot_once_and_keep_the_cap(url: str):
    async with workbench(url) as bench:
        place = await yard(bench)
        backfill = await started(bench, 120, max_concurrency=5)
        nodes = [bench.backfill_stage() for _ in range(4)]
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
            doomed = bench.backfill_stage()
            step = asyncio.ensure_future(doomed.step(bench.clock.now()))
            for _ in range(rounds % 40):  # one turn of the loop later each time
                await asyncio.sleep(0)
            doomed.line.drop()
            step.cancel()
            await asyncio.wait({step})
            await bench.backfill_stage().step(bench.clock.now())
            await bench.until_idle(place.dispatcher)
            await bench.settle()
            rounds += 1
            assert rounds < 200

        done = await place.read(backfill)
        assert await made(bench) == [(slot, 0) for slot in minutes(60)]
        assert (done.progress.made, done.progress.succeeded) == (60, 60)


def _verdict(is_good: bool) -> Outcome | Accepted:
    return Succeeded() if is_good else FailedUnrecoverable("BAD", "on purpose")
