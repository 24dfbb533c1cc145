"""What the engine knows of jobs: definitions at most a second old, asked for a whole batch at once.

What is older is asked for by its version, so that a job which has not changed is not read again.
"""

import math
import time
from collections.abc import Iterable

from horai.core.calls import HttpTarget
from horai.db import jobs, signing_secrets
from horai.db.jobs import Runnable
from horai.db.pool import Connection

FRESH_SECONDS = 1.0
LIMIT = 100_000


class JobCache:
    """A small cache. A pause or a change is seen after a second at the latest, and so is a new secret."""

    def __init__(self) -> None:
        self.gated: set[int] = set()
        """The jobs whose gates want to know when a run has ended, as far as they have been read."""
        self.chained: set[int] = set()
        """The jobs that are in a workflow, whose runs want to know as well."""
        self._known: dict[int, Runnable] = {}
        self._asked_at: dict[int, float] = {}
        self._secrets: dict[str, tuple[str, ...]] = {}
        self._secrets_at = -math.inf

    async def get(self, connection: Connection, job_ids: Iterable[int]) -> dict[int, Runnable]:
        """The jobs by id; one whose row is gone for good is absent."""
        wanted = set(job_ids)
        now = time.monotonic()
        if len(self._known) + len(wanted) > LIMIT:
            self._known.clear()
            self._asked_at.clear()
        asked_at = self._asked_at
        if stale := [i for i in wanted if asked_at.get(i, -math.inf) < now - FRESH_SECONDS]:
            await self._refresh(connection, stale, now)
        return {i: self._known[i] for i in wanted if i in self._known}

    async def _refresh(self, connection: Connection, stale: list[int], now: float) -> None:
        versions = {i: self._known[i].version if i in self._known else 0 for i in stale}
        chained = self.chained.intersection(stale) if self.chained else ()
        for job in await jobs.jobs_to_run(connection, versions, chained):
            self._known[job.id] = job
            _keep(self.gated, job.id, job.is_gated)
            _keep(self.chained, job.id, job.is_chained)
        if now - self._secrets_at >= FRESH_SECONDS and any(_is_http(self._known.get(i)) for i in stale):
            self._secrets = await self._read_secrets(connection, stale)
            self._secrets_at = now
        self._asked_at.update(dict.fromkeys(stale, now))  # at last: without its secrets a job is not known

    async def _read_secrets(self, connection: Connection, job_ids: Iterable[int]) -> dict[str, tuple[str, ...]]:
        """Read every tenant's secrets. A tenant whose rows were deleted by hand gets a new one: no call goes unsigned."""
        secrets = await signing_secrets.signing_secrets(connection)
        wanted = (self._known[i] for i in job_ids if i in self._known)
        if all(job.tenant in secrets for job in wanted if _is_http(job)):
            return secrets
        await signing_secrets.add_missing_secrets(connection)
        return await signing_secrets.signing_secrets(connection)

    def secrets_of(self, job: Runnable) -> tuple[str, ...]:
        """What a call of this job is signed with."""
        return self._secrets.get(job.tenant, ()) if _is_http(job) else ()


def _keep(jobs: set[int], job_id: int, belongs: bool) -> None:
    if belongs:
        jobs.add(job_id)
    else:
        jobs.discard(job_id)


def _is_http(job: Runnable | None) -> bool:
    return job is not None and job.recipe is not None and isinstance(job.recipe.target, HttpTarget)
