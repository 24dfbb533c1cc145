"""Hooks of reconcilers into the life cycle of a job."""

from horai.core.errors import Conflict
from horai.db.jobs import JobRow
from horai.db.pool import TenantRead
from horai.features.reconcile import store
from horai.operations.job_hooks import JobHooks
from horai.text import Hint, Refused


async def _may_delete(connection: TenantRead, job: JobRow) -> None:
    if names := await store.reconcilers_of_target(connection, job.id):
        raise Conflict(
            Refused.JOB_WATCHED(job=job.name, reconciler=names[0]),
            Hint.DELETE_RECONCILERS(),
            extra={"reconciler": names[0]},
        )


HOOKS = JobHooks(may_delete=_may_delete)
