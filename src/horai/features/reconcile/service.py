"""Operations on reconcilers: create, read, change, pause, run now and delete. The comparison is in compare.py."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from horai.core.audit import AuditVerb
from horai.core.errors import Invalid, NotFound
from horai.core.job import checked
from horai.core.masking import revealed_target
from horai.db import jobs as stored_jobs
from horai.db.claims import Claimable
from horai.db.instance_queries import InstanceRow
from horai.db.jobs import JobRow
from horai.db.pool import TenantRead, TenantWrite
from horai.features.reconcile import store as reconcilers
from horai.features.reconcile.definition import changed_document, checked_source, job_document, shown_source
from horai.features.reconcile.store import ReconcilerRow, Report
from horai.features.reconcile.stored_definition import stored_definition
from horai.operations import (
    audit,
    instances,
    job_schedule,
    jobs,
    move_waiting,
    request_keys,
    target_secrets,
    versions,
)
from horai.operations.job_rows import JobDocument
from horai.operations.job_schedule import JoinedSlots
from horai.operations.request_keys import Once
from horai.operations.scope import Scope, job_not_found, require_job, require_version
from horai.operations.upcoming import next_fire_times
from horai.text import Hint, Refused, Wrong


@dataclass(frozen=True, slots=True)
class ReconcilerWish:
    """A requested reconciler: its name, the job that it watches, its source and its schedule."""

    name: str
    job: str
    source: Mapping[str, Any]
    schedule: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Overview:
    """A reconciler with its last report and its next fire time; None while it is paused or runs on demand."""

    row: ReconcilerRow
    last: Report | None
    next_fire: datetime | None


async def create_reconciler(scope: Scope, wish: ReconcilerWish, once: Once | None = None) -> Overview:
    """Create a reconciler and the job that runs it. Both are durable on return."""
    checked_source(wish.source, scope.sources)
    revealed_target(wish.source, None, "source")
    document = job_document(wish.name, wish.schedule)
    definition = checked(document)
    request = request_keys.request_key(scope, "create-reconciler", once) if once else None
    made, joined, woken = None, JoinedSlots(), list[Claimable]()
    async with scope.write() as connection:
        if await request_keys.take(connection, scope, request):
            target = await _share_target(connection, scope, wish.job)
            job, joined, woken = await jobs.add_job(connection, scope, definition, JobDocument(document, None))
            stored = await _sealed(connection, scope, wish.name, wish.source)
            await reconcilers.insert_reconciler(connection, scope.tenant_id, job.id, target.id, stored)
            await request_keys.bind(connection, request, job.id, None)
            made = await _overview_of(connection, job.id)
            after = {**jobs.audited_fields(job), "source": wish.source, "job": target.name}
            await audit.record_write(connection, scope, AuditVerb.RECONCILER_CREATE, made.row.id, job.name, after)
            await versions.keep(connection, scope, stored_definition(made.row))
    if made is None:
        assert request is not None  # noqa: S101 — a request without a key is always the first
        raise await request_keys.duplicate_of(scope, request)
    job_schedule.announce(scope, joined, woken)
    return made


async def _share_target(connection: TenantWrite, scope: Scope, reference: str) -> JobRow:
    """Lock the job to watch until commit, so that it is not deleted meanwhile, and return it."""
    found = await require_job(connection, scope, reference)
    target = await stored_jobs.share_job(connection, found.id)
    if target is None:
        raise job_not_found(reference)
    if target.is_encrypted:
        raise Invalid.field("job", Wrong.TARGET_ENCRYPTED(name=target.name), Hint.OTHER_JOB_FOR_SECRETS())
    return target


async def read_reconciler(scope: Scope, reference: str) -> Overview:
    """Return a reconciler of the tenant by id or name. Raises `NotFound` if there is none."""
    async with scope.read() as connection:
        row = await _require(connection, scope, reference)
        return (await _overviews(connection, [row]))[0]


async def _require(connection: TenantRead, scope: Scope, reference: str) -> ReconcilerRow:
    found = await reconcilers.find_reconciler(connection, scope.tenant_id, reference)
    if found is None:
        raise not_found(reference)
    return found


def not_found(reference: str) -> NotFound:
    """Return the error for a reconciler that does not exist."""
    return NotFound(Refused.NO_RECONCILER(name=reference[:128]), Hint.LISTED_AT(path="/api/v1/reconcilers"))


async def _overview_of(connection: TenantRead, job_id: int) -> Overview:
    """Return the reconciler of a job that the caller has locked."""
    row = await reconcilers.reconciler_of_job(connection, job_id)
    assert row is not None  # noqa: S101 — a reconciler and its job are created and deleted together
    return (await _overviews(connection, [row]))[0]


async def _overviews(connection: TenantRead, rows: Sequence[ReconcilerRow]) -> list[Overview]:
    """Return the overviews of reconcilers that belong to one tenant."""
    known = await stored_jobs.jobs_by_name(connection, rows[0].tenant_id, [row.name for row in rows]) if rows else {}
    fires = await next_fire_times(connection, list(known.values()))
    last = await reconcilers.last_reports(connection, [row.id for row in rows])
    return [Overview(row, last.get(row.id), fires.get(row.job_id)) for row in rows]


async def list_reconcilers(scope: Scope, before: int, limit: int) -> list[Overview]:
    """Return a page of reconcilers, newest first."""
    async with scope.read() as connection:
        rows = await reconcilers.list_reconcilers(connection, scope.tenant_id, before, limit)
        return await _overviews(connection, rows)


async def list_reports(scope: Scope, reference: str, before: int, limit: int) -> Sequence[Report]:
    """Return a page of the reports of a reconciler, newest first."""
    async with scope.read() as connection:
        reconciler = await _require(connection, scope, reference)
        return await reconcilers.list_reports(connection, reconciler.id, before, limit)


async def run_reconciler(scope: Scope, reference: str, once: Once) -> InstanceRow:
    """Start a comparison now, once per idempotency key."""
    async with scope.read() as connection:
        reconciler = await _require(connection, scope, reference)
    return await instances.trigger(scope, str(reconciler.job_id), None, once, AuditVerb.RECONCILER_RUN)


@dataclass(frozen=True, slots=True)
class ReconcilerChange:
    """The content of a PATCH: schedule fields to merge (None removes one), and a complete new source."""

    schedule: Mapping[str, Any]
    source: Mapping[str, Any] | None = None
    if_version: int | None = None


async def change_reconciler(scope: Scope, reference: str, change: ReconcilerChange) -> Overview:
    """Change the schedule or the source; a current run reads a new source from its beginning."""
    async with scope.write() as connection:
        row, job = await _lock(connection, scope, reference, change.if_version)
        document = changed_document(job.document, job.status, change.schedule)
        rewritten, joined = await jobs.rewrite_job(connection, scope, job, document, job.payload)
        before = {**jobs.audited_fields(job), "source": row.source}
        after = {**jobs.audited_fields(rewritten), "source": row.source}
        if change.source is not None:
            source = await _changed_source(connection, scope, row, change.source)
            await reconcilers.change_source(connection, row.id, source)
            after["source"] = source
        fields = sorted([*change.schedule, *(["source"] if change.source is not None else [])])
        await stored_jobs.insert_event(connection, scope.tenant_id, job.id, "RECONCILER_CHANGED", {"fields": fields})
        await audit.record_change(connection, scope, AuditVerb.RECONCILER_CHANGE, row.id, row.name, before, after)
        changed = await _overview_of(connection, job.id)
        await versions.keep(connection, scope, stored_definition(changed.row), stored_definition(row))
    job_schedule.announce(scope, joined, [])
    await move_waiting.move_waiting_now(scope, [job.id])
    return changed


async def _changed_source(
    connection: TenantWrite, scope: Scope, row: ReconcilerRow, given: Mapping[str, Any]
) -> Mapping[str, Any]:
    """Return the source to store. If the change leaves its secrets as they are, it is the stored one."""
    place = target_secrets.place_of_source(row.name, row.source)
    before = await target_secrets.kept_by(connection, scope, place, row.source, given)
    source = revealed_target(given, before, "source")
    checked_source(source, scope.sources)
    return row.source if source == before else await _sealed(connection, scope, row.name, source)


async def _sealed(
    connection: TenantWrite, scope: Scope, reconciler: str, source: Mapping[str, Any]
) -> Mapping[str, Any]:
    place = target_secrets.place_of_source(reconciler, source)
    return await target_secrets.sealed(connection, scope.keyring, scope.tenant_id, place, source)


async def set_paused(scope: Scope, reference: str, note: str | None, *, paused: bool) -> Overview:
    """Pause or resume a reconciler; a current run finishes."""
    async with scope.read() as connection:
        row = await _require(connection, scope, reference)
    if paused:
        await jobs.pause_job(scope, str(row.job_id), note, AuditVerb.RECONCILER_PAUSE)
    else:
        await jobs.resume_job(scope, str(row.job_id), note, AuditVerb.RECONCILER_RESUME)
    return await read_reconciler(scope, str(row.id))


async def delete_reconciler(scope: Scope, reference: str, if_version: int | None = None) -> None:
    """Delete a reconciler; the instances that it created stay, and its reports stay in the database."""
    async with scope.write() as connection:
        row, job = await _lock(connection, scope, reference, if_version)
        await jobs.remove_job(connection, job)
        await reconcilers.wipe_source(connection, row.id, shown_source(row.source))
        await audit.record_write(connection, scope, AuditVerb.RECONCILER_DELETE, row.id, row.name)
        await versions.forget(connection, scope, "reconciler", row.id)
    await move_waiting.move_waiting_now(scope, [row.job_id])


async def _lock(
    connection: TenantWrite, scope: Scope, reference: str, if_version: int | None
) -> tuple[ReconcilerRow, JobRow]:
    """Lock the job of a reconciler.

    Raises `Invalid` if code declares the reconciler, because then only code changes it.
    """
    row = await _require(connection, scope, reference)
    if row.declared_by is not None:
        raise Invalid(
            Refused.RECONCILER_DECLARED(name=row.name, application=row.declared_by),
            Hint.CHANGE_RECONCILER_IN_CODE(),
        )
    job = await stored_jobs.lock_job(connection, row.job_id)
    if job is None:
        raise not_found(reference)
    require_version(f"reconciler {row.name!r}", job.version, if_version)
    return row, job
