"""Reads and user operations of runs: one function per statement of features/workflow/rerun_store.sql."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta

import asyncpg

from horai.core.callbacks import TRUNCATED
from horai.core.states import CancelReason, State
from horai.db.catalog import sql
from horai.db.pool import TenantRead, TenantWrite
from horai.features.workflow.graph import RunState
from horai.features.workflow.run_store import SLACK


@dataclass(frozen=True, slots=True)
class RunRow:
    """A stored run."""

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

    @property
    def duration_ms(self) -> int | None:
        """Return the milliseconds from the creation of the run to its end; None until then."""
        return _millis_between(self.created_at, self.finished_at)


def _millis_between(began: datetime | None, ended: datetime | None) -> int | None:
    """Return a duration; None until it has ended. Both instants come from the clock of the database."""
    return None if began is None or ended is None else max((ended - began) // timedelta(milliseconds=1), 0)


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


async def lock_run(connection: TenantWrite, workflow_id: int, run_id: int) -> RunRow | None:
    """Lock a run until commit and return it; wait for a transaction that is deciding on it."""
    row = await connection.fetchrow(sql("lock_run"), run_id, workflow_id)
    return _run(row) if row else None


async def retire_nodes(
    connection: TenantWrite, run_id: int, names: Collection[str]
) -> dict[str, tuple[int, str | None]]:
    """Mark nodes as replaced by a rerun; return the instance and the own payload of each, by name."""
    rows = await connection.fetch(sql("retire_nodes"), run_id, list(names))
    return {row["name"]: (row["instance_id"], row["payload"]) for row in rows}


async def reopen_run(connection: TenantWrite, run_id: int) -> None:
    """Set a run to RUNNING again, with the next generation."""
    await connection.execute(sql("reopen_run"), run_id)


async def give_up_run(connection: TenantWrite, run_id: int) -> None:
    """Mark a run as given up: nodes that have not started will not start."""
    await connection.execute(sql("give_up_run"), run_id)


async def find_run(connection: TenantRead, workflow_id: int, run_id: int) -> RunRow | None:
    """Return one run of a workflow; None if there is none with this id."""
    row = await connection.fetchrow(sql("find_run"), run_id, workflow_id)
    return _run(row) if row else None


@dataclass(frozen=True, slots=True)
class RunPage:
    """A page request: up to `limit` runs after `before`, newest fire time first; `state` None means any state."""

    before: tuple[datetime, int]
    limit: int
    state: RunState | None = None


async def list_runs(connection: TenantRead, workflow_id: int, page: RunPage) -> list[RunRow]:
    """Return a page of the runs of a workflow."""
    given = (workflow_id, *page.before, page.limit)
    if page.state is None:
        rows = await connection.fetch(sql("list_runs"), *given)
    else:
        rows = await connection.fetch(sql("list_runs_in"), *given, int(page.state))
    return [_run(row) for row in rows]


async def last_runs(connection: TenantRead, workflow_ids: Collection[int]) -> dict[int, RunRow]:
    """Return the run with the newest fire time of each workflow that has a run, by workflow id."""
    rows = await connection.fetch(sql("last_runs"), list(workflow_ids))
    return {row["workflow_id"]: _run(row) for row in rows}


@dataclass(frozen=True, slots=True)
class NodeNow:
    """A node of a run with the known data of its instance."""

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
    is_sealed: bool = False
    """Its job is encrypted."""

    @property
    def kept_result(self) -> str | None:
        """Return the result, if all of it was stored."""
        return None if self.result == TRUNCATED else self.result

    @property
    def duration_ms(self) -> int | None:
        """Return the milliseconds of its last attempt; None until that has ended."""
        return _millis_between(self.claimed_at, self.finished_at)


async def nodes_now(connection: TenantRead, run: RunRow) -> list[NodeNow]:
    """Return the nodes of a run. If the instance of a node is gone, the node has the state it was last seen in."""
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
        row["encrypted"],
    )
