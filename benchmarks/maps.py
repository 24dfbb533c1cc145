"""Map: a node of a workflow that runs a no-op once for each of 10,000 items, and how soon a cancel of its run stops it.

The rate counts from the start of the run to its end: reading the list, making the items, running and settling them, and the
decisions on the run. The denominator is the drain of a backlog, whose inserts are not counted. For the cancel, all calls of
a second run hang; it takes until the request is answered and no item is left, and no call may begin afterwards.
"""

import asyncio
import json
import time
from datetime import UTC, datetime

from benchmarks import backlog
from benchmarks.engines import as_node, running_engine
from benchmarks.scenario import Line, Sample, Scenario
from benchmarks.sitting import Sitting
from horai.core.actor import SYSTEM
from horai.core.calls import Call
from horai.core.outcome import Outcome, Succeeded
from horai.core.wakes import RunsWake
from horai.db.pool import Platform, TenantPool, acquire, open_pool
from horai.db.wakeups import Wakeups
from horai.features.registry import JOB_HOOKS
from horai.features.workflow import rerun as reruns
from horai.features.workflow import service as workflows
from horai.features.workflow.definition import WrittenWorkflow, checked_nodes
from horai.features.workflow.run_store import RunStart
from horai.features.workflow.runs import start_run
from horai.features.workflow.service import WorkflowRequest
from horai.operations.scope import Scope

ITEMS = 10_000
LOOK = 0.02
PATIENCE = 300.0
CANCEL_WITHIN = 2.0
AFTERWARDS = 0.3
"""Seconds after a cancel in which no call may begin."""

PROGRESS = "select map_ended from horai.workflow_node where run_id = $1"
PHASE = "select phase from horai.workflow_run where id = $1"
LEFT = "select count(*) from horai.workflow_item item join horai.instance_live live on live.id = item.instance_id where item.run_id = $1"
ACCOUNT = """
select count(*) as items, count(distinct item.position) as positions, count(*) filter (where past.state = 2 and past.attempt = 1) as at_first
from horai.workflow_item item join horai.instance_history past on past.id = item.instance_id where item.run_id = $1
"""


class Switched:
    """Does nothing, or hangs until it is let through."""

    def __init__(self) -> None:
        self.calls = 0
        self.gate = asyncio.Event()
        self.gate.set()

    async def run(self, call: Call) -> Outcome:
        """A success, once the gate is open."""
        self.calls += 1
        await self.gate.wait()
        return Succeeded()


async def sample(sitting: Sitting) -> Sample:
    """One run of all items, and one that is cancelled."""
    items = min(sitting.size.rows, ITEMS)
    async with sitting.database("maps") as url:
        await backlog.make_jobs(url, 1)
        pool, wakeups = await open_pool(as_node(url), "bench", 3), Wakeups()
        scope = Scope(TenantPool(pool, 1), wakeups, 1, "default", SYSTEM, JOB_HOOKS)
        nodes = checked_nodes([{"name": "each", "job": "noop0", "map": {"overPayload": ""}}], [None])
        made = await workflows.create_workflow(scope, WrittenWorkflow({"name": "mapped"}, nodes, None))
        executor = Switched()
        async with running_engine(url, executor, wakeups=wakeups), acquire(pool) as connection:
            started = time.perf_counter()
            run = await _start(connection, wakeups, made, items)
            seen = await _until_over(connection, run)
            took = time.perf_counter() - started
            await _require_exact(connection, run, items, executor.calls)
            executor.gate.clear()
            second = await _start(connection, wakeups, made, items)
            stopped = await _cancelled(connection, scope, executor, second)
            executor.gate.set()
        await pool.close()
    return {"map": items / took, "map progress": seen, "map cancel": stopped}


async def _start(connection: Platform, wakeups: Wakeups, made: WorkflowRequest, items: int) -> int:
    run = await connection.fetchval("select nextval('horai.instance_id')")
    start = RunStart(run, datetime.now(UTC), json.dumps([*range(items)]))
    if await start_run(connection, made.job.id, start) is None:
        raise RuntimeError("the workflow is not there")
    wakeups.publish(RunsWake([run]))
    return run


async def _until_over(connection: Platform, run: int) -> float:
    """Return how many different figures of the progress could be read until the run was over."""
    seen: set[int] = set()
    async with asyncio.timeout(PATIENCE):
        while await connection.fetchval(PHASE, run) == 0:
            seen.add(await connection.fetchval(PROGRESS, run))
            await asyncio.sleep(LOOK)
    return float(len(seen))


async def _require_exact(connection: Platform, run: int, items: int, calls: int) -> None:
    row = await connection.fetchrow(ACCOUNT, run)
    found = dict(row) if row else {}
    if found != {"items": items, "positions": items, "at_first": items} or calls != items:
        raise RuntimeError(f"of {items} items: {found}, and {calls} calls")


async def _cancelled(connection: Platform, scope: Scope, executor: Switched, run: int) -> float:
    """Return the seconds until a cancel has stopped the run whose items hang."""
    begun = executor.calls
    async with asyncio.timeout(PATIENCE):
        while executor.calls == begun:
            await asyncio.sleep(LOOK)
        asked = time.perf_counter()
        await reruns.cancel_run(scope, "mapped", run)
        while await connection.fetchval(LEFT, run) or await connection.fetchval(PHASE, run) != 3:
            await asyncio.sleep(LOOK)
    took = time.perf_counter() - asked
    await asyncio.sleep(LOOK)  # a call that was claimed before the cancel may be about to begin
    calls = executor.calls
    await asyncio.sleep(AFTERWARDS)
    if executor.calls != calls:
        raise RuntimeError(f"{executor.calls - calls} calls began after the cancel")
    return took


SCENARIO = Scenario(
    "map",
    "a workflow node for each of 10,000 items, no-op executor",
    sample,
    (
        Line("map", "/s", per="drain", at_least=0.5),
        Line("map progress", "figures seen"),
        Line("map cancel", "s", at_most=CANCEL_WITHIN),
    ),
    needs=("raw_limit", "own_sql", "drain"),
)
