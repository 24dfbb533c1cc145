"""Instances that start runs of workflows: how long each stays RUNNING, who holds it, and how it ends."""

import asyncio
from typing import Any

import flows
import make
import pytest
from orchestra import Orchestra
from stages import Workbench, workbench

from horai.core.errors import StaleOutcome
from horai.core.outcome import Complete, Succeeded
from horai.core.states import CancelReason
from horai.db import claims
from horai.db import instances as plans
from horai.db.instance_queries import InstanceRow
from horai.db.pool import connect
from horai.db.verify import Finding, verify
from horai.features.workflow import rerun, run_store
from horai.features.workflow.run_store import RunStart
from horai.features.workflow.runs import StarterLost, begin_run, start_run
from horai.operations import instances
from horai.operations import jobs as accepted
from horai.operations.outcome import report_outcome


async def trigger(bench: Workbench, key: str = "once") -> InstanceRow:
    return await instances.trigger(bench.scope, "nightly", None, instances.Once(key, b"{}"))


async def opened(bench: Workbench, **fields: Any) -> tuple[Orchestra, InstanceRow]:
    """A run that stays open, since the job of its first node is paused."""
    await flows.workflow(bench.scope, **fields)
    await accepted.pause_job(bench.scope, "load", None)
    band, tick = Orchestra(bench), await trigger(bench)
    await band.play()
    return band, tick


async def past(bench: Workbench, tick: InstanceRow) -> dict[str, Any]:
    row = await bench.connection.fetchrow("select * from horai.instance_history where id = $1", tick.id)
    assert row is not None, "it has not ended"
    return dict(row)


async def broken(bench: Workbench) -> list[Finding]:
    """Return the invariants that do not hold."""
    return [finding for finding in await verify(bench.connection) if not finding.holds]


async def test_U6_it_runs_as_long_as_its_run_and_takes_neither_a_slot_nor_a_node(url: str):
    async with workbench(url) as bench:
        await bench.set_queue("starts", max_concurrency=1)
        band, first = await opened(bench, queue="starts")
        second = await trigger(bench, "twice")
        await band.play()

        rows = await bench.connection.fetch("select id, state, node, attempt from horai.instance_live where node = 0")
        assert [tuple(row) for row in rows] == [(first.id, 1, 0, 1), (second.id, 1, 0, 1)]
        assert len(bench.in_flight) == 0
        assert await claims.running_of_node(bench.connection, bench.lease.incarnation, 0, 10) == []
        assert not await bench.connection.fetchval("select count(instance_id) from horai.queue_slot")
        assert await broken(bench) == []

        await accepted.resume_job(bench.scope, "load", None)
        await band.play()
        for tick in (first, second):
            row = await past(bench, tick)
            assert (row["state"], row["attempt"], row["retry_count"]) == (2, 1, 0)
            assert row["result"] == f'{{"run": "{tick.id}"}}'
        assert await broken(bench) == []


async def test_U6_a_blocked_run_makes_it_dead_and_its_letter_asks_for_nothing(url: str):
    async with workbench(url) as bench:
        await flows.workflow(bench.scope)
        band, tick = Orchestra(bench), await trigger(bench)
        band.answer("left")
        await band.play()

        row = await past(bench, tick)
        assert (row["state"], row["error_code"]) == (4, "RUN_BLOCKED")
        letters = await bench.connection.fetch("select instance_id, replay_status from horai.dead_letter order by 1")
        left = await flows.instance_of(bench.connection, tick.id, "left")
        assert [tuple(letter) for letter in letters] == [(tick.id, "SUPERSEDED"), (left, "NEW")]

        band.answer()
        await rerun.rerun(bench.scope, "nightly", tick.id, "left")
        await band.play()
        assert await flows.phase(bench.connection, tick.id) == "SUCCESS"
        assert (await past(bench, tick))["state"] == 4, "what has ended stays as it was"
        assert await broken(bench) == []


async def test_U6_a_run_that_is_given_up_cancels_it_and_a_rerun_goes_through(url: str):
    async with workbench(url) as bench:
        band, tick = await opened(bench)
        await rerun.cancel_run(bench.scope, "nightly", tick.id)
        await band.play()
        row = await past(bench, tick)
        assert (row["state"], row["reason"]) == (5, CancelReason.USER)

        await accepted.resume_job(bench.scope, "load", None)
        await rerun.rerun(bench.scope, "nightly", tick.id, "load")
        await band.play()
        assert await flows.phase(bench.connection, tick.id) == "SUCCESS"


@pytest.mark.parametrize("is_heard", [True, False])
async def test_U6_cancelled_itself_it_takes_what_waits_in_its_run_along(url: str, is_heard: bool):
    async with workbench(url) as bench:
        band, tick = await opened(bench)
        if is_heard:
            await instances.cancel_by_id(bench.scope, tick.id)
        else:
            await plans.cancel_live(bench.connection, [tick.id], CancelReason.USER, running=True)
            band.workflow_stage.rescan_all()
        await band.play()

        assert await flows.phase(bench.connection, tick.id) == "CANCELLED"
        assert await flows.states(bench.connection, tick.id) == dict.fromkeys(flows.DIAMOND, "CANCELLED")
        assert await broken(bench) == []


@pytest.mark.parametrize(("phase", "state"), [(1, "DEAD"), (2, "SUCCESS"), (3, "CANCELLED")])
async def test_an_instance_that_finds_its_run_ended_ends_like_it(url: str, phase: int, state: str):
    async with workbench(url) as bench:
        made = await flows.workflow(bench.scope)
        tick = await trigger(bench)
        await accepted.pause_job(bench.scope, "load", None)
        await start_run(bench.connection, made.job.id, RunStart(tick.id, tick.fire_time, None))
        await bench.connection.execute(
            "update horai.workflow_run set phase = $1, settled = true,"
            " finished_at = case when $1::smallint > 1 then clock_timestamp() end",
            phase,
        )
        await Orchestra(bench).play()

        assert await make.state(bench.connection, tick.id) == state


async def test_a_claim_that_has_ended_starts_no_run(url: str):
    async with workbench(url) as bench:
        await flows.workflow(bench.scope)
        tick = await trigger(bench)
        (claimed,) = await make.claim(bench.connection, await make.node(bench.connection))
        stale = claimed.held._replace(fence=claimed.held.fence - 1)

        with pytest.raises(StarterLost):
            await begin_run(bench.connection, stale, RunStart(tick.id, tick.fire_time, None))
        assert not await bench.connection.fetchval("select count(*) from horai.workflow_run")
        assert await bench.connection.fetchval("select count(*) from horai.instance_live") == 1


async def test_a_run_whose_starter_is_locked_ends_when_the_lock_is_gone(url: str):
    async with workbench(url) as bench:
        band, tick = await opened(bench)
        other = await connect(url, "horai test")
        async with other.transaction():
            await other.execute("select from horai.instance_live where id = $1 for update", tick.id)
            await accepted.resume_job(bench.scope, "load", None)
            await band.play()
            assert await flows.states(bench.connection, tick.id) == dict.fromkeys(flows.DIAMOND, "SUCCESS")
            assert await flows.phase(bench.connection, tick.id) == "RUNNING", "both end together"
        await band.play()

        assert await flows.phase(bench.connection, tick.id) == "SUCCESS"
        assert (await past(bench, tick))["state"] == 2
        other.terminate()


async def test_the_executor_waits_for_the_transaction_that_decides_on_the_run(url: str):
    async with workbench(url) as bench:
        made = await flows.workflow(bench.scope)
        tick = await trigger(bench)
        (claimed,) = await make.claim(bench.connection, await make.node(bench.connection))
        start = RunStart(tick.id, tick.fire_time, None)
        await start_run(bench.connection, made.job.id, start)
        other = await connect(url, "horai test")
        async with other.transaction():  # an insert waits for an update by itself, but not for a row that is held
            await other.execute("select from horai.workflow_run for no key update")
            began = asyncio.create_task(begin_run(bench.connection, claimed.held, start))
            await flows.until_waiting(other)
            await other.execute("update horai.workflow_run set phase = 2, finished_at = clock_timestamp()")
        await began
        other.terminate()

        assert await make.state(bench.connection, tick.id) == "SUCCESS"


async def test_a_fence_is_no_right_to_end_it_from_outside(url: str):
    async with workbench(url) as bench:
        _, tick = await opened(bench)

        with pytest.raises(StaleOutcome):
            await report_outcome(bench.scope, tick.id, 1, Succeeded())
        assert await make.state(bench.connection, tick.id) == "RUNNING"


async def test_a_run_that_was_open_before_the_upgrade_ends_without_its_starter(url: str):
    """Its instance succeeded at once, as those of earlier versions did."""
    async with workbench(url) as bench:
        band, tick = await opened(bench)
        (held,) = await run_store.waiting_starters(bench.connection, [tick.id])
        await claims.finish_if_free(bench.connection, [(held, Complete())])
        band.workflow_stage.rescan_all()
        await accepted.resume_job(bench.scope, "load", None)
        await band.play()

        assert await flows.phase(bench.connection, tick.id) == "SUCCESS"
        assert await broken(bench) == []
