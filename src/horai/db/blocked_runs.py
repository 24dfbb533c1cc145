"""Blocked runs of workflows and their nodes: one function per statement of sql/blocked_runs.sql."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from horai.core.states import State
from horai.db.catalog import sql
from horai.db.pool import AnyRead


@dataclass(frozen=True, slots=True)
class BlockedRow:
    """A run in which nothing is under way and a node died."""

    id: int
    workflow_id: int
    workflow: str
    fire_time: datetime
    created_at: datetime


async def blocked_rows(
    connection: AnyRead, tenant_id: int, before: tuple[datetime, int], limit: int
) -> list[BlockedRow]:
    """Return a page of blocked runs before a fire time and id, newest first."""
    rows = await connection.fetch(sql("blocked_runs"), tenant_id, *before, limit)
    return [BlockedRow(*row.values()) for row in rows]


@dataclass(frozen=True, slots=True)
class BlockedNode:
    """A node of a blocked run. `ended` is None while it waits; the last fields are those of its dead letter."""

    name: str
    after: tuple[str, ...]
    ended: State | None
    instance_id: int
    job_id: int
    job: str
    error_code: str | None
    error_msg: str | None
    died_at: datetime | None
    has_letter: bool


async def nodes_of_blocked(connection: AnyRead, run_ids: Collection[int]) -> dict[int, list[BlockedNode]]:
    """Return the nodes of blocked runs, by run."""
    found: dict[int, list[BlockedNode]] = {}
    for run_id, name, after, ended, *rest in await connection.fetch(sql("nodes_of_blocked"), list(run_ids)):
        state = None if ended is None else State(ended)
        found.setdefault(run_id, []).append(BlockedNode(name, tuple(after), state, *rest))
    return found


async def open_letters(connection: AnyRead, instance_ids: Collection[int]) -> frozenset[int]:
    """Return those of the dead instances whose dead letters can be replayed."""
    return frozenset(row["instance_id"] for row in await connection.fetch(sql("open_letters"), list(instance_ids)))


async def run_of_blocked(connection: AnyRead, instance_id: int) -> int | None:
    """Return the run of a node's instance; None if the instance is no current node."""
    return await connection.fetchval(sql("run_of_blocked"), instance_id)
