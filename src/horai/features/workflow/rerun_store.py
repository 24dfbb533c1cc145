"""Runs as people see them, and what they do to one: one function per statement of sql/reruns.sql."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

import asyncpg

from horai.core.states import CancelReason, State
from horai.db.catalog import sql
from horai.db.pool import Connection
from horai.features.workflow.graph import RunState
from horai.features.workflow.run_store import SLACK


@dataclass(frozen=True, slots=True)
class RunRow:
    """A run as it is stored."""

    id: int
    workflow_id: int
    fire_time: datetime
    state: RunState
    generation: int
    version: int
    payload: str | None
    created_at: datetime
    finished_at: datetime | None
    is_given_up: bool = False


def _run(row: asyncpg.Record) -> RunRow:
    return RunRow(
        row["id"],
        row["workflow_id"],
        row["fire_time"],
        RunState(row["phase"]),
        row["generation"],
        row["version"],
        row["payload"],
        row["created_at"],
        row["finished_at"],
        row["given_up"],
    )


async def lock_run(connection: Connection, workflow_id: int, run_id: int) -> RunRow | None:
    """A run, held until commit; waits for whoever decides on it."""
    row = await connection.fetchrow(sql("lock_run"), run_id, workflow_id)
    return _run(row) if row else None


async def retire_nodes(
    connection: Connection, run_id: int, names: Collection[str]
) -> dict[str, tuple[int, str | None]]:
    """Nodes that a rerun replaces: their instances and their own payloads."""
    rows = await connection.fetch(sql("retire_nodes"), run_id, list(names))
    return {row["name"]: (row["instance_id"], row["payload"]) for row in rows}


async def reopen_run(connection: Connection, run_id: int) -> None:
    """It goes on, one generation later."""
    await connection.execute(sql("reopen_run"), run_id)


async def give_up_run(connection: Connection, run_id: int) -> None:
    """From now on nothing of it begins that has not begun."""
    await connection.execute(sql("give_up_run"), run_id)


async def find_run(connection: Connection, workflow_id: int, run_id: int) -> RunRow | None:
    """One run of a workflow."""
    row = await connection.fetchrow(sql("find_run"), run_id, workflow_id)
    return _run(row) if row else None


@dataclass(frozen=True, slots=True)
class RunPage:
    """Which runs of a workflow: `limit` of those after `before`, newest fire time first; in one state, or in any."""

    before: tuple[datetime, int]
    limit: int
    state: RunState | None = None


async def list_runs(connection: Connection, workflow_id: int, page: RunPage) -> list[RunRow]:
    """A page of the runs of a workflow."""
    given = (workflow_id, *page.before, page.limit)
    if page.state is None:
        rows = await connection.fetch(sql("list_runs"), *given)
    else:
        rows = await connection.fetch(sql("list_runs_in"), *given, int(page.state))
    return [_run(row) for row in rows]


async def last_runs(connection: Connection, workflow_ids: Collection[int]) -> dict[int, RunRow]:
    """The run of the newest fire time of each workflow, those that have one."""
    rows = await connection.fetch(sql("last_runs"), list(workflow_ids))
    return {row["workflow_id"]: _run(row) for row in rows}


@dataclass(frozen=True, slots=True)
class NodeNow:
    """A node of a run with what is known of its instance."""

    name: str
    job: str
    job_id: int
    instance_id: int
    after: tuple[str, ...]
    generation: int
    state: State
    reason: CancelReason | None
    attempt: int | None
    error_code: str | None
    error_msg: str | None
    claimed_at: datetime | None
    finished_at: datetime | None
    result: str | None


async def nodes_now(connection: Connection, run: RunRow) -> list[NodeNow]:
    """The nodes of a run as they are; one whose instance is gone has the state it was last seen in."""
    return [_node_now(row) for row in await connection.fetch(sql("run_nodes_now"), run.id, run.created_at - SLACK)]


def _node_now(row: asyncpg.Record) -> NodeNow:
    numbers = (row["state"], row["ended"], int(State.DEAD))
    return NodeNow(
        row["name"],
        row["job"],
        row["job_id"],
        row["instance_id"],
        tuple(row["after"]),
        row["generation"],
        State(next(number for number in numbers if number is not None)),
        None if row["reason"] is None else CancelReason(row["reason"]),
        row["attempt"],
        row["error_code"],
        row["error_msg"],
        row["claimed_at"],
        row["finished_at"],
        row["result"],
    )
