"""The job cache of a harness: it keeps nothing, and retries have no jitter."""

from collections.abc import Collection, Iterable
from dataclasses import replace

from horai.core.retry import Jitter, RetryPolicy
from horai.db.jobs import Runnable
from horai.db.node_settings import WorkflowNodeSettings
from horai.db.pool import Platform
from horai.engine.dispatch.job_cache import JobCache


class FreshJobs(JobCache):
    """A job cache that reads every time, as no real second passes in a test. Retries have no jitter."""

    async def get(self, connection: Platform, job_ids: Iterable[int]) -> dict[int, Runnable]:
        """Return the current jobs by id."""
        fresh = JobCache(self.keyring)
        found = await fresh.get(connection, job_ids)
        self.encrypted |= fresh.encrypted
        return {job_id: _without_jitter(job) for job_id, job in found.items()}

    async def node_settings(
        self, connection: Platform, instance_ids: Collection[int]
    ) -> dict[int, WorkflowNodeSettings]:
        """Return the settings of nodes, whose retries have no jitter either."""
        found = await super().node_settings(connection, instance_ids)
        return {id_: own if own.retry is None else _node_without_jitter(own, own.retry) for id_, own in found.items()}


def _node_without_jitter(own: WorkflowNodeSettings, retry: RetryPolicy) -> WorkflowNodeSettings:
    return replace(own, retry=replace(retry, jitter=Jitter.NONE))


def _without_jitter(job: Runnable) -> Runnable:
    if job.recipe is None:
        return job
    retry = replace(job.recipe.retry, jitter=Jitter.NONE)
    return replace(job, recipe=replace(job.recipe, retry=retry))
