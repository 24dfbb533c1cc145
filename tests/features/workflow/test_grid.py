"""The statements behind the grid of runs: what they cost, however many runs there are."""

import json
from typing import Any

import flows
import make

from horai.db.catalog import sql
from horai.db.instance_lists import PageStart
from horai.db.pool import Platform
from horai.features.workflow import grid_store, rerun_store
from horai.features.workflow.run_store import SLACK

RUNS, NODES, SHOWN = 400, 500, 50
FILL_RUNS = """
insert into horai.workflow_run (tenant_id, id, workflow_id, fire_time, version, phase, created_at, finished_at)
select 1, 1000000 + n, $1, at, 1, 2, at, now()
from generate_series(1, $2::integer) n, lateral (select now() - n * interval '1 minute' as at) times
"""
FILL_NODES = """
insert into horai.workflow_node (tenant_id, run_id, name, job_id, instance_id, after, ended)
select 1, 1000000 + run, 'n' || node, $3, 5000000 + run * 1000 + node, '{}', 2
from generate_series(1, $1::integer) run, generate_series(1, $2::integer) node
"""


async def fill(connection: Platform, workflow: int, job: int) -> None:
    """Many finished runs of a workflow with many nodes."""
    await connection.execute(FILL_RUNS, workflow, RUNS)
    await connection.execute(FILL_NODES, RUNS, NODES, job)
    await connection.execute("analyze horai.workflow_run, horai.workflow_node")


async def plan_of(connection: Platform, statement: str, *given: Any) -> dict[str, Any]:
    found = await connection.fetchval(f"explain (analyze, buffers, format json) {sql(statement)}", *given)
    return json.loads(found)[0]


def steps(plan: dict[str, Any]) -> list[dict[str, Any]]:
    return [plan, *(step for child in plan.get("Plans", ()) for step in steps(child))]


async def test_a_grid_of_finished_runs_reads_only_their_nodes(url: str, connection: Platform):
    async with make.scope(url) as scope:
        made = await flows.workflow(scope)
        await fill(connection, made.row.id, made.job.id)
        async with scope.read() as reading:
            runs = await rerun_store.list_runs(reading, made.row.id, PageStart.of_all(upwards=False), SHOWN)
            nodes = await grid_store.grid_nodes(reading, runs)
        ids = [run.id for run in runs]
        plan = await plan_of(connection, "grid_nodes", ids, [1, 2, 3], runs[-1].created_at)

    assert (len(runs), len(nodes)) == (SHOWN, NODES)
    assert all(set(node.states) == set(ids) and set(node.states.values()) == {"SUCCESS"} for node in nodes)
    found = steps(plan["Plan"])
    assert [step["Relation Name"] for step in found if step["Node Type"] == "Seq Scan" and step["Actual Loops"]] == []
    history = [step for step in found if str(step.get("Relation Name", "")).startswith("instance_history")]
    assert all(step["Actual Loops"] == 0 for step in history), "finished nodes are not looked up in history"
    blocks = plan["Plan"]["Shared Hit Blocks"] + plan["Plan"]["Shared Read Blocks"]
    assert blocks < SHOWN * NODES // 4, "blocks of the shown runs, a fraction of one for each cell"


async def test_a_node_over_the_last_runs_reads_one_row_per_run(url: str, connection: Platform):
    async with make.scope(url) as scope:
        made = await flows.workflow(scope)
        await fill(connection, made.row.id, made.job.id)
        plan = await plan_of(connection, "node_runs", made.row.id, "n7", SHOWN, SLACK)

    found = steps(plan["Plan"])
    assert [
        step["Relation Name"]
        for step in found
        if step["Node Type"] == "Seq Scan" and step["Relation Name"].startswith("workflow")
    ] == []
    assert plan["Plan"]["Actual Rows"] == SHOWN
    assert max(step["Actual Rows"] for step in found if step.get("Relation Name") == "workflow_run") == SHOWN
