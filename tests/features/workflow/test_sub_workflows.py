"""Runs with nodes that run other workflows, step by step: one run per attempt, cancels, circles, depth, and dead processes."""

import json
from typing import Any

import flows
import pytest
from orchestra import Orchestra
from stages import Workbench, workbench

from horai.core.errors import Conflict, Invalid
from horai.db.verify import verify
from horai.features.explain.service import explain_instance
from horai.features.workflow import rerun as reruns
from horai.features.workflow import service as workflows
from horai.features.workflow.child_settings import DEPTH_LIMIT
from horai.features.workflow.definition import checked_nodes
from horai.features.workflow.rerun_store import NodeNow
from horai.features.workflow.runs import advance_runs
from horai.features.workflow.service import WorkflowChange, WorkflowRequest, WrittenWorkflow

RETRY = {"maxRetry": 2, "base": "1s", "jitter": "none"}


async def written(bench: Workbench, name: str, nodes: list[dict[str, Any]], **fields: Any) -> WorkflowRequest:
    checked = checked_nodes(nodes, [None] * len(nodes))
    return await workflows.create_workflow(bench.scope, WrittenWorkflow({"name": name, **fields}, checked, None))


async def begun(bench: Workbench, payload: Any = None, **settings: Any) -> tuple[Orchestra, int]:
    """outer: first → inner (the workflow nightly: load → report) → last."""
    await flows.workflow(bench.scope, {"load": (), "report": ("load",)})
    for job in ("first", "last"):
        await flows.ensure_job(bench.scope, job)
    inner = {"name": "inner", "workflow": "nightly", "after": ["first"], **settings}
    made = await written(bench, "outer", [{"name": "first"}, inner, {"name": "last", "after": ["inner"]}])
    band = Orchestra(bench)
    return band, await flows.start(bench.scope, bench.connection, made, payload)


async def view(bench: Workbench, run: int) -> dict[str, NodeNow]:
    return {node.name: node for node in (await reruns.read_run(bench.scope, "outer", run)).nodes}


async def children(bench: Workbench) -> list[tuple[int, int]]:
    rows = await bench.connection.fetch(
        "select run.id, run.phase from horai.workflow_run run join horai.workflow on workflow.id = run.workflow_id"
        " where workflow.name = 'nightly' order by run.id"
    )
    return [(row["id"], row["phase"]) for row in rows]


async def sound(bench: Workbench) -> None:
    assert [each for each in await verify(bench.connection) if each.violations] == []


async def play(band: Orchestra) -> None:
    for _ in range(4):
        await band.play()


async def test_C6_a_run_of_the_inner_workflow_is_the_instance_of_its_node(url: str):
    async with workbench(url) as bench:
        band, run = await begun(
            bench, params={"rows": {"resultOf": "first"}, "day": {"payload": "day"}}, payload={"day": 7}
        )
        band.answer(first=3, report={"sent": 1})
        await play(band)

        assert await flows.phase(bench.connection, run) == "SUCCESS"
        node = (await view(bench, run))["inner"]
        ((child, phase),) = await children(bench)
        assert (node.instance_id, node.child_attempt, phase) == (child, 1, 2)
        assert json.loads(node.result or "") == {"run": str(child), "results": {"report": {"sent": 1}}}
        (load,) = band.calls_of("load")
        assert json.loads(load.payload or "") == {"day": 7, "rows": 3}
        (last,) = band.calls_of("last")
        assert json.loads(last.payload or "") == {"day": 7, "parents": {"inner": json.loads(node.result or "")}}
        found = await reruns.read_run(bench.scope, "nightly", child)
        assert found.parent is not None
        assert (found.parent.workflow, found.parent.run_id, found.parent.node) == ("outer", run, "inner")
        await sound(bench)


async def test_C6_the_node_runs_as_long_as_its_run_and_says_what_it_waits_for(url: str):
    async with workbench(url) as bench:
        band, run = await begun(bench)
        await bench.connection.execute("update horai.job set status = 1, lane_id = lane_id where name = 'load'")
        await play(band)
        node = (await view(bench, run))["inner"]
        assert (node.state_name, (await children(bench))[0][1]) == ("RUNNING", 0)
        told = await explain_instance(bench.scope, node.instance_id)
        assert "it ends with its run, which waits for the nodes load (instance" in str(told.why)
        await sound(bench)


async def test_C6_each_failed_run_is_given_up_and_followed_by_one_other_until_the_retries_are_spent(url: str):
    async with workbench(url) as bench:
        band, run = await begun(bench, retry=RETRY)
        band.answer("load")
        for _ in range(3):
            await play(band)
            await bench.connection.execute(
                "update horai.instance_live set due = clock_timestamp(), execute_time = clock_timestamp() where state = 0"
            )
            band.dispatcher.rescan_all()

        assert await flows.phase(bench.connection, run) == "BLOCKED"
        assert [phase for _, phase in await children(bench)] == [3, 3, 1]
        node = (await view(bench, run))["inner"]
        assert (node.state_name, node.child_attempt, node.fault_code) == ("DEAD", 3, "RUN_BLOCKED")
        assert len(band.calls_of("load")) == 3
        await sound(bench)


async def test_C6_a_decision_on_a_failed_run_starts_one_other_run_however_often_it_is_made(url: str):
    async with workbench(url) as bench:
        band, run = await begun(bench, retry=RETRY)
        band.answer("load")
        await play(band)
        for _ in range(3):
            await advance_runs(bench.connection, [run])
        assert (await view(bench, run))["inner"].child_attempt == 2
        count = "select count(*) from horai.instance_live live join horai.workflow on workflow.job_id = live.job_id where workflow.name = 'nightly'"
        assert await bench.connection.fetchval(count) == 1


async def test_C6_a_decision_that_is_rolled_back_starts_no_run_and_the_next_one_does(url: str):
    async with workbench(url) as bench:
        band, run = await begun(bench, retry=RETRY)
        band.answer("load")
        await bench.connection.execute(
            "create function die() returns trigger language plpgsql as $$ begin raise exception 'died'; end $$;"
            " create trigger die after update of child_attempt on horai.workflow_node for each row execute function die()"
        )
        with pytest.raises(Exception, match="died"):
            await play(band)
        node = (await view(bench, run))["inner"]
        assert node.child_attempt == 1
        assert [phase for _, phase in await children(bench)] == [1]
        await bench.connection.execute("drop trigger die on horai.workflow_node")
        band.workflow_stage.rescan_all()
        await play(band)
        assert (await view(bench, run))["inner"].child_attempt == 2
        assert [phase for _, phase in await children(bench)] == [3]


async def test_C6_a_cancel_of_the_run_cancels_the_run_of_its_node_and_waits_for_its_end(url: str):
    async with workbench(url) as bench:
        band, run = await begun(bench)
        await bench.connection.execute("update horai.job set status = 1 where name = 'load'")
        await play(band)
        await reruns.cancel_run(bench.scope, "outer", run)
        await play(band)
        assert await flows.phase(bench.connection, run) == "CANCELLED"
        assert [phase for _, phase in await children(bench)] == [3]
        assert {name: node.state_name for name, node in (await view(bench, run)).items()} == {
            "first": "SUCCESS", "inner": "CANCELLED", "last": "CANCELLED",
        }  # fmt: skip
        await sound(bench)


async def test_C6_a_cancel_of_a_blocked_run_gives_the_blocked_run_of_its_node_up(url: str):
    async with workbench(url) as bench:
        band, run = await begun(bench)
        band.answer("load")
        await play(band)
        assert await flows.phase(bench.connection, run) == "BLOCKED"
        await reruns.cancel_run(bench.scope, "outer", run)
        assert await flows.phase(bench.connection, run) == "CANCELLED"
        assert [phase for _, phase in await children(bench)] == [3]


async def test_C6_the_end_of_a_run_that_no_hint_named_is_found_by_the_sweep(url: str):
    async with workbench(url) as bench:
        band, run = await begun(bench)
        band.answer("load")
        await play(band)
        ((child, _),) = await children(bench)
        band.answer()
        await bench.connection.execute(
            "update horai.workflow_run set phase = 2, finished_at = clock_timestamp() where id = $1", child
        )
        band.workflow_stage.rescan_all()
        await play(band)
        assert await flows.phase(bench.connection, run) == "SUCCESS"


async def test_C6_a_workflow_that_would_run_itself_is_refused(url: str):
    async with workbench(url) as bench:
        await flows.workflow(bench.scope, {"load": ()}, "a")
        await written(bench, "b", [{"name": "n", "workflow": "a"}])
        await written(bench, "c", [{"name": "n", "workflow": "b"}])
        for inner in ("a", "b", "c"):
            change = WorkflowChange({}, checked_nodes([{"name": "n", "workflow": inner}], [None]))
            with pytest.raises(Invalid, match="runs this workflow"):
                await workflows.change_workflow(bench.scope, "a", change)


async def test_C6_more_workflows_inside_each_other_than_the_limit_are_refused(url: str):
    async with workbench(url) as bench:
        await flows.workflow(bench.scope, {"load": ()}, "w1")
        for level in range(2, DEPTH_LIMIT + 1):
            await written(bench, f"w{level}", [{"name": "n", "workflow": f"w{level - 1}"}])
        with pytest.raises(Invalid, match="inside each other"):
            await written(bench, "w9", [{"name": "n", "workflow": f"w{DEPTH_LIMIT}"}])


async def test_C6_a_circle_that_two_changes_at_once_have_made_ends_at_the_depth_limit(url: str):
    async with workbench(url) as bench:
        await flows.workflow(bench.scope, {"load": ()}, "a")
        made = await written(bench, "b", [{"name": "n", "workflow": "a"}])
        await bench.connection.execute(
            "update horai.workflow set nodes = (select nodes from horai.workflow where name = 'b') where name = 'a'"
        )
        band, run = Orchestra(bench), await flows.start(bench.scope, bench.connection, made)
        for _ in range(DEPTH_LIMIT + 2):
            await play(band)
        assert await bench.connection.fetchval("select count(*) from horai.workflow_run") == DEPTH_LIMIT
        codes = await bench.connection.fetch(
            "select error_code from horai.dead_letter where error_code <> 'RUN_BLOCKED'"
        )
        assert [row["error_code"] for row in codes] == ["WORKFLOW_TOO_DEEP"]
        assert await flows.phase(bench.connection, run) == "BLOCKED"


async def test_C6_jobs_and_workflows_are_told_apart_and_an_inner_workflow_is_not_deleted(url: str):
    async with workbench(url) as bench:
        await flows.workflow(bench.scope, {"load": ()}, "a")
        with pytest.raises(Invalid, match="write it as workflow"):
            await written(bench, "b", [{"name": "n", "job": "a"}])
        with pytest.raises(Invalid, match="write it as job"):
            await written(bench, "b", [{"name": "n", "workflow": "load"}])
        with pytest.raises(Invalid, match="no workflow 'none'"):
            await written(bench, "b", [{"name": "n", "workflow": "none"}])
        await written(bench, "b", [{"name": "n", "workflow": "a"}])
        with pytest.raises(Conflict, match="is a node of the workflow 'b'"):
            await workflows.delete_workflow(bench.scope, "a")
        await workflows.delete_workflow(bench.scope, "b")
        await workflows.delete_workflow(bench.scope, "a")


async def test_C6_parameters_that_do_not_fit_the_inner_workflow_make_the_node_dead_at_once(url: str):
    async with workbench(url) as bench:
        await flows.ensure_job(bench.scope, "load")
        schema = json.dumps({"type": "object", "required": ["day"]})
        nodes = checked_nodes([{"name": "load"}], [None])
        await workflows.create_workflow(bench.scope, WrittenWorkflow({"name": "nightly"}, nodes, None, schema))
        made = await written(bench, "outer", [{"name": "n", "workflow": "nightly", "params": {}, "retry": RETRY}])
        band, run = Orchestra(bench), await flows.start(bench.scope, bench.connection, made)
        await play(band)
        node = (await view(bench, run))["n"]
        assert (node.state_name, node.error_code, node.child_attempt) == ("DEAD", "PARAMS_INVALID", 1)
        assert await children(bench) == []
