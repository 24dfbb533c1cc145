"""Runs of workflows, step by step: when nodes start, and the effects of a cancel, a pause and a deletion."""

import json

import flows
import make
import pytest
from orchestra import Orchestra
from stages import forget_jobs, workbench

from horai.core.errors import Conflict, Invalid
from horai.core.wakes import RunsWake
from horai.features.workflow import rerun as reruns
from horai.features.workflow import run_store
from horai.features.workflow import service as workflows
from horai.features.workflow.definition import checked_nodes
from horai.features.workflow.run_store import RunStart
from horai.features.workflow.runs import start_run
from horai.features.workflow.stage import LOOK_PAUSE
from horai.operations import instances
from horai.operations import jobs as accepted


async def test_C6_a_diamond_runs_in_its_order_and_ends_in_success(url: str):
    async with workbench(url) as bench:
        made, band = await flows.workflow(bench.scope), Orchestra(bench)
        tick = await instances.trigger(bench.scope, "nightly", None, instances.Once("once", b"{}"))
        await band.play()

        assert band.played[0] == "load"
        assert sorted(band.played[1:3]) == ["left", "right"]
        assert band.played[3:] == ["report"]
        assert await flows.states(bench.connection, tick.id) == dict.fromkeys(flows.DIAMOND, "SUCCESS")
        assert await flows.phase(bench.connection, tick.id) == "SUCCESS"
        assert {call.fire_time for call in bench.executor.calls} == {tick.fire_time}, "one fire time for all"
        assert await bench.connection.fetchval("select count(*) from horai.instance_live") == 0
        assert made.row.version == 1


async def test_I13_children_are_blocked_in_the_parking_lane_until_all_parents_have_succeeded(url: str):
    async with workbench(url) as bench:
        made, band = await flows.workflow(bench.scope), Orchestra(bench)
        run = await flows.start(bench.scope, bench.connection, made)

        assert await flows.states(bench.connection, run) == {
            "load": "INIT", "left": "BLOCKED", "right": "BLOCKED", "report": "BLOCKED",
        }  # fmt: skip
        lanes = await bench.connection.fetch("select distinct lane from horai.instance_live where state = 6")
        assert [row["lane"] for row in lanes] == [0]
        await band.workflow_stage.step(bench.clock.now())
        assert (await flows.states(bench.connection, run))["left"] == "BLOCKED"


async def test_C6_a_cancelled_parent_cancels_its_descendants_with_the_reason_parent(url: str):
    async with workbench(url) as bench:
        made, band = await flows.workflow(bench.scope), Orchestra(bench)
        run = await flows.start(bench.scope, bench.connection, made)
        await instances.cancel_by_id(bench.scope, await flows.instance_of(bench.connection, run, "load"))
        await band.play()

        assert await flows.states(bench.connection, run) == dict.fromkeys(flows.DIAMOND, "CANCELLED")
        assert await flows.phase(bench.connection, run) == "CANCELLED"
        reasons = await bench.connection.fetch(
            "select reason, count(*) as n from horai.instance_history group by 1 order by 1"
        )
        assert [(row["reason"], row["n"]) for row in reasons] == [(1, 1), (4, 3)]
        assert band.played == []


async def test_C6_small_results_are_handed_to_the_children(url: str):
    async with workbench(url) as bench:
        made = await flows.workflow(bench.scope, payloads={"right": [1], "report": {"to": "ann"}}, payload={"day": 1})
        band = Orchestra(bench)
        band.answer(load={"rows": 5}, left=7)
        await flows.start(bench.scope, bench.connection, made, payload={"day": 2})
        await band.play()

        given = {call.job: json.loads(call.payload or "null") for call in bench.executor.calls}
        assert given == {
            "load": {"day": 2},
            "left": {"day": 2, "parents": {"load": {"rows": 5}}},
            "right": [1],
            "report": {"to": "ann", "parents": {"left": 7, "right": None}},
        }


async def test_the_next_step_of_the_workflow_stage_finds_a_settled_node_whose_wake_was_lost(url: str):
    async with workbench(url) as bench:
        made, band = await flows.workflow(bench.scope), Orchestra(bench)
        run = await flows.start(bench.scope, bench.connection, made)
        for _ in range(2):
            await band.workflow_stage.step(bench.clock.now())  # it has just looked
        await bench.until_idle(band.dispatcher)
        await bench.settle()
        band.workflow_stage._heard.clear()  # as if it had ended in a process that died before it could ask

        again = await band.workflow_stage.step(bench.clock.now())
        assert again > bench.clock.now()
        assert (await flows.states(bench.connection, run))["left"] == "BLOCKED"
        await band.workflow_stage.step(again)

        assert (await flows.states(bench.connection, run))["left"] == "INIT"


async def test_a_sweep_finds_what_another_process_left(url: str):
    async with workbench(url) as bench:
        made, band = await flows.workflow(bench.scope), Orchestra(bench)
        run = await flows.start(bench.scope, bench.connection, made)
        await bench.until_idle(band.dispatcher)
        await bench.settle()
        other = bench.workflow_stage()
        await other.step(bench.clock.now())

        assert (await flows.states(bench.connection, run))["left"] == "INIT"


async def test_the_workflow_stage_retries_a_run_that_another_transaction_locks(url: str):
    async with workbench(url) as bench:
        made, band = await flows.workflow(bench.scope), Orchestra(bench)
        run = await flows.start(bench.scope, bench.connection, made)
        await bench.until_idle(band.dispatcher)
        await bench.settle()
        async with make.scope(url) as other, make.platform(other).acquire() as holder, holder.transaction():
            await holder.execute("select from horai.workflow_run for update")
            again = await band.workflow_stage.step(bench.clock.now())
            assert (again - bench.clock.now()).total_seconds() < 0.1
            assert (await flows.states(bench.connection, run))["left"] == "BLOCKED"
        await band.play()

        assert await flows.phase(bench.connection, run) == "SUCCESS"


async def test_a_child_whose_job_another_transaction_locks_stays_blocked_until_the_lock_is_released(url: str):
    async with workbench(url) as bench:
        made, band = await flows.workflow(bench.scope), Orchestra(bench)
        run = await flows.start(bench.scope, bench.connection, made)
        async with make.scope(url) as other, make.platform(other).acquire() as holder, holder.transaction():
            await holder.execute("select from horai.job where name = 'left' for update")
            await band.play()
            assert await flows.states(bench.connection, run) == {
                "load": "SUCCESS", "left": "BLOCKED", "right": "SUCCESS", "report": "BLOCKED",
            }  # fmt: skip
            assert await flows.phase(bench.connection, run) == "RUNNING"
        await band.play()

        assert await flows.phase(bench.connection, run) == "SUCCESS"


async def test_a_paused_job_holds_back_its_node_until_the_job_is_resumed(url: str):
    async with workbench(url) as bench:
        made, band = await flows.workflow(bench.scope), Orchestra(bench)
        await accepted.pause_job(bench.scope, "left", None)
        run = await flows.start(bench.scope, bench.connection, made)
        await band.play()

        assert await flows.states(bench.connection, run) == {
            "load": "SUCCESS", "left": "INIT", "right": "SUCCESS", "report": "BLOCKED",
        }  # fmt: skip
        await accepted.resume_job(bench.scope, "left", None)
        forget_jobs(band.dispatcher)
        await band.play()
        assert await flows.phase(bench.connection, run) == "SUCCESS"


async def test_a_run_is_started_once_however_often_its_instance_is_tried(url: str):
    """As after a kill between the expansion and the settlement: the next attempt finds the run there."""
    async with workbench(url) as bench:
        made, band = await flows.workflow(bench.scope), Orchestra(bench)
        tick = await instances.trigger(bench.scope, "nightly", None, instances.Once("once", b"{}"))
        await start_run(bench.connection, made.job.id, RunStart(tick.id, tick.fire_time, None))
        await band.play()

        assert await make.state(bench.connection, tick.id) == "SUCCESS"
        assert await bench.connection.fetchval("select count(*) from horai.workflow_node") == 4
        assert sorted(band.played) == sorted(flows.DIAMOND)


async def test_a_job_that_left_the_workflow_and_is_deleted_cancels_what_waits_in_older_runs(url: str):
    async with workbench(url) as bench:
        made, band = await flows.workflow(bench.scope), Orchestra(bench)
        run = await flows.start(bench.scope, bench.connection, made)
        change = workflows.WorkflowChange({}, checked_nodes([{"name": "load"}], [None]))
        await workflows.change_workflow(bench.scope, "nightly", change)
        await accepted.delete_job(bench.scope, "left")
        band.workflow_stage.rescan_all()
        await band.play()

        assert await flows.states(bench.connection, run) == {
            "load": "SUCCESS", "left": "CANCELLED", "right": "SUCCESS", "report": "CANCELLED",
        }  # fmt: skip
        assert await flows.phase(bench.connection, run) == "CANCELLED"


@pytest.mark.parametrize("node", ["right", "report"])
async def test_a_blocked_node_that_is_cancelled_by_hand_takes_its_descendants_along(url: str, node: str):
    async with workbench(url) as bench:
        made, band = await flows.workflow(bench.scope), Orchestra(bench)
        run = await flows.start(bench.scope, bench.connection, made)
        await instances.cancel_by_id(bench.scope, await flows.instance_of(bench.connection, run, node))
        await band.play()

        states = await flows.states(bench.connection, run)
        assert (states["load"], states["left"], states["report"]) == ("SUCCESS", "SUCCESS", "CANCELLED")
        assert await flows.phase(bench.connection, run) == "CANCELLED"


async def test_results_of_more_than_64_kb_are_not_handed_on_and_the_child_runs_all_the_same(url: str):
    async with workbench(url) as bench:
        made, band = await flows.workflow(bench.scope), Orchestra(bench)
        band.answer(load=1, left="x" * 40_000, right="y" * 40_000)
        run = await flows.start(bench.scope, bench.connection, made, payload={"day": 1})
        await band.play()

        assert json.loads(band.calls_of("left")[0].payload or "") == {"day": 1, "parents": {"load": 1}}
        assert json.loads(band.calls_of("report")[0].payload or "") == {"day": 1}
        assert await flows.phase(bench.connection, run) == "SUCCESS"


async def test_runs_under_way_are_looked_at_ever_more_seldom_while_nothing_is_heard(url: str):
    async with workbench(url) as bench:
        made, band = await flows.workflow(bench.scope), Orchestra(bench)
        await flows.start(bench.scope, bench.connection, made)
        now = bench.clock.now()
        await band.workflow_stage.step(now)
        again = await band.workflow_stage.step(now)
        looks: list[float] = []
        while sum(looks) < 600:
            looks.append((again - now).total_seconds())
            now, again = again, await band.workflow_stage.step(again)

        assert looks[0] == LOOK_PAUSE.total_seconds()
        assert len(looks) <= 2 * 600 / bench.settings.sweep.total_seconds() + 10
        band.workflow_stage.hear(RunsWake([1]))
        assert await band.workflow_stage.step(now) <= now + bench.settings.sweep


async def test_a_blocked_run_that_is_given_up_is_over(url: str):
    """Otherwise it would stay open, and be looked at by every sweep, for good."""
    async with workbench(url) as bench:
        made, band = await flows.workflow(bench.scope), Orchestra(bench)
        band.answer("report")
        run = await flows.start(bench.scope, bench.connection, made)
        await band.play()
        assert await flows.phase(bench.connection, run) == "BLOCKED"

        await reruns.cancel_run(bench.scope, "nightly", run)

        assert await flows.phase(bench.connection, run) == "CANCELLED"
        assert not await run_store.has_open_runs(bench.connection)


async def test_a_deleted_workflow_starts_no_more_and_what_waits_in_its_runs_is_cancelled(url: str):
    async with workbench(url) as bench:
        made, band = await flows.workflow(bench.scope), Orchestra(bench)
        bench.executor.gate.clear()
        run = await flows.start(bench.scope, bench.connection, made)
        await bench.until_idle(band.dispatcher)
        await workflows.delete_workflow(bench.scope, "nightly")

        assert await flows.states(bench.connection, run) == {
            "load": "RUNNING", "left": "CANCELLED", "right": "CANCELLED", "report": "CANCELLED",
        }  # fmt: skip
        bench.executor.gate.set()
        await band.play()
        assert await flows.phase(bench.connection, run) == "CANCELLED"
        assert band.played == ["load"]
        tick = RunStart(10**9, bench.clock.now(), None)
        assert await start_run(bench.connection, made.job.id, tick) is None
        await accepted.delete_job(bench.scope, "load")


async def test_a_job_in_a_workflow_cannot_be_deleted(url: str):
    async with make.scope(url) as scope:
        await flows.workflow(scope)

        with pytest.raises(Conflict, match="'left' is a node of the workflow 'nightly'"):
            await accepted.delete_job(scope, "left")
        with pytest.raises(Conflict, match="'nightly' belongs to Horai itself"):
            await accepted.delete_job(scope, "nightly")


async def test_its_job_cannot_be_changed_but_through_the_workflow(url: str):
    async with make.scope(url) as scope:
        await flows.workflow(scope)

        with pytest.raises(Invalid, match="belongs to Horai itself"):
            await accepted.change_job(scope, "nightly", accepted.JobChange({"queue": "other"}))
        with pytest.raises(Invalid, match="belongs to Horai itself"):
            await make.job(scope, "mine", target={"type": "worker", "handler": "horai:workflow"})
        target = {"type": "worker", "handler": "horai:workflow"}
        with pytest.raises(Invalid, match="belongs to Horai itself"):
            await accepted.change_job(scope, "left", accepted.JobChange({"target": target}))
