"""Creating, changing, pausing, resuming and deleting jobs. What code declares comes through declarations.py."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from horai.accept import relanes, requests
from horai.accept.requests import Once
from horai.accept.scope import Scope, job_not_found, require_job
from horai.core.definition import SCHEDULE_FIELDS, Definition, JobStatus, checked, document_of
from horai.core.errors import Duplicate, Invalid, PreconditionFailed
from horai.core.schedule import next_after
from horai.db import jobs, nodes, plans, schedules
from horai.db.claims import Woken
from horai.db.jobs import JobRow, JobWrite
from horai.db.plans import Place
from horai.db.pool import Connection, transaction
from horai.db.schedules import SkippedRange

NESTED = ("retry", "dst")
"""Fields whose members a PATCH changes one by one. A target is one value: its headers may hold what only its URL may see."""
BESIDE_CRON = ("timezone", "dst")


@dataclass(frozen=True, slots=True)
class Written:
    """A definition as the user wrote it: the checked document and its payload as JSON text."""

    document: Mapping[str, Any]
    payload: str | None


@dataclass(frozen=True, slots=True)
class Joined:
    """A job's schedule, held against the trigger until commit."""

    schedule_id: int | None
    fire_time: datetime | None


async def create_job(scope: Scope, written: Written, once: Once | None = None) -> JobRow:
    """A new job, with its one instance when it has `at` or `delay`. Durable when it returns."""
    definition = checked(written.document)
    request = requests.request_key(scope, "create-job", once) if once else None
    job, joined, woken = None, Joined(None, None), list[Woken]()
    async with transaction(scope.pool) as connection:
        if await requests.take(connection, request):
            job, joined, woken = await add_job(connection, scope, definition, written)
            await requests.bind(connection, request, job.id, woken[0].id if woken else None)
    if job is None:
        assert request is not None  # noqa: S101 — a request without a key is always the first
        raise await requests.duplicate_of(scope.pool, request)
    announce(scope, joined, woken)
    return job


async def add_job(
    connection: Connection, scope: Scope, definition: Definition, written: Written
) -> tuple[JobRow, Joined, list[Woken]]:
    """A new job in the caller's transaction; `Duplicate` when its name is taken. Announce it after the commit."""
    now = await nodes.database_time(connection)
    joined = await _join(connection, definition, now)
    write = JobWrite(
        definition.status,
        joined.schedule_id,
        await jobs.lane_of(connection, scope.tenant_id, definition),
        document_of(definition, written.document),
        written.payload,
        definition.tags,
        now,
    )
    job = await jobs.insert_job(connection, scope.tenant_id, definition.name, write)
    if job is None:
        raise await _name_taken(connection, scope, definition.name)
    await jobs.insert_event(connection, scope.tenant_id, job.id, "JOB_CREATED", {"name": job.name})
    return job, joined, await _insert_single(connection, job, definition, now)


async def _insert_single(connection: Connection, job: JobRow, definition: Definition, now: datetime) -> list[Woken]:
    at = definition.at if definition.delay is None else now + definition.delay
    if at is None:
        return []
    place = Place(job.id, job.tenant_id, job.lane_now, job.payload)
    return await plans.insert_many(connection, place, [(at, None)])


async def _name_taken(connection: Connection, scope: Scope, name: str) -> Duplicate:
    first = await jobs.find_job(connection, scope.tenant_id, name)
    known = {"jobId": str(first.id), "state": first.status.name} if first else {}
    return Duplicate(
        f"There is a job named {name!r} already.", "PATCH it to change it, or choose another name.", extra=known
    )


async def _join(connection: Connection, definition: Definition, now: datetime) -> Joined:
    if definition.schedule is None:
        return Joined(None, None)
    next_fire = next_after(definition.schedule, now)
    if next_fire is None:
        raise Invalid.field("cron", "cron has no next fire time")
    schedule_id, fire_time = await schedules.join_schedule(connection, definition.schedule, next_fire)
    return Joined(schedule_id, fire_time)


def announce(scope: Scope, joined: Joined, woken: list[Woken]) -> None:
    """Wakes whoever waits for the new instances and for the schedule's coming fire."""
    scope.wakeups.announce(woken)
    if joined.schedule_id is not None and joined.fire_time is not None:
        scope.wakeups.wake_schedule(joined.schedule_id, joined.fire_time)


@dataclass(frozen=True, slots=True)
class Change:
    """What a PATCH brings: fields to merge (None takes one away), and a new payload where `sets_payload`."""

    fields: Mapping[str, Any]
    payload: str | None = None
    sets_payload: bool = False
    if_version: int | None = None


async def change_job(scope: Scope, reference: str, change: Change) -> JobRow:
    """Merges fields into the definition; whoever asked with an old version changes nothing."""
    async with transaction(scope.pool) as connection:
        job = await _lock(connection, scope, reference, change.if_version)
        payload = change.payload if change.sets_payload else job.payload
        changed, joined = await rewrite_job(connection, job, _merged(job, change.fields), payload)
        fields = sorted([*change.fields, *(["payload"] if change.sets_payload else [])])
        await jobs.insert_event(connection, scope.tenant_id, job.id, "JOB_CHANGED", {"fields": fields})
    announce(scope, joined, [])
    await relanes.relane_now(scope, job.id)
    return changed


async def rewrite_job(
    connection: Connection, job: JobRow, document: Mapping[str, Any], payload: str | None
) -> tuple[JobRow, Joined]:
    """Writes another definition for a job that the caller holds; `document` is whole, its status included.

    Under the same schedule its slots go on where they were; under another one, or after a pause, they begin now.
    """
    definition = jobs.definition_of(document)
    now = await nodes.database_time(connection)
    joined = await _join(connection, definition, now)
    write = JobWrite(
        definition.status,
        joined.schedule_id,
        await jobs.lane_of(connection, job.tenant_id, definition),
        document_of(definition, document),
        payload,
        definition.tags,
        job.active_from if joined.schedule_id == job.schedule_id and not _resumes(job, definition) else now,
        job.note,
    )
    if _resumes(job, definition):
        await _keep_pause(connection, job, joined, now)
    return await jobs.update_job(connection, job.id, write), joined


async def _keep_pause(connection: Connection, job: JobRow, joined: Joined, now: datetime) -> None:
    """The slots of a pause that ends were skipped: kept as one range."""
    if joined.schedule_id is not None:
        skipped = SkippedRange(job.paused_at or job.updated_at, now, None, "PAUSED")
        await schedules.insert_skip(connection, joined.schedule_id, job.id, skipped)


def _resumes(job: JobRow, definition: Definition) -> bool:
    return job.status is JobStatus.PAUSED and definition.status is JobStatus.ACTIVE


def _merged(job: JobRow, fields: Mapping[str, Any]) -> dict[str, Any]:
    """The stored document with `fields` laid over it; a new schedule field takes the place of the old one.

    What stands beside a cron goes with it.
    """
    if "name" in fields and fields["name"] != job.name:
        raise Invalid.field("name", "never changes", "Create another job under the new name and delete this one.")
    for field in ("at", "delay"):
        if field in fields:
            raise Invalid.field(field, "cannot be changed", "Cancel its instance and create another job.")
    takes_over = any(fields.get(field) is not None for field in SCHEDULE_FIELDS)
    kept = {name: value for name, value in job.document.items() if not (takes_over and name in SCHEDULE_FIELDS)}
    given = {name: _laid_over(kept.get(name), value) if name in NESTED else value for name, value in fields.items()}
    merged = {**kept, "status": job.status.name, **given}
    outlived = {name for name in BESIDE_CRON if merged.get("cron") is None and fields.get(name) is None}
    return {name: value for name, value in merged.items() if value is not None and name not in outlived}


def _laid_over(stored: Any, given: Any) -> Any:
    """Member by member; null takes one away."""
    if stored is None or given is None:
        return given
    return {name: value for name, value in {**stored, **given}.items() if value is not None}


async def pause_job(scope: Scope, reference: str, note: str | None) -> JobRow:
    """No more slots, and what waits is held; what runs is left to finish. Pausing twice changes only the note."""
    async with transaction(scope.pool) as connection:
        job = await _lock(connection, scope, reference)
        paused = await jobs.update_job(connection, job.id, replace(_as_is(job), status=JobStatus.PAUSED, note=note))
        await jobs.insert_event(connection, scope.tenant_id, job.id, "JOB_PAUSED", {"note": note})
    await relanes.relane_now(scope, job.id)
    return paused


async def resume_job(scope: Scope, reference: str, note: str | None) -> JobRow:
    """Slots from now on, and what was held goes on. The slots of the pause are kept as skipped."""
    joined = Joined(None, None)
    async with transaction(scope.pool) as connection:
        job = await _lock(connection, scope, reference)
        write = replace(_as_is(job), status=JobStatus.ACTIVE, note=note)
        if job.status is JobStatus.PAUSED:
            now = await nodes.database_time(connection)
            joined = await _join(connection, jobs.definition_of(job.document), now)
            write = replace(write, active_from=now)
            await _keep_pause(connection, job, joined, now)
        resumed = await jobs.update_job(connection, job.id, write)
        await jobs.insert_event(connection, scope.tenant_id, job.id, "JOB_RESUMED", {"note": note})
    announce(scope, joined, [])
    await relanes.relane_now(scope, job.id)
    return resumed


async def delete_job(scope: Scope, reference: str, if_version: int | None = None) -> None:
    """Takes the job away: what waits is cancelled, what runs finishes, history stays."""
    async with transaction(scope.pool) as connection:
        job = await _lock(connection, scope, reference, if_version)
        await jobs.delete_job(connection, job.id)
        await jobs.insert_event(connection, scope.tenant_id, job.id, "JOB_DELETED", {"name": job.name})
    await relanes.relane_now(scope, job.id)


def _as_is(job: JobRow) -> JobWrite:
    return JobWrite(
        job.status, job.schedule_id, job.lane_id, job.document, job.payload, job.tags, job.active_from, job.note
    )


async def _lock(connection: Connection, scope: Scope, reference: str, if_version: int | None = None) -> JobRow:
    found = await require_job(connection, scope, reference)
    job = await jobs.lock_job(connection, found.id)
    if job is None:
        raise job_not_found(reference)
    if if_version is not None and job.version != if_version:
        raise PreconditionFailed(
            f"The job {job.name!r} has version {job.version}, not {if_version}.",
            "Read it again, look at what changed, and send the new ETag in If-Match.",
        )
    return job
