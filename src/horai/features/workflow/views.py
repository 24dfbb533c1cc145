"""Workflows as a list of them shows each: with its last run, and when it runs next."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from horai.db.pool import acquire
from horai.features.workflow import rerun_store
from horai.features.workflow.rerun_store import RunRow
from horai.features.workflow.service import WorkflowRequest
from horai.operations.scope import Scope
from horai.operations.upcoming import next_fire_times


@dataclass(frozen=True, slots=True)
class WorkflowView:
    """A workflow; `last_run` is the one of the newest fire time, `next_fire` is None for one that is paused or not scheduled."""

    workflow: WorkflowRequest
    last_run: RunRow | None
    next_fire: datetime | None


async def views(scope: Scope, found: Sequence[WorkflowRequest]) -> list[WorkflowView]:
    """The workflows with their runs: two statements, however many they are."""
    if not found:
        return []
    async with acquire(scope.pool) as connection:
        last = await rerun_store.last_runs(connection, [workflow.row.id for workflow in found])
        fires = await next_fire_times(connection, [workflow.job for workflow in found])
    return [WorkflowView(each, last.get(each.row.id), fires.get(each.job.id)) for each in found]


async def view(scope: Scope, workflow: WorkflowRequest) -> WorkflowView:
    """One of them."""
    (seen,) = await views(scope, [workflow])
    return seen
