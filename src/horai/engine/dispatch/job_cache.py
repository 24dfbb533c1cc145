"""The job cache: definitions at most a second old, read for a whole batch at once.

Older definitions are requested with their version, so that an unchanged job is not read again.
"""

import math
import time
from collections.abc import Collection, Iterable

from horai.core.addresses import TenantReach
from horai.core.calls import WorkerTarget
from horai.core.wakes import DataKeysWake
from horai.db import jobs, signing_secrets
from horai.db.jobs import Runnable
from horai.db.node_settings import WorkflowNodeSettings, settings_of_nodes
from horai.db.pool import Platform
from horai.db.signing_secrets import CallbackSettings
from horai.db.wakeups import Wakeups
from horai.engine.dispatch.call_secrets import CallSecrets
from horai.operations.keyring import Keyring
from horai.operations.sealed_values import SealedJob

FRESH_SECONDS = 1.0
LIMIT = 100_000


class JobCache:
    """A small cache of jobs and secrets. A pause, a change or a new secret takes effect within a second."""

    def __init__(self, keyring: Keyring | None = None) -> None:
        self.gated: set[int] = set()
        """The jobs, as far as read, whose overlap gates must be told when a run has ended."""
        self.chained: set[int] = set()
        """The jobs, as far as read, that belong to a workflow or are called by durable functions: their ends are told as well."""
        self.encrypted: dict[int, SealedJob] = {}
        """The encrypted jobs, as far as read: their values are opened before a call and sealed after it."""
        self.keyring = keyring or Keyring()
        self._call_secrets = CallSecrets(self.keyring)
        self._known: dict[int, Runnable] = {}
        self._asked_at: dict[int, float] = {}
        self._callbacks: dict[str, CallbackSettings] = {}
        self._secrets_at = -math.inf

    def subscribe_to(self, wakeups: Wakeups) -> None:
        """Forget opened secrets whenever a process erases data keys."""
        wakeups.subscribe(DataKeysWake, lambda _: self.forget_secrets())

    def forget_secrets(self) -> None:
        """Forget what data keys have opened, and read every job again before its next call."""
        self._known |= {job.id: job for job in self._call_secrets.close() if job.id in self._known}
        self._secrets_at = -math.inf
        self._asked_at.clear()

    async def get(self, connection: Platform, job_ids: Iterable[int]) -> dict[int, Runnable]:
        """Return the jobs by id, without those whose row was deleted."""
        wanted = set(job_ids)
        now = time.monotonic()
        if len(self._known) + len(wanted) > LIMIT:
            self._known.clear()
            self._asked_at.clear()
            self._call_secrets.forget()
        asked_at = self._asked_at
        if stale := [i for i in wanted if asked_at.get(i, -math.inf) < now - FRESH_SECONDS]:
            await self._refresh(connection, stale, now)
        return {i: self._known[i] for i in wanted if i in self._known}

    async def _refresh(self, connection: Platform, stale: list[int], now: float) -> None:
        versions = {i: self._known[i].version if i in self._known else 0 for i in stale}
        chained = self.chained.intersection(stale) if self.chained else ()
        changed: list[int] = []
        schedules = {i: self._known[i].schedule_id for i in stale if i in self._known}
        for job in await jobs.jobs_to_run(connection, versions, chained, schedules):
            self._known[job.id] = job
            if self._call_secrets.note(job):
                changed.append(job.id)
            if job.is_encrypted:
                self.encrypted[job.id] = SealedJob(job.tenant_id, job.name)
            _keep(self.gated, job.id, job.is_gated)
            _keep(self.chained, job.id, job.is_chained)
        if now - self._secrets_at >= FRESH_SECONDS and any(_is_signed(self._known.get(i)) for i in stale):
            self._callbacks = await self._read_callbacks(connection, stale)
            self._secrets_at = now
        # After all other queries: secrets that are forgotten during one of them are opened here.
        self._known |= await self._call_secrets.opened(connection, self._known, stale, changed)
        self._asked_at.update(dict.fromkeys(stale, now))  # last: a job counts as read only with its secrets

    async def _read_callbacks(self, connection: Platform, job_ids: Iterable[int]) -> dict[str, CallbackSettings]:
        """Read every tenant's secrets and networks.

        A tenant whose rows were deleted by hand gets a new secret, so that every call is signed.
        """
        stored = await signing_secrets.callback_settings(connection)
        tenants = {each.tenant for each in stored}
        wanted = (self._known[i] for i in job_ids if i in self._known)
        if not all(job.tenant in tenants for job in wanted if _is_signed(job)):
            await signing_secrets.add_missing_secrets(connection)
            stored = await signing_secrets.callback_settings(connection)
        return await self._call_secrets.signing(connection, stored)

    async def node_settings(
        self, connection: Platform, instance_ids: Collection[int]
    ) -> dict[int, WorkflowNodeSettings]:
        """Read the settings of instances that are nodes of workflows. They are not kept: each belongs to one run."""
        return await settings_of_nodes(connection, instance_ids)

    def secrets_of(self, job: Runnable) -> tuple[str, ...]:
        """Return the secrets that sign a call of this job; none if a function runs it."""
        known = self._callbacks.get(job.tenant)
        return known.secrets if known is not None and _is_signed(job) else ()

    def reach_of(self, job: Runnable) -> TenantReach:
        """Return the addresses that a call of this job may dial."""
        known = self._callbacks.get(job.tenant)
        return TenantReach() if known is None else known.reach


def _keep(jobs: set[int], job_id: int, belongs: bool) -> None:
    if belongs:
        jobs.add(job_id)
    else:
        jobs.discard(job_id)


def _is_signed(job: Runnable | None) -> bool:
    return job is not None and job.recipe is not None and not isinstance(job.recipe.target, WorkerTarget)
