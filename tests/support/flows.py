"""Workflows for tests: made by the product's own functions, started and looked at by name."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any

import make

from horai.core.wakes import RunsWake
from horai.db.pool import Platform
from horai.features.workflow import service as workflows
from horai.features.workflow.definition import WrittenWorkflow, checked_nodes
from horai.features.workflow.run_store import RunStart
from horai.features.workflow.runs import start_run
from horai.features.workflow.service import WorkflowRequest
from horai.operations.scope import Scope

DIAMOND: Mapping[str, Sequence[str]] = {"load": (), "left": ("load",), "right": ("load",), "report": ("left", "right")}


async def workflow(
    scope: Scope, graph: Mapping[str, Sequence[str]] = DIAMOND, name: str = "nightly", **fields: Any
) -> WorkflowRequest:
    """A workflow whose nodes have a job each, of their own names; those that are not there are made.

    `more` has further fields of nodes, by name.
    """
    for node in graph:
        await ensure_job(scope, node)
    payloads, more = fields.pop("payloads", {}), fields.pop("more", {})
    nodes = checked_nodes(
        [{"name": node, "after": list(after), **more.get(node, {})} for node, after in graph.items()],
        [json.dumps(payloads[node]) if node in payloads else None for node in graph],
    )
    payload = fields.pop("payload", None)
    written = WrittenWorkflow({"name": name, **fields}, nodes, None if payload is None else json.dumps(payload))
    return await workflows.create_workflow(scope, written)


async def ensure_job(scope: Scope, name: str) -> None:
    async with make.platform(scope).acquire() as connection:
        found = await connection.fetchval("select id from horai.job where name = $1 and deleted_at is null", name)
    if found is None:
        await make.job(scope, name, retry={"maxRetry": 0})


async def start(scope: Scope, connection: Platform, made: WorkflowRequest, payload: Any = None) -> int:
    """A run, started as its executor does it; its id."""
    tick_id = await connection.fetchval("select nextval('horai.instance_id')")
    now = await connection.fetchval("select date_trunc('milliseconds', clock_timestamp())")
    text = made.job.payload if payload is None else json.dumps(payload)
    woken = await start_run(connection, made.job.id, RunStart(tick_id, now, text))
    assert woken is not None
    scope.wakeups.announce(woken)
    scope.wakeups.publish(RunsWake([tick_id]))
    return tick_id


async def states(connection: Platform, run_id: int) -> dict[str, str]:
    """The state of each node of a run."""
    rows = await connection.fetch(
        """select node.name, instance.state from horai.workflow_node node
           join horai.job_instance instance on instance.instance_id = node.instance_id
           where node.run_id = $1 and node.is_current order by node.generation, node.name""",
        run_id,
    )
    return {row["name"]: row["state"] for row in rows}


async def ends(connection: Platform, run_id: int) -> dict[str, str]:
    """The state of each node as its run counts it: that of its instance, or SKIPPED."""
    skipped = (
        "select name from horai.workflow_node where run_id = $1 and is_current and ended = 5 and cause is not null"
    )
    names = {row["name"] for row in await connection.fetch(skipped, run_id)}
    return {name: "SKIPPED" if name in names else state for name, state in (await states(connection, run_id)).items()}


async def instance_of(connection: Platform, run_id: int, node: str) -> int:
    """The instance that a node has now."""
    return await connection.fetchval(
        "select instance_id from horai.workflow_node where run_id = $1 and name = $2 and is_current", run_id, node
    )


async def phase(connection: Platform, run_id: int) -> str:
    """Return the phase of a run."""
    number = await connection.fetchval("select phase from horai.workflow_run where id = $1", run_id)
    return ("RUNNING", "BLOCKED", "SUCCESS", "CANCELLED")[number]


async def until_waiting(connection: Platform) -> None:
    """Return when a session waits for a lock."""
    async with asyncio.timeout(30):
        while not await connection.fetchval("select exists (select from pg_locks where not granted)"):
            await asyncio.sleep(0.01)
