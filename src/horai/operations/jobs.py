"""Operations that create, change, pause, resume and delete jobs. Jobs that code declares go through declarations.py.

An operation that changes when a job fires accounts for each of its slots (job_schedule.py); a refresh job takes its
tick job along (tick_job.py).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import msgspec

from horai.core.audit import AuditVerb
from horai.core.calls import HttpTarget
from horai.core.definitions import shown_document
from horai.core.errors import Conflict, Duplicate
from horai.core.job import (
    Definition,
    JobStatus,
    checked,
    is_builtin,
    read_target,
    refuse_builtin,
    target_document,
)
from horai.core.job_patch import amended
from horai.core.masking import revealed_target
from horai.core.sealed_values import SealedColumn
from horai.db import instances, jobs, nodes, schedules
from horai.db.claims import Claimable
from horai.db.jobs import JobRow
from horai.db.pool import TenantRead, TenantWrite, limit_lock_wait
from horai.operations import (
    audit,
    calendars,
    job_rows,
    job_schedule,
    overlap,
    request_keys,
    target_secrets,
    tick_job,
    versions,
)
from horai.operations.job_rows import JobDocument
from horai.operations.job_schedule import JoinedSlots
from horai.operations.nats_brokers import require_broker
from horai.operations.request_keys import Once
from horai.operations.scope import Scope, hold_job
from horai.operations.sealed_values import SealedJob, seal_text
from horai.operations.versions import StoredDefinition, definition_text
from horai.text import Hint, Refused


async def create_job(scope: Scope, written: JobDocument, once: Once | None = None) -> JobRow:
    """Create a job, with its one instance if it has `at` or `delay`. It is durable when this returns."""
    refuse_builtin(written.document)
    checked_job = checked(written.document)
    if target := written.document.get("target"):
        revealed_target(target, None, "target")
    request = request_keys.request_key(scope, "create-job", once) if once else None
    job, joined, woken = None, JoinedSlots(), list[Claimable]()
    async with scope.write() as connection:
        if await request_keys.take(connection, scope, request):
            job, joined, woken = await add_job(connection, scope, checked_job, written)
            await request_keys.bind(connection, request, job.id, woken[0].id if woken else None)
            await audit.record_write(connection, scope, AuditVerb.JOB_CREATE, job.id, job.name, audited_fields(job))
            await versions.keep(connection, scope, definition(job))
    if job is None:
        assert request is not None  # noqa: S101 — a request without a key is always the first
        raise await request_keys.duplicate_of(scope, request)
    job_schedule.announce(scope, joined, woken)
    return job


async def add_job(
    connection: TenantWrite, scope: Scope, definition: Definition, written: JobDocument
) -> tuple[JobRow, JoinedSlots, list[Claimable]]:
    """Create a job in the caller's transaction. Raise `Duplicate` if its name is taken.

    Announce it after the commit.
    """
    now = await nodes.database_time(connection)
    definition = await _sealed(connection, scope, definition)
    if not definition.timing.is_readable:
        defined = await calendars.defined(connection, scope.tenant_id, written.document)
        definition = replace(definition, timing=defined.timing)
    if definition.is_encrypted:
        scope.keyring.require_for_job()
        own = SealedJob(scope.tenant_id, definition.name, definition.search_paths)
        written = replace(written, payload=await seal_payload(connection, scope, own, written.payload))
    write, joined = await job_rows.fresh(connection, scope.tenant_id, definition, written, now)
    job = await jobs.insert_job(connection, scope.tenant_id, definition.name, write)
    if job is None:
        raise await _name_taken(connection, scope, definition.name)
    if not is_builtin(job.document):
        await tell_written(connection, scope, job)
    await jobs.insert_event(connection, scope.tenant_id, job.id, "JOB_CREATED", {"name": job.name})
    if definition.refresh is not None:
        return job, await tick_job.add_ticks(connection, job, now), []
    joined = await job_schedule.make_up_since_start(connection, job, definition.own_timing, joined, now)
    return job, joined, await _first_instances(connection, job, definition, now)


async def tell_written(connection: TenantWrite, scope: Scope, job: JobRow) -> None:
    """Let the features store what they read from a definition, in the transaction that writes it.

    The owner of a built-in job calls it, once its own rows are written.
    """
    for hooks in scope.hooks:
        if hooks.written is not None:
            await hooks.written(connection, job)


async def _sealed(connection: TenantWrite, scope: Scope, definition: Definition) -> Definition:
    """Return the definition to store: the secrets of its target are in an envelope, and its named secrets exist.

    Its broker is one that the operator allows.
    """
    require_broker(scope, definition.target)
    if not isinstance(definition.target, HttpTarget):
        return definition
    await target_secrets.require_named(connection, scope, definition.target.named)
    document = target_document(definition.target)
    place = target_secrets.place_of_target(definition.name, document)
    stored = await target_secrets.sealed(connection, scope.keyring, scope.tenant_id, place, document)
    return replace(definition, target=read_target({"target": stored}))


async def seal_payload(connection: TenantWrite, scope: Scope, job: SealedJob, payload: str | None) -> str | None:
    """Return the payload of an encrypted job as it is stored."""
    return await seal_text(connection, scope.keyring, job, SealedColumn.PAYLOAD, payload)


async def _first_instances(
    connection: TenantWrite, job: JobRow, definition: Definition, now: datetime
) -> list[Claimable]:
    """Insert the one instance of `at` or `delay`, or the first one of a job that counts from the end of its runs."""
    if definition.timing.after_finish is not None:
        return (await overlap.open_gates(connection, [job.id])).woken
    at = definition.at if definition.delay is None else now + definition.delay
    if at is None:
        return []
    place = instances.target_of(job)
    return await instances.insert_many(connection, place, [(at, None)])


async def _name_taken(connection: TenantRead, scope: Scope, name: str) -> Duplicate:
    first = await jobs.find_job(connection, scope.tenant_id, name)
    known = {"jobId": str(first.id), "state": first.status.name} if first else {}
    return Duplicate(Refused.JOB_NAME_TAKEN(name=name), Hint.CHOOSE_ANOTHER_NAME(), extra=known)


@dataclass(frozen=True, slots=True)
class JobChange:
    """The content of a PATCH: fields to merge (None removes one), and a new payload if `sets_payload`."""

    fields: Mapping[str, Any]
    payload: str | None = None
    sets_payload: bool = False
    if_version: int | None = None


async def change_job(scope: Scope, reference: str, change: JobChange) -> JobRow:
    """Merge fields into the definition. Raise `PreconditionFailed` if the job's version is not `if_version`."""
    async with scope.write() as connection:
        job = await hold_job(connection, scope, reference, change.if_version)
        payload = change.payload if change.sets_payload else job.payload
        if job.is_encrypted and change.sets_payload:
            own = SealedJob(scope.tenant_id, job.name, job.search_paths)
            payload = await seal_payload(connection, scope, own, change.payload)
        refuse_builtin(job.document)
        fields = dict(change.fields)
        if fields.get("target"):
            place = target_secrets.place_of_target(job.name, job.document["target"])
            stored = await target_secrets.kept_by(connection, scope, place, job.document["target"], fields["target"])
            fields["target"] = revealed_target(fields["target"], stored, "target")
        document = amended(job.document, job.status, fields)
        refuse_builtin(document)
        if fields.get("target"):
            sealed = await _sealed(connection, scope, jobs.definition_of(document))
            document["target"] = target_document(sealed.target)
        ticks = await jobs.ticks_of(connection, job.id)
        changed, joined = await rewrite_job(connection, scope, job, document, payload)
        named = sorted([*change.fields, *(["payload"] if change.sets_payload else [])])
        await jobs.insert_event(connection, scope.tenant_id, job.id, "JOB_CHANGED", {"fields": named})
        fields = audited_fields(job), audited_fields(changed)
        await audit.record_change(connection, scope, AuditVerb.JOB_CHANGE, job.id, job.name, *fields)
        await versions.keep(connection, scope, definition(changed), definition(job))
    job_schedule.announce(scope, joined, [])
    await tick_job.move_both(scope, job, ticks)
    return changed


async def rewrite_job(
    connection: TenantWrite, scope: Scope, job: JobRow, document: Mapping[str, Any], payload: str | None
) -> tuple[JobRow, JoinedSlots]:
    """Write another definition for a job that the caller has locked. `document` is complete, including its status.

    Under the same calendar its slots continue where they were; under another one they begin now.
    """
    changed, joined = await job_rows.rewrite(connection, job, document, payload)
    if not is_builtin(changed.document):
        await tell_written(connection, scope, changed)
    ticked = await tick_job.follow_change(connection, changed)
    return changed, ticked or joined


async def pause_job(scope: Scope, reference: str, note: str | None, verb: AuditVerb = AuditVerb.JOB_PAUSE) -> JobRow:
    """Pause the job: make no slots and hold waiting instances. Running instances finish.

    A second pause changes only the note.
    """
    async with scope.write() as connection:
        job = await hold_job(connection, scope, reference)
        paused = await pause_held(connection, job, note)
        if (ticks := await jobs.lock_ticks(connection, job.id)) is not None:
            await pause_held(connection, ticks, note)
        await jobs.insert_event(connection, scope.tenant_id, job.id, "JOB_PAUSED", {"note": note})
        fields = audited_fields(job), audited_fields(paused)
        await audit.record_change(connection, scope, verb, job.id, job.name, *fields)
    await tick_job.move_both(scope, job, ticks)
    return paused


async def pause_held(connection: TenantWrite, job: JobRow, note: str | None) -> JobRow:
    """Pause a job that the caller has locked, in its transaction."""
    cursor = None if job.schedule_id is None else await schedules.share_schedule_of(connection, job.schedule_id)
    write = replace(
        await job_rows.as_is(connection, job),
        status=JobStatus.PAUSED,
        note=note,
        missed_from=job_schedule.missed_from(job, cursor),
    )
    return await jobs.update_job(connection, job.id, write)


async def resume_job(scope: Scope, reference: str, note: str | None, verb: AuditVerb = AuditVerb.JOB_RESUME) -> JobRow:
    """Resume the job: release held instances. Slots of the pause follow the misfire policy, as after a downtime."""
    async with scope.write() as connection:
        job = await hold_job(connection, scope, reference)
        now = await nodes.database_time(connection)
        resumed, joined = await resume_held(connection, job, note, now)
        if (ticks := await jobs.lock_ticks(connection, job.id)) is not None:
            _, joined = await resume_held(connection, ticks, note, now)
        await jobs.insert_event(connection, scope.tenant_id, job.id, "JOB_RESUMED", {"note": note})
        fields = audited_fields(job), audited_fields(resumed)
        await audit.record_change(connection, scope, verb, job.id, job.name, *fields)
    job_schedule.announce(scope, joined, [])
    await tick_job.move_both(scope, job, ticks)
    return resumed


async def resume_held(
    connection: TenantWrite, job: JobRow, note: str | None, now: datetime
) -> tuple[JobRow, JoinedSlots]:
    """Resume a job that the caller has locked, in its transaction. Announce it after the commit."""
    write, joined = await job_rows.as_is(connection, job), JoinedSlots()
    if job.status is JobStatus.PAUSED:
        joined = await job_schedule.join(connection, write.timing, now)
        joined = await job_schedule.make_up_for_pause(connection, job, write.timing, joined, now)
    write = replace(write, status=JobStatus.ACTIVE, note=note, active_from=job_schedule.decided_until(job, joined))
    return await jobs.update_job(connection, job.id, write), joined


def audited_fields(job: JobRow) -> dict[str, Any]:
    """Return the fields of a job that the audit log compares."""
    return {**job.document, "status": job.status.name, "note": job.note, "payload": job.payload}


def definition(job: JobRow) -> StoredDefinition:
    """Return the definition of a job, without its secrets. The payload of an encrypted job is left out."""
    payload = {} if job.payload is None or job.is_encrypted else {"payload": msgspec.Raw(job.payload.encode())}
    text = definition_text({**shown_document(job.document), **payload})
    return StoredDefinition("job", job.id, job.name, job.version, job.updated_at, job.document.get("declaredBy"), text)


async def delete_job(
    scope: Scope, reference: str, if_version: int | None = None, patience: timedelta | None = None
) -> None:
    """Delete the job: cancel waiting instances; running ones finish, and history stays.

    `patience` bounds the wait for each lock.
    """
    async with scope.write() as connection:
        if patience is not None:
            await limit_lock_wait(connection, patience)
        job = await hold_job(connection, scope, reference, if_version)
        await _require_unused(connection, scope, job)
        await remove_job(connection, job)
        if (ticks := await jobs.lock_ticks(connection, job.id)) is not None:
            await job_rows.withdraw(connection, ticks, "JOB_DELETED")
        await audit.record_write(connection, scope, AuditVerb.JOB_DELETE, job.id, job.name)
        await versions.forget(connection, scope, "job", job.id)
    await tick_job.move_both(scope, job, ticks)


async def remove_job(connection: TenantWrite, job: JobRow) -> None:
    """Delete a job that the caller has locked, in its transaction. Move its waiting rows after the commit."""
    await job_rows.withdraw(connection, job, "JOB_DELETED")
    await jobs.insert_event(connection, job.tenant_id, job.id, "JOB_DELETED", {"name": job.name})


async def _require_unused(connection: TenantRead, scope: Scope, job: JobRow) -> None:
    """Raise `Conflict` if Horai made the job itself or a feature needs it.

    A feature that begins to need the job locks it meanwhile, so this check runs before or after that.
    """
    if is_builtin(job.document):
        raise Conflict(Refused.JOB_IS_OURS(job=job.name), Hint.DELETE_ITS_OWNER())
    for hooks in scope.hooks:
        if hooks.may_delete is not None:
            await hooks.may_delete(connection, job)
