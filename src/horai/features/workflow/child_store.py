"""Nodes that start runs of other workflows: one function per statement of features/workflow/child_store.sql."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta

from horai.core.limits import RESULT_LIMIT, SHARDS
from horai.core.stored_text import TRUNCATED
from horai.db.catalog import sql
from horai.db.claims import Claimable
from horai.db.pool import AnyRead, AnyWrite, Platform, TenantRead
from horai.features.workflow.graph import RunState


@dataclass(frozen=True, slots=True)
class ChildPhase:
    """The state of a run that a node started. `is_given_up`: nodes of it that are not running will not start."""

    state: RunState
    is_given_up: bool


async def child_phases(connection: AnyRead, instance_ids: Collection[int]) -> dict[int, ChildPhase]:
    """Return the runs that instances have started; instances that have not started one are left out."""
    rows = await connection.fetch(sql("child_phases"), list(instance_ids)) if instance_ids else ()
    return {row["id"]: ChildPhase(RunState(row["phase"]), row["given_up"]) for row in rows}


async def levels_above(connection: Platform, instance_id: int, most: int) -> int:
    """Return how many runs are above the run that an instance starts."""
    return await connection.fetchval(sql("levels_above"), instance_id, most)


async def start_again(
    connection: AnyWrite, failed_id: int, attempt: int, delay: timedelta, since: datetime
) -> Claimable | None:
    """Make another instance for a node whose run failed; None if the node has another instance meanwhile."""
    row = await connection.fetchrow(sql("start_again"), failed_id, attempt, delay, SHARDS, since)
    return None if row is None else Claimable(row["id"], row["lane"], row["due"])


async def reopen_children(connection: AnyWrite, instance_ids: Collection[int]) -> None:
    """Clear the recorded ends of nodes whose runs go on."""
    await connection.execute(sql("reopen_children"), list(instance_ids))


async def note_child_results(connection: AnyWrite, instance_ids: Collection[int], since: datetime) -> None:
    """Record the results of nodes whose runs succeeded."""
    await connection.execute(sql("note_child_results"), list(instance_ids), RESULT_LIMIT, since)


async def child_results(connection: AnyRead, instance_ids: Collection[int]) -> dict[int, str]:
    """Return the results of nodes that started runs, by the ids of their instances."""
    rows = await connection.fetch(sql("child_results"), list(instance_ids)) if instance_ids else ()
    return {row["instance_id"]: row["result"] for row in rows if row["result"] != TRUNCATED}


@dataclass(frozen=True, slots=True)
class ParentNode:
    """The node of another run that a run belongs to."""

    run_id: int
    workflow: str
    node: str


async def parent_of_run(connection: TenantRead, run_id: int) -> ParentNode | None:
    """Return the node that a run belongs to; None for a run of its own."""
    row = await connection.fetchrow(sql("parent_of_run"), run_id)
    return None if row is None else ParentNode(row["run_id"], row["workflow"], row["node"])
