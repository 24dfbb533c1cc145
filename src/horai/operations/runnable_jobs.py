"""The job that a trigger runs, and whether a process can run it."""

from horai.core.errors import DispatcherDown, Invalid
from horai.core.job import is_builtin
from horai.core.shards import Role
from horai.db import jobs, nodes
from horai.db.jobs import JobRow
from horai.db.pool import TenantRead, TenantWrite
from horai.text import Hint, Refused, Wrong


async def job_to_run(connection: TenantWrite, job: JobRow, payload: str | None) -> JobRow:
    """Return the job to run. For a refresh job that is its tick job, which loads the entities that are due."""
    ticks = None if job.document.get("refresh") is None else await jobs.ticks_of(connection, job.id)
    if ticks is None:
        return job
    if payload is not None:
        raise Invalid.field("payload", Wrong.PAYLOAD_OF_TICK(), Hint.PUT_A_KEY())
    return await jobs.share_job(connection, ticks.id) or job


async def require_dispatcher(connection: TenantRead, job: JobRow) -> None:
    """Raise `DispatcherDown` if no process can run the job.

    A function may wait for its worker as long as any node or worker is live; other targets and built-in jobs need a node.
    """
    needs_node = job.document["target"]["type"] != "worker" or is_builtin(job.document)
    able = {Role.executor} if needs_node else {Role.executor, Role.worker}
    if not any(able.intersection(node.roles) for node in await nodes.live_nodes(connection)):
        raise DispatcherDown(Refused.NO_DISPATCHER(), Hint.START_A_NODE(), extra={"retryAfter": "5"})
