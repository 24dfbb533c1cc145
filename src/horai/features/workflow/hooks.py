"""Hooks of workflows into the life cycle of a job."""

from horai.core.errors import Conflict
from horai.db.jobs import JobRow
from horai.db.pool import TenantRead
from horai.features.workflow import store
from horai.features.workflow.runs import abandon_runs
from horai.operations.job_hooks import JobHooks
from horai.text import Hint, Refused


async def _may_delete(connection: TenantRead, job: JobRow) -> None:
    found = await store.workflows_with(connection, job.id)
    if not found:
        return
    first = next(iter(found))
    told = {"workflow": first, "workflows": ", ".join(found)}
    if found[first]:
        raise Conflict(Refused.JOB_IN_COMPOSITION(job=job.name, workflow=first), Hint.DELETE_FORMS(), extra=told)
    raise Conflict(Refused.JOB_IN_WORKFLOW(job=job.name, workflow=first), Hint.TAKE_OUT_OF_WORKFLOWS(), extra=told)


HOOKS = JobHooks(may_delete=_may_delete, replaced=abandon_runs)
