"""Workflows as a list shows them: with the last run and the next fire time."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from horai.features.workflow import rerun_store
from horai.features.workflow.rerun_store import RunRow
from horai.features.workflow.sealed_nodes import readable_workflows
from horai.features.workflow.service import WorkflowRequest
from horai.operations.scope import Scope
from horai.operations.upcoming import next_fire_times


@dataclass(frozen=True, slots=True)
class WorkflowView:
    """A workflow with its last run and next fire time.

    `last_run` has the newest fire time; `next_fire` is None if the workflow is paused or not scheduled.
    """

    workflow: WorkflowRequest
    last_run: RunRow | None
    next_fire: datetime | None


async def views(scope: Scope, found: Sequence[WorkflowRequest]) -> list[WorkflowView]:
    """Return the workflows as the caller may see them, with two queries for any number of workflows."""
    if not found:
        return []
    async with scope.read() as connection:
        last = await rerun_store.last_runs(connection, [workflow.row.id for workflow in found])
        fires = await next_fire_times(connection, [workflow.job for workflow in found])
        rows = await readable_workflows(connection, scope, [workflow.row for workflow in found])
    shown = [WorkflowRequest(row, each.job) for row, each in zip(rows, found, strict=True)]
    return [WorkflowView(each, last.get(each.row.id), fires.get(each.job.id)) for each in shown]


async def view(scope: Scope, workflow: WorkflowRequest) -> WorkflowView:
    """Return one workflow with its last run and next fire time."""
    (seen,) = await views(scope, [workflow])
    return seen
