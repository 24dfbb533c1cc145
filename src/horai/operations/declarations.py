"""Jobs that an application's code declares, applied when it starts, after its queues.

The code defines the job, and the operator decides whether it runs: a pause, a resume and their note stay as they are,
everything else follows the code. Every process of an application declares the same jobs, often many processes at once,
and usually nothing has changed: then nothing is written. Each job is written in its own transaction, so that a start
never holds up the trigger; the next start finishes one that was cut short.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import Enum, auto
from typing import Any

from horai.core.audit import AuditVerb
from horai.core.errors import Duplicate, FieldError, Invalid
from horai.core.job import Definition, checked, document_of, refuse_builtin, with_instants
from horai.core.sealed_values import SealedColumn
from horai.core.timing import INSTANT_FIELDS
from horai.db import jobs
from horai.db.claims import Claimable
from horai.db.jobs import JobRow
from horai.db.pool import TenantRead, TenantWrite, retrying
from horai.operations import audit, move_waiting, versions
from horai.operations.declared_owner import NAME_LIMIT, DeclaredChanges, Owner, owner_of
from horai.operations.declared_queues import DeclaredQueue, look
from horai.operations.job_rows import JobDocument
from horai.operations.job_schedule import JoinedSlots, announce
from horai.operations.jobs import add_job, audited_fields, definition, rewrite_job, seal_payload
from horai.operations.scope import Scope
from horai.operations.sealed_values import SealedJob, SealedText, load_keys, opened_or_none

TRIES = 5
SECOND_REFUSED = "a job belongs to the first application that declares it"


@dataclass(frozen=True, slots=True)
class DeclaredJob:
    """A job as code declares it: its document, with `payloadSchema` if there is one, and its payload as JSON text.

    `status` in the document applies only when the job is created.
    """

    document: Mapping[str, Any]
    payload: str | None


class _Fate(Enum):
    created = auto()
    changed = auto()
    unchanged = auto()


@dataclass(frozen=True, slots=True)
class _DesiredJob:
    """A valid declared job. `document` is exactly the document to store."""

    owner: Owner
    definition: Definition
    document: Mapping[str, Any]
    payload: str | None

    @property
    def name(self) -> str:
        return self.definition.name


async def declare(
    scope: Scope, app: str | Owner, declared: Sequence[DeclaredJob], queues: Sequence[DeclaredQueue] = ()
) -> DeclaredChanges:
    """Create and change jobs to match the code, and first the queues.

    Raise `Invalid` with every error of every job, or of every queue, before anything is written. A deleted job is created again, because
    the code declares it. A job made by hand is taken over if its target is this worker handler. A job of another
    application is not, unless the owner had that name before.
    """
    owner = owner_of(app)
    wishes = _checked(owner, declared)
    declared_queues = await look(scope, owner, queues)
    stored, removed = await _look(scope, owner, wishes)
    applied = await declared_queues.apply(scope)
    fates = {wish.name: _fate(stored.get(wish.name), wish) for wish in wishes}
    for wish in wishes:
        if fates[wish.name] is not _Fate.unchanged:
            fates[wish.name] = await _apply(scope, wish)
    return applied + _applied(fates, removed)


async def compare(
    scope: Scope, app: str | Owner, declared: Sequence[DeclaredJob], queues: Sequence[DeclaredQueue] = ()
) -> DeclaredChanges:
    """Return the changes that `declare` would make, without making them."""
    owner = owner_of(app)
    wishes = _checked(owner, declared)
    planned = (await look(scope, owner, queues)).changes()
    stored, removed = await _look(scope, owner, wishes)
    return planned + _applied({wish.name: _fate(stored.get(wish.name), wish) for wish in wishes}, removed)


def _applied(fates: Mapping[str, _Fate], removed: Iterable[str]) -> DeclaredChanges:
    by_fate = {fate: tuple(name for name, own in fates.items() if own is fate) for fate in _Fate}
    return DeclaredChanges(by_fate[_Fate.created], by_fate[_Fate.changed], by_fate[_Fate.unchanged], tuple(removed))


def _checked(owner: Owner, declared: Sequence[DeclaredJob]) -> list[_DesiredJob]:
    """Return the valid jobs ordered by name, the order in which every process writes them."""
    owner.require_valid_name()
    wishes: dict[str, _DesiredJob] = {}
    faults: list[FieldError] = []
    hint: str | None = None
    for one in declared:
        name = str(one.document.get("name", ""))[:NAME_LIMIT]
        try:
            wish = _wish(owner, one)
        except Invalid as error:
            faults += [FieldError(f"{name}.{fault.field}", fault.message) for fault in error.errors]
            hint = hint or error.hint
            continue
        if wish.name in wishes:
            faults.append(FieldError(f"{name}.name", "is declared twice"))
        wishes[wish.name] = wish
    _refuse(faults, hint)
    return [wishes[name] for name in sorted(wishes)]


def _wish(owner: Owner, declared: DeclaredJob) -> _DesiredJob:
    document = {**declared.document, **owner.mark}
    for field in INSTANT_FIELDS:
        if isinstance(at := document.get(field), datetime):
            if at.tzinfo is None:
                raise Invalid.field(field, "has no UTC offset", "Write datetime(…, tzinfo=UTC).")
            document[field] = at.astimezone(UTC)
    refuse_builtin(document)
    definition = checked(with_instants(document))
    stored = json.dumps(document_of(definition, document), allow_nan=False)
    return _DesiredJob(owner, definition, json.loads(stored), declared.payload)


async def _look(scope: Scope, owner: Owner, wishes: Sequence[_DesiredJob]) -> tuple[dict[str, JobRow], list[str]]:
    """Return the stored jobs by name and the names no longer in the code. Raise `Invalid` on conflicts."""
    names = [wish.name for wish in wishes]
    async with scope.read() as connection:
        found = await jobs.jobs_by_name(connection, scope.tenant_id, names)
        stored = {name: await _comparable(connection, scope, job) for name, job in found.items()}
        known = await jobs.names_declared_by(connection, scope.tenant_id, owner.name) if owner.name else []
    there = [stored[wish.name] for wish in wishes if wish.name in stored]
    hints = [_way_out(job, owner) for job in there]
    faults = [fault for wish in wishes if wish.name in stored for fault in _conflicts(stored[wish.name], wish)]
    _refuse(faults, next(filter(None, hints), None))
    return stored, [name for name in known if name not in set(names)]


async def _comparable(connection: TenantRead, scope: Scope, job: JobRow) -> JobRow:
    """Return the job with its payload opened. One that cannot be opened differs from every declared payload."""
    if not job.is_encrypted or job.payload is None:
        return job
    sealed = SealedText(SealedJob(scope.tenant_id, job.name), SealedColumn.PAYLOAD, job.payload)
    await load_keys(connection, scope.keyring, [sealed])
    return replace(job, payload=opened_or_none(scope.keyring, sealed))


def _refuse(faults: Sequence[FieldError], hint: str | None = None) -> None:
    if faults:
        raise Invalid.fields(faults, hint)


def _conflicts(job: JobRow, wish: _DesiredJob) -> list[FieldError]:
    """Return the errors that keep a stored job from becoming the declared one."""
    owner = job.document.get("declaredBy")
    if not wish.owner.may_declare(owner):
        return [FieldError(job.name, f"is declared by the application {owner!r}, and {SECOND_REFUSED}")]
    if owner is None and job.document["target"] != wish.document["target"]:
        there = "was made by hand and does not run this function: delete it, or name the function's job otherwise"
        return [FieldError(job.name, there)]
    told = "never changes: give the job of the function another name, or delete the stored one"
    if job.is_encrypted is not wish.definition.is_encrypted:
        return [FieldError(f"{job.name}.encrypted", told)]
    if job.search_paths != wish.definition.search_paths:
        return [FieldError(f"{job.name}.searchPaths", told)]
    return [
        FieldError(f"{job.name}.{field}", "cannot be changed: cancel its instance and declare another job")
        for field in ("at", "delay")
        if wish.document.get(field) not in {None, job.document.get(field)}
    ]


def _way_out(job: JobRow, owner: Owner) -> str | None:
    """Return the hint for a job that belongs to another application; None if it does not."""
    theirs: str | None = job.document.get("declaredBy")
    return None if theirs is None or owner.may_declare(theirs) else owner.way_out(theirs)


def _fate(job: JobRow | None, wish: _DesiredJob) -> _Fate:
    if job is None:
        return _Fate.created
    return _Fate.changed if _differing(job, wish) else _Fate.unchanged


def _differing(job: JobRow, wish: _DesiredJob) -> list[str]:
    """Return the fields in which the stored job differs from the declared one. The pause status is not compared."""
    fields = sorted({*job.document, *wish.document})
    differing = [field for field in fields if job.document.get(field) != wish.document.get(field)]
    return differing if job.payload == wish.payload else [*differing, "payload"]


async def _apply(scope: Scope, wish: _DesiredJob) -> _Fate:
    """Write the job. If another process was first, compare again: then usually nothing is written."""
    for left in reversed(range(TRIES)):
        try:
            return await retrying(lambda: _write(scope, wish))
        except Duplicate:  # another process created it a moment ago: compare with its row
            if left == 0:
                raise
    raise AssertionError("there is at least one try")


async def _write(scope: Scope, wish: _DesiredJob) -> _Fate:
    joined, woken = JoinedSlots(), list[Claimable]()
    async with scope.write() as connection:
        job = await _lock(connection, scope, wish.name)
        known = None if job is None else await _comparable(connection, scope, job)
        fate = _fate(known, wish)
        if job is None:
            written = JobDocument(wish.document, wish.payload)
            job, joined, woken = await add_job(connection, scope, wish.definition, written)
            await audit.record_write(connection, scope, AuditVerb.JOB_CREATE, job.id, job.name, audited_fields(job))
            await versions.keep(connection, scope, definition(job))
        elif fate is _Fate.changed:
            joined = await _change(connection, scope, job, _differing(known or job, wish), wish)
    announce(scope, joined, woken)
    if fate is _Fate.changed:
        await move_waiting.move_waiting_now(scope, [job.id])
    return fate


async def _lock(connection: TenantWrite, scope: Scope, name: str) -> JobRow | None:
    found = await jobs.find_job(connection, scope.tenant_id, name)
    return None if found is None else await jobs.lock_job(connection, found.id)


async def _change(
    connection: TenantWrite, scope: Scope, job: JobRow, differing: Sequence[str], wish: _DesiredJob
) -> JoinedSlots:
    _refuse(_conflicts(job, wish), _way_out(job, wish.owner))
    payload = wish.payload
    if job.is_encrypted:
        is_new, own = "payload" in differing, SealedJob(scope.tenant_id, job.name, job.search_paths)
        payload = await seal_payload(connection, scope, own, wish.payload) if is_new else job.payload
    changed, joined = await rewrite_job(connection, scope, job, {**wish.document, "status": job.status.name}, payload)
    fields = {"fields": list(differing), "application": wish.owner.name}
    await jobs.insert_event(connection, job.tenant_id, job.id, "JOB_CHANGED", fields)
    both = audited_fields(job), audited_fields(changed)
    await audit.record_change(connection, scope, AuditVerb.JOB_CHANGE, job.id, job.name, *both)
    await versions.keep(connection, scope, definition(changed), definition(job))
    return joined
