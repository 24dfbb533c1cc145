"""Reconcilers by request: made, looked at, run now, taken away. What compares is accept/reconciles.py."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from horai.accept import instances, jobs, relanes, requests, slots
from horai.accept.definitions import Written
from horai.accept.requests import Once
from horai.accept.scope import Scope, require_job
from horai.accept.slots import Joined
from horai.core.definition import checked
from horai.core.errors import Invalid, NotFound
from horai.core.reconcilers import checked_source, job_document
from horai.db import jobs as stored_jobs
from horai.db import reconcilers
from horai.db.claims import Woken
from horai.db.pool import Connection, acquire, transaction
from horai.db.reads import InstanceRow
from horai.db.reconcilers import ReconcilerRow, Report


@dataclass(frozen=True, slots=True)
class ReconcilerWish:
    """A reconciler as it is asked for: its name, the job that it watches over, its source, and when it looks."""

    name: str
    job: str
    source: Mapping[str, Any]
    schedule: Mapping[str, Any]


async def create_reconciler(scope: Scope, wish: ReconcilerWish, once: Once | None = None) -> ReconcilerRow:
    """A new one, with the job that runs it. Durable when it returns."""
    checked_source(wish.source)
    document = job_document(wish.name, wish.schedule)
    definition = checked(document)
    request = requests.request_key(scope, "create-reconciler", once) if once else None
    made, joined, woken = None, Joined(), list[Woken]()
    async with transaction(scope.pool) as connection:
        if await requests.take(connection, request):
            target = await require_job(connection, scope, wish.job)
            job, joined, woken = await jobs.add_job(connection, scope, definition, Written(document, None))
            await reconcilers.insert_reconciler(connection, scope.tenant_id, job.id, target.id, wish.source)
            await requests.bind(connection, request, job.id, None)
            made = await reconcilers.reconciler_of_job(connection, job.id)
    if made is None:
        assert request is not None  # noqa: S101 — a request without a key is always the first
        raise await requests.duplicate_of(scope.pool, request)
    slots.announce(scope, joined, woken)
    return made


async def read_reconciler(scope: Scope, reference: str) -> ReconcilerRow:
    """One of the tenant's, by its id or its name; `NotFound` otherwise."""
    async with acquire(scope.pool) as connection:
        return await _require(connection, scope, reference)


async def _require(connection: Connection, scope: Scope, reference: str) -> ReconcilerRow:
    found = await reconcilers.find_reconciler(connection, scope.tenant_id, reference)
    if found is None:
        raise NotFound(f"There is no reconciler {reference[:128]!r}.", "GET /api/v1/reconcilers lists them.")
    return found


async def list_reconcilers(scope: Scope, before: int, limit: int) -> Sequence[ReconcilerRow]:
    """A page, the newest first."""
    async with acquire(scope.pool) as connection:
        return await reconcilers.list_reconcilers(connection, scope.tenant_id, before, limit)


async def list_reports(scope: Scope, reference: str, before: int, limit: int) -> Sequence[Report]:
    """A page of a reconciler's reports, the newest first."""
    async with acquire(scope.pool) as connection:
        reconciler = await _require(connection, scope, reference)
        return await reconcilers.list_reports(connection, reconciler.id, before, limit)


async def run_reconciler(scope: Scope, reference: str, once: Once) -> InstanceRow:
    """Compares now, once per key."""
    reconciler = await read_reconciler(scope, reference)
    return await instances.trigger(scope, str(reconciler.job_id), None, once)


async def delete_reconciler(scope: Scope, reference: str) -> None:
    """It looks no more; what it has made stays, and so do its reports in the database."""
    reconciler = await read_reconciler(scope, reference)
    if reconciler.document.get("declaredBy") is not None:
        raise Invalid(
            f"The reconciler {reconciler.name!r} is declared by the application {reconciler.document['declaredBy']!r}.",
            "Take it out of the code, then delete its job: DELETE /api/v1/jobs/{job}.",
        )
    async with transaction(scope.pool) as connection:
        if (job := await stored_jobs.lock_job(connection, reconciler.job_id)) is not None:
            await jobs.remove_job(connection, job)
    await relanes.relane_now(scope, reconciler.job_id)
