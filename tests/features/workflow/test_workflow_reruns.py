"""Runs of workflows with a dead node: what stays blocked, and what a replay and a rerun make of it."""

import asyncio
import json
from typing import Any

import flows
import make
import pytest
from orchestra import Orchestra
from stages import Workbench, workbench

from horai.core.errors import AlreadyFinal, Conflict, Invalid
from horai.core.wakes import RunsWake
from horai.db.pool import acquire
from horai.features.dead_letters import service as dead_letters
from horai.features.workflow import rerun as reruns
from horai.features.workflow import service as workflows
from horai.features.workflow.definition import checked_nodes
from horai.operations import jobs as accepted


async def told(bench: Workbench, kind: str = "WORKFLOW_BLOCKED") -> list[Any]:
    rows = await bench.connection.fetch("select data from horai.event where kind = $1 order by id", kind)
    return [json.loads(row["data"]) for row in rows]


async def replay(bench: Workbench, dead: int) -> int:
    """Replay a dead letter, and return the id of the new instance, which names the dead one."""
    letter = await bench.connection.fetchval("select id from horai.dead_letter where instance_id = $1", dead)
    replayed = await dead_letters.replay_letter(bench.scope, letter)
    assert replayed.instance is not None
    return replayed.instance.id


async def test_C6_a_dead_parent_leaves_its_descendants_blocked_and_an_event_says_so_once(url: str):
    async with workbench(url) as bench:
        made, band = await flows.workflow(bench.scope), Orchestra(bench)
        band.answer("left")
        run = await flows.start(bench.scope, bench.connection, made)
        await band.play()
        band.workflow_stage.hear(RunsWake([run]))  # asked once more
        await band.play()

        assert await flows.states(bench.connection, run) == {
            "load": "SUCCESS", "left": "DEAD", "right": "SUCCESS", "report": "BLOCKED",
        }  # fmt: skip
        assert await flows.phase(bench.connection, run) == "BLOCKED"
        assert await told(bench) == [
            {"workflow": "nightly", "run": str(run), "node": "left", "errorCode": "BROKEN", "blocked": ["report"]}
        ]


async def test_C6_a_replay_of_the_dead_parent_releases_its_descendants(url: str):
    async with workbench(url) as bench:
        made, band = await flows.workflow(bench.scope), Orchestra(bench)
        band.answer("load")
        run = await flows.start(bench.scope, bench.connection, made)
        await band.play()
        dead = await flows.instance_of(bench.connection, run, "load")
        band.answer()
        again = await replay(bench, dead)
        await band.play()

        assert await flows.instance_of(bench.connection, run, "load") == again
        assert await flows.states(bench.connection, run) == dict.fromkeys(flows.DIAMOND, "SUCCESS")
        assert await flows.phase(bench.connection, run) == "SUCCESS"


@pytest.mark.parametrize("is_heard", [True, False])
async def test_a_run_follows_replays_that_ended_before_the_workflow_stage_knew_them(url: str, is_heard: bool):
    async with workbench(url) as bench:
        made, band = await flows.workflow(bench.scope), Orchestra(bench)
        band.answer("load")
        run = await flows.start(bench.scope, bench.connection, made)
        await band.play()
        dead = await flows.instance_of(bench.connection, run, "load")
        first = await replay(bench, dead)
        await bench.until_idle(band.dispatcher)
        await bench.settle()
        band.workflow_stage._heard.clear()
        band.answer()
        second = await replay(bench, first)
        await bench.until_idle(band.dispatcher)
        await bench.settle()
        if not is_heard:
            band.workflow_stage._heard.clear()
            band.workflow_stage.rescan_all()
        else:
            band.workflow_stage.hear(RunsWake([first]))
        await band.play()

        assert await flows.instance_of(bench.connection, run, "load") == second
        assert await flows.phase(bench.connection, run) == "SUCCESS"


INSERT_REPLAY = """
insert into horai.instance_live (id, job_id, tenant_id, lane, shard, fire_time, execute_time, born_for, due, slot, replay_of)
select fresh.id, job_id, tenant_id, lane, fresh.id % 32, fire_time, fire_time, fire_time, clock_timestamp(), -fresh.id, past.id
from horai.instance_history past, (select nextval('horai.instance_id') as id) fresh where past.id = $1
"""


async def rerun(bench: Workbench, run: int, first: str) -> reruns.RunView:
    return await reruns.rerun(bench.scope, "nightly", run, first)


async def test_C6_a_rerun_makes_new_instances_from_its_node_on_and_keeps_the_old_ones(url: str):
    async with workbench(url) as bench:
        made, band = await flows.workflow(bench.scope), Orchestra(bench)
        band.answer(load=1, left=2)
        run = await flows.start(bench.scope, bench.connection, made, payload={"day": 1})
        await band.play()
        before = {name: await flows.instance_of(bench.connection, run, name) for name in flows.DIAMOND}

        view = await rerun(bench, run, "left")
        assert {node.name: node.generation for node in view.nodes} == {"load": 0, "left": 1, "right": 0, "report": 1}
        await band.play()

        after = {name: await flows.instance_of(bench.connection, run, name) for name in flows.DIAMOND}
        assert {name for name in before if before[name] != after[name]} == {"left", "report"}
        assert band.played[4:] == ["left", "report"]
        assert json.loads(band.calls_of("left")[1].payload or "") == {"day": 1, "parents": {"load": 1}}
        assert await flows.phase(bench.connection, run) == "SUCCESS"
        assert await make.state(bench.connection, before["left"]) == "SUCCESS"


async def test_a_rerun_from_the_dead_node_leaves_what_is_blocked_where_it_is(url: str):
    async with workbench(url) as bench:
        made, band = await flows.workflow(bench.scope), Orchestra(bench)
        band.answer("left")
        run = await flows.start(bench.scope, bench.connection, made)
        await band.play()
        report = await flows.instance_of(bench.connection, run, "report")
        band.answer()
        await rerun(bench, run, "left")
        await band.play()

        assert await flows.instance_of(bench.connection, run, "report") == report
        assert await flows.phase(bench.connection, run) == "SUCCESS"
        assert await bench.connection.fetchval("select replay_status from horai.dead_letter") == "SUPERSEDED"


async def test_a_rerun_of_what_runs_is_refused_with_a_hint(url: str):
    async with workbench(url) as bench:
        made = await flows.workflow(bench.scope)
        run = await flows.start(bench.scope, bench.connection, made)

        with pytest.raises(Conflict, match="'load' is INIT") as caught:
            await rerun(bench, run, "load")
        assert caught.value.hint is not None
        with pytest.raises(Invalid, match="there is no node 'nobody'"):
            await rerun(bench, run, "nobody")


async def test_a_rerun_beside_a_replay_of_the_same_death_is_refused(url: str):
    """Both would do the work. It does not matter whether the run knows of the replay yet."""
    async with workbench(url) as bench:
        made, band = await flows.workflow(bench.scope), Orchestra(bench)
        band.answer("left")
        run = await flows.start(bench.scope, bench.connection, made)
        await band.play()
        band.answer()
        again = await replay(bench, await flows.instance_of(bench.connection, run, "left"))
        band.workflow_stage._heard.clear()

        with pytest.raises(Conflict, match="'left' is INIT"):
            await rerun(bench, run, "left")
        await band.play()

        assert await flows.instance_of(bench.connection, run, "left") == again
        assert await flows.phase(bench.connection, run) == "SUCCESS"
        assert len(band.calls_of("left")) == 2


async def test_a_rerun_waits_for_a_replay_under_way_and_is_refused_then(url: str):
    async with workbench(url) as bench:
        made, band = await flows.workflow(bench.scope), Orchestra(bench)
        band.answer("left")
        run = await flows.start(bench.scope, bench.connection, made)
        await band.play()
        dead = await flows.instance_of(bench.connection, run, "left")
        async with make.scope(url) as other, acquire(make.platform(other)) as holder:
            async with holder.transaction():
                await holder.execute("select from horai.dead_letter where instance_id = $1 for update", dead)
                asked = asyncio.create_task(rerun(bench, run, "left"))
                await flows.until_waiting(holder)
                await holder.execute(
                    "update horai.dead_letter set replay_status = 'REPLAYED' where instance_id = $1", dead
                )
                await holder.execute(INSERT_REPLAY, dead)
        with pytest.raises(Conflict, match="is being replayed"):
            await asked

        assert (await flows.states(bench.connection, run))["left"] == "DEAD"


async def test_a_rerun_with_a_job_that_was_deleted_since_is_refused(url: str):
    async with workbench(url) as bench:
        made, band = await flows.workflow(bench.scope), Orchestra(bench)
        run = await flows.start(bench.scope, bench.connection, made)
        await band.play()
        change = workflows.WorkflowChange({}, checked_nodes([{"name": "load"}], [None]))
        await workflows.change_workflow(bench.scope, "nightly", change)
        await accepted.delete_job(bench.scope, "report")

        with pytest.raises(Conflict, match="'report' has been deleted"):
            await rerun(bench, run, "left")

        assert await flows.phase(bench.connection, run) == "SUCCESS"
        assert await bench.connection.fetchval("select count(*) from horai.instance_live") == 0


async def test_a_run_that_is_given_up_ends_when_what_runs_has_and_a_rerun_takes_it_up_again(url: str):
    async with workbench(url) as bench:
        made, band = await flows.workflow(bench.scope), Orchestra(bench)
        bench.executor.gate.clear()
        run = await flows.start(bench.scope, bench.connection, made)
        await bench.until_idle(band.dispatcher)
        await reruns.cancel_run(bench.scope, "nightly", run)
        view = await reruns.cancel_run(bench.scope, "nightly", run)
        assert {node.name: (node.state.name, node.reason and node.reason.name) for node in view.nodes} == {
            "load": ("RUNNING", None), "left": ("CANCELLED", "USER"), "right": ("CANCELLED", "USER"),
            "report": ("CANCELLED", "USER"),
        }  # fmt: skip
        bench.executor.gate.set()
        await band.play()
        assert (await flows.phase(bench.connection, run), band.played) == ("CANCELLED", ["load"])
        assert len(await told(bench, "WORKFLOW_CANCELLED")) == 1

        await rerun(bench, run, "load")
        await band.play()
        assert await flows.phase(bench.connection, run) == "SUCCESS"
        with pytest.raises(AlreadyFinal):
            await reruns.cancel_run(bench.scope, "nightly", run)
