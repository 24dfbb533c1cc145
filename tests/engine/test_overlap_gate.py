"""Slots that meet one another: skipped, queued, replaced; and those that follow the end of a run."""

from datetime import datetime, timedelta
from typing import Any

import make
import pytest
from stages import Workbench, workbench

from horai.core.wakes import OutcomeWake
from horai.db import nodes
from horai.db.stage_connection import StageConnection
from horai.operations import instances
from horai.operations import jobs as accepted
from horai.operations.request_keys import Once
from horai.time.schedule import EverySchedule, fires_between

MINUTE = timedelta(minutes=1)
EVERY_MINUTE = EverySchedule(MINUTE)


async def slots(bench: Workbench) -> list[tuple[datetime, str, str | None]]:
    """Each slot with its state and reason."""
    found = await bench.connection.fetch(
        """select fire_time, horai.state_name(state) as state, null::smallint as reason from horai.instance_live
           union all select fire_time, horai.state_name(state), reason from horai.instance_history order by fire_time"""
    )
    reasons = {None: None, 1: "USER", 3: "OVERLAP"}
    return [(row["fire_time"], row["state"], reasons[row["reason"]]) for row in found]


class Street:
    """A job with a slot each minute, and what it takes to run it."""

    def __init__(self, bench: Workbench) -> None:
        self.bench = bench
        self.trigger, self.overlap_gate, self.dispatcher = bench.trigger(), bench.overlap_gate(), bench.dispatcher()

    async def slot(self, fire_time: datetime) -> None:
        """Move the schedule to this slot, and claim the instances that may run."""
        await self.bench.connection.execute("update horai.schedule set fire_time = $1", fire_time)
        self.trigger.reload()
        await self.trigger.step(self.bench.clock.now())
        await self.go()

    async def go(self) -> None:
        await self.overlap_gate.step(self.bench.clock.now())
        await self.bench.until_idle(self.dispatcher)

    async def finish(self) -> None:
        """End the running instance."""
        self.bench.executor.gate.set()
        await self.bench.settle()
        self.bench.executor.gate.clear()
        await self.go()


async def street(bench: Workbench, overlap: str, **fields: Any) -> tuple[Street, list[datetime]]:
    await make.job(bench.scope, "job", every="1m", overlap=overlap, misfireAfter="24h", **fields)
    await bench.connection.execute("update horai.job set active_from = '2020-01-01'")
    now = bench.clock.now()
    return Street(bench), [*fires_between(EVERY_MINUTE, now - 10 * MINUTE, now, 5)]


async def test_skip_cancels_the_slot_that_meets_a_run(url: str):
    async with workbench(url) as bench:
        road, (first, second, third, *_) = await street(bench, "skip")
        await road.slot(first)
        await road.slot(second)

        assert await slots(bench) == [(first, "RUNNING", None), (second, "CANCELLED", "OVERLAP")]

        await road.finish()
        await road.slot(third)
        assert (await slots(bench))[-1] == (third, "RUNNING", None)


async def test_queue_lets_them_run_one_after_the_other_in_their_order(url: str):
    async with workbench(url) as bench:
        road, (first, second, third, *_) = await street(bench, "queue")
        for slot in (first, second, third):
            await road.slot(slot)

        seen: list[list[tuple[datetime, str]]] = []
        for _ in range(3):
            seen.append([(slot, state) for slot, state, _ in await slots(bench)])
            await road.finish()

        assert seen == [
            [(first, "RUNNING"), (second, "INIT"), (third, "INIT")],
            [(first, "SUCCESS"), (second, "RUNNING"), (third, "INIT")],
            [(first, "SUCCESS"), (second, "SUCCESS"), (third, "RUNNING")],
        ]


async def test_replace_cancels_the_run_and_takes_its_place(url: str):
    async with workbench(url) as bench:
        road, (first, second, *_) = await street(bench, "replace")
        ended: list[int] = []
        bench.scope.wakeups.subscribe(OutcomeWake, lambda wake: ended.append(wake.instance_id))
        await road.slot(first)
        await road.slot(second)

        assert await slots(bench) == [(first, "CANCELLED", "OVERLAP"), (second, "RUNNING", None)]
        assert len(ended) == 1, "the node that runs it is notified"
        await road.finish()
        assert [state for _, state, _ in await slots(bench)] == ["CANCELLED", "SUCCESS"]
        assert await bench.connection.fetchval("select count(*) from horai.attempt where late") == 1


async def test_the_end_of_a_run_by_the_death_of_its_node_lets_the_next_slot_go_at_once(url: str):
    async with workbench(url) as bench:
        road, (first, second, *_) = await street(bench, "queue", retry={"maxLost": 0})
        await road.slot(first)
        await road.slot(second)
        other = bench.overlap_gate()  # of a node that has made neither, and whose look at everything is over
        await other.step(bench.clock.now())
        other.signal.clear()
        await nodes.stop_node(bench.connection, bench.lease.incarnation)
        bench.lease.incarnation = await make.node(bench.connection)

        await bench.rescuer().step(bench.clock.now())

        assert other.signal.is_set()
        await other.step(bench.clock.now())
        assert [state for _, state, _ in await slots(bench)] == ["DEAD", "INIT"]
        assert await bench.connection.fetchval("select lane from horai.instance_live") != 0


async def test_a_run_that_ended_while_the_gate_had_no_connection_lets_the_next_slot_go_at_the_next_step(url: str):
    async with workbench(url) as bench:
        road, (first, second, *_) = await street(bench, "queue")
        await road.slot(first)
        await road.slot(second)
        gate, line, now = road.overlap_gate, road.overlap_gate.line, bench.clock.now()
        await gate.step(now)  # neither its sweep nor its next check is due at `now` again
        bench.executor.gate.set()
        await bench.settle()
        bench.executor.gate.clear()

        gate.line = StageConnection("postgresql://127.0.0.1:9/away", "horai overlap_gate")
        with pytest.raises(OSError, match="9"):
            await gate.step(now)
        gate.line = line
        await gate.step(now)

        await bench.until_idle(road.dispatcher)
        assert [state for _, state, _ in await slots(bench)] == ["SUCCESS", "RUNNING"]


@pytest.mark.parametrize("overlap", ["skip", "queue", "replace"])
async def test_a_slot_yields_to_a_run_that_was_started_by_hand(url: str, overlap: str):
    async with workbench(url) as bench:
        road, (first, *_) = await street(bench, overlap)
        await instances.trigger(bench.scope, "job", None, Once("by hand", b"{}"))
        await bench.until_idle(road.dispatcher)
        await road.slot(first)

        by_hand, slot = sorted(await slots(bench), key=lambda row: row[0] == first)
        assert by_hand[1] == "RUNNING"
        assert slot == ((first, "CANCELLED", "OVERLAP") if overlap == "skip" else (first, "INIT", None))


async def test_a_run_that_waits_for_its_retry_still_closes_the_gate(url: str):
    async with workbench(url) as bench:
        road, (first, second, *_) = await street(bench, "skip")
        await road.slot(first)
        await bench.connection.execute(
            "update horai.instance_live set state = 3, node = null, claim = null, claimed_at = null, due = now() + interval '1h'"
        )
        await road.slot(second)

        assert await slots(bench) == [(first, "FAIL", None), (second, "CANCELLED", "OVERLAP")]


async def test_a_pause_keeps_the_queued_slots_and_a_resume_releases_one(url: str):
    async with workbench(url) as bench:
        road, (first, second, third, *_) = await street(bench, "queue")
        for slot in (first, second, third):
            await road.slot(slot)
        await accepted.pause_job(bench.scope, "job", None)
        await road.finish()
        assert [state for _, state, _ in await slots(bench)] == ["SUCCESS", "INIT", "INIT"]

        await accepted.resume_job(bench.scope, "job", None)
        await road.go()

        assert [state for _, state, _ in await slots(bench)] == ["SUCCESS", "RUNNING", "INIT"]


async def test_allowing_overlap_again_lets_all_of_them_go(url: str):
    async with workbench(url) as bench:
        road, (first, second, third, *_) = await street(bench, "queue")
        for slot in (first, second, third):
            await road.slot(slot)

        await accepted.change_job(bench.scope, "job", accepted.JobChange({"overlap": "allow"}))
        await road.go()

        assert [state for _, state, _ in await slots(bench)] == ["RUNNING"] * 3


async def test_the_overlap_gate_retries_a_job_that_another_transaction_locks(url: str):
    async with workbench(url) as bench:
        road, (first, *_) = await street(bench, "skip")
        async with make.scope(url) as other, make.platform(other).acquire() as holder, holder.transaction():
            await holder.execute("select from horai.job for update")
            await road.slot(first)
            assert await slots(bench) == [(first, "INIT", None)]
        await road.go()

        assert await slots(bench) == [(first, "RUNNING", None)]


async def test_a_rescan_of_the_overlap_gate_finds_a_slot_whose_wake_was_lost(url: str):
    async with workbench(url) as bench:
        road, (first, *_) = await street(bench, "skip")
        road.overlap_gate._asked.clear()
        await bench.connection.execute("update horai.schedule set fire_time = $1", first)
        await bench.trigger().step(bench.clock.now())
        road.overlap_gate._asked.clear()

        road.overlap_gate.rescan_all()
        await road.go()

        assert await slots(bench) == [(first, "RUNNING", None)]


async def test_from_the_finish_the_next_slot_follows_the_end_of_the_last(url: str):
    async with workbench(url) as bench:
        before = bench.clock.now()
        job = await make.job(bench.scope, "job", every="10m", everyFrom="finish")
        assert job.schedule_id is None
        (first,) = [slot for slot, _, _ in await slots(bench)]
        assert before < first <= before + 10 * MINUTE
        overlap_gate, dispatcher = bench.overlap_gate(), bench.dispatcher()
        await bench.connection.execute("update horai.instance_live set due = now(), execute_time = now()")
        bench.executor.gate.set()
        dispatcher.rescan_all()
        await bench.until_idle(dispatcher)
        await bench.settle()
        await overlap_gate.step(bench.clock.now())

        (_, done, _), (second, waiting, _) = await slots(bench)
        assert (done, waiting) == ("SUCCESS", "INIT")
        finished_at = await bench.connection.fetchval("select finished_at from horai.instance_history")
        assert second == finished_at + 10 * MINUTE


async def test_from_the_finish_a_cancelled_run_is_followed_too(url: str):
    async with workbench(url) as bench:
        await make.job(bench.scope, "job", every="10m", everyFrom="finish")
        waiting = await bench.connection.fetchval("select id from horai.instance_live")
        await instances.cancel_by_id(bench.scope, waiting)

        overlap_gate = bench.overlap_gate()
        overlap_gate.rescan_all()
        await overlap_gate.step(bench.clock.now())

        assert sorted(state for _, state, _ in await slots(bench)) == ["CANCELLED", "INIT"]
