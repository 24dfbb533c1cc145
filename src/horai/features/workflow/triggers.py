"""Start a run of a workflow by request: now, or for a logical date in the past."""

import json
from dataclasses import dataclass
from datetime import datetime

from horai.core.audit import AuditVerb
from horai.core.errors import Invalid
from horai.db.instance_queries import InstanceRow
from horai.db.nodes import database_time
from horai.features.workflow.params import fitted
from horai.features.workflow.service import WorkflowRequest, require_workflow
from horai.operations import instances
from horai.operations.request_keys import Once
from horai.operations.scope import Scope
from horai.text import Hint, Wrong


@dataclass(frozen=True, slots=True)
class RunRequest:
    """A run as a client asks for it: the payload as JSON text, and the time that the run stands for (None: now)."""

    payload: str | None = None
    logical_date: datetime | None = None


@dataclass(frozen=True, slots=True)
class TriggeredRun:
    """A workflow, and the instance that will start the run; the run has the id of that instance."""

    workflow: WorkflowRequest
    instance: InstanceRow


def with_defaults(workflow: WorkflowRequest, payload: str | None) -> str | None:
    """Return the payload of a run with the defaults of its parameters; None if the workflow's own is unchanged.

    Raises `Invalid` with every field that does not fit.
    """
    if workflow.row.params is None:
        return payload
    given = workflow.job.payload if payload is None else payload
    full = fitted(json.loads(workflow.row.params), given)
    return payload if full == given else full


async def trigger_run(scope: Scope, reference: str, asked: RunRequest, once: Once) -> TriggeredRun:
    """Start a run now, once per idempotency key. It has the logical date as its fire time.

    Raises `Invalid` for a logical date in the future and for a payload that does not fit the parameters of the workflow,
    and `Duplicate` for a key that has started a run.
    """
    async with scope.read() as connection:
        workflow = await require_workflow(connection, scope, reference)
        if asked.logical_date is not None and asked.logical_date > await database_time(connection):
            raise Invalid.field("logicalDate", Wrong.IN_FUTURE(), Hint.RUNS_ONCE_PASSED())
    payload = with_defaults(workflow, asked.payload)
    row = await instances.trigger(
        scope, str(workflow.row.job_id), payload, once, AuditVerb.WORKFLOW_TRIGGER, at=asked.logical_date
    )
    return TriggeredRun(workflow, row)
