"""Slots of workflows: what a backfill reports of their runs, how many are active at once, and what overlap makes of them."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import flows
import pytest
from orchestra import DEATH, Orchestra
from stages import Workbench, workbench

from horai.core.backfill_status import BackfillStatus
from horai.core.calls import Call
from horai.core.outcome import Accepted, Outcome, Succeeded
from horai.core.wakes import EverywhereWake
from horai.db.verify import verify
from horai.features.backfill import service as backfills
from horai.features.backfill.rules import BackfillRequest, Mode
from horai.features.backfill.store import BackfillRow
from horai.features.workflow import rerun
from horai.operations import jobs as accepted
from horai.time.schedule import EverySchedule, fires_between

MINUTE = timedelta(minutes=1)
BEGIN = datetime(2026, 1, 10, tzinfo=UTC)
CHAIN = {"load": (), "report": ("load",)}

RUN_TIMES = """
select run.created_at, max(past.finished_at) as ended from horai.workflow_run run
join horai.workflow_node node on node.run_id = run.id
join horai.instance_history past on past.id = node.instance_id and past.state in (2, 4)
group by run.id order by run.created_at
"""


async def backfilled(bench: Workbench, band: Orchestra, mode: Mode, most: int = 1) -> BackfillRow:
    """A backfill over twenty slots, worked off; never more runs are open than it allows."""
    begun = await backfills.start_backfill(
        bench.scope, "nightly", BackfillRequest(BEGIN, BEGIN + 20 * MINUTE, mode, max_concurrency=most)
    )
    backfill_stage = bench.backfill_stage()
    for _ in range(100):
        while await backfill_stage.step(now := bench.clock.now()) <= now:
            pass
        await band.play()
        assert await bench.connection.fetchval("select count(*) from horai.workflow_run where phase = 0") == 0
        found = await backfills.read_backfill(bench.scope, begun.id)
        if found.status is BackfillStatus.DONE:
            return found
    raise AssertionError("the backfill does not end")


def failing_every_third(call: Call) -> Outcome | Accepted:
    return DEATH if call.job == "load" and call.fire_time.minute % 3 == 0 else Succeeded()


async def phases(bench: Workbench) -> Counter[int]:
    return Counter(row["phase"] for row in await bench.connection.fetch("select phase from horai.workflow_run"))


async def test_U6_a_backfill_of_twenty_slots_reports_what_the_runs_became_one_at_a_time(url: str):
    async with workbench(url) as bench:
        await flows.workflow(bench.scope, CHAIN, every="1m")
        await bench.connection.execute("update horai.schedule set fire_time = '2100-01-01'")
        band = Orchestra(bench)
        bench.executor.answer = failing_every_third

        done = (await backfilled(bench, band, Mode.missing)).progress
        assert (done.made, done.succeeded, done.failed, done.cancelled) == (20, 13, 7, 0)
        assert await phases(bench) == {2: 13, 1: 7}
        times = await bench.connection.fetch(RUN_TIMES)
        assert all(one["ended"] <= other["created_at"] for one, other in pairwise(times))

        band.answer()
        blocked = await bench.connection.fetchval("select min(id) from horai.workflow_run where phase = 1")
        await rerun.rerun(bench.scope, "nightly", blocked, "load")
        await band.play()
        again = (await backfilled(bench, band, Mode.failed)).progress
        assert (again.made, again.succeeded, again.skipped) == (6, 6, 14), "a rerun has done the seventh"
        assert await phases(bench) == {2: 20, 3: 6}, "what another run does again is given up"
        assert not await bench.connection.fetchval("select count(*) from horai.dead_letter where replay_status = 'NEW'")
        assert [finding for finding in await verify(bench.connection) if not finding.holds] == []


OUTCOMES = {
    "allow": ["SUCCESS", "SUCCESS"],
    "skip": ["SUCCESS", "CANCELLED"],
    "queue": ["SUCCESS", "SUCCESS"],
    "replace": ["CANCELLED", "SUCCESS"],
}


@pytest.mark.parametrize("overlap", OUTCOMES)
async def test_U6_a_slot_of_a_workflow_meets_the_run_before_it(url: str, overlap: str):
    async with workbench(url) as bench:
        await flows.workflow(bench.scope, CHAIN, every="1m", overlap=overlap, misfireAfter="24h")
        await accepted.pause_job(bench.scope, "load", None)
        await bench.connection.execute("update horai.job set active_from = '2020-01-01'")
        trigger, overlap_gate, band = bench.trigger(), bench.overlap_gate(), Orchestra(bench)
        now = bench.clock.now()
        open_at_once: list[int] = []
        for fire_time in fires_between(EverySchedule(MINUTE), now - 10 * MINUTE, now, 2):
            await bench.connection.execute("update horai.schedule set fire_time = $1", fire_time)
            trigger.reload()
            await trigger.step(bench.clock.now())
            await overlap_gate.step(bench.clock.now())
            await band.play()
            open_at_once.append(
                await bench.connection.fetchval("select count(*) from horai.workflow_run where phase = 0")
            )
        assert open_at_once == [1, 2 if overlap == "allow" else 1]

        await accepted.resume_job(bench.scope, "load", None)
        await band.play()
        await overlap_gate.step(bench.clock.now())
        await band.play()
        starters = await bench.connection.fetch(
            "select state from horai.job_instance where job_id = (select job_id from horai.workflow) order by fire_time"
        )
        assert [row["state"] for row in starters] == OUTCOMES[overlap]
        assert [finding for finding in await verify(bench.connection) if not finding.holds] == []


async def test_U6_the_next_slot_comes_so_long_after_the_run_has_ended(url: str):
    async with workbench(url) as bench:
        await flows.workflow(bench.scope, CHAIN, every="1h", everyFrom="finish")
        await accepted.pause_job(bench.scope, "load", None)
        overlap_gate, band = bench.overlap_gate(), Orchestra(bench)
        await overlap_gate.step(bench.clock.now())
        await bench.connection.execute(
            "update horai.instance_live set fire_time = now(), execute_time = now(), due = now()"
        )
        bench.scope.wakeups.publish(EverywhereWake())
        await band.play()
        assert await phases(bench) == {0: 1}
        overlap_gate.rescan_all()
        await overlap_gate.step(bench.clock.now())
        slots = "select count(*) from horai.job_instance where job_id = (select job_id from horai.workflow)"
        assert await bench.connection.fetchval(slots) == 1, "its run is open"

        await accepted.resume_job(bench.scope, "load", None)
        await band.play()
        await overlap_gate.step(bench.clock.now())
        assert await bench.connection.fetchval(slots) == 2
