"""Creating, changing, pausing, resuming and deleting jobs. What code declares comes through declarations.py.

Whatever changes when a job fires accounts for each of its slots: made, to be made, or skipped with a reason.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from horai.accept import catchups, gates, relanes, requests
from horai.accept.catchups import Passed
from horai.accept.requests import Once
from horai.accept.scope import Scope, job_not_found, require_job
from horai.core.amendment import amended
from horai.core.cron import NO_NEXT_FIRE
from horai.core.definition import Definition, JobStatus, checked, document_of, is_house, refuse_house
from horai.core.errors import Conflict, Duplicate, Invalid, PreconditionFailed
from horai.core.refresh import ticks_document
from horai.core.schedule import next_after
from horai.core.timing import NONE_BETWEEN, Timing
from horai.db import catchups as deferred
from horai.db import entities, jobs, nodes, plans, schedules, workflows
from horai.db.claims import Woken
from horai.db.jobs import JobRow, JobWrite
from horai.db.plans import Place
from horai.db.pool import Connection, acquire, transaction
from horai.db.schedules import Cursor

CLEARED_AT_ONCE = 10_000
_MOMENT = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Written:
    """A definition as the user wrote it: the checked document and its payload as JSON text."""

    document: Mapping[str, Any]
    payload: str | None


@dataclass(frozen=True, slots=True)
class Joined:
    """A job's schedule, held against the trigger until commit. `is_behind`: late slots of the job are to be made."""

    cursor: Cursor | None = None
    is_behind: bool = False

    @property
    def schedule_id(self) -> int | None:
        """None when the job follows none."""
        return None if self.cursor is None else self.cursor.schedule_id


async def create_job(scope: Scope, written: Written, once: Once | None = None) -> JobRow:
    """A new job, with its one instance when it has `at` or `delay`. Durable when it returns."""
    refuse_house(written.document)
    definition = checked(written.document)
    request = requests.request_key(scope, "create-job", once) if once else None
    job, joined, woken = None, Joined(), list[Woken]()
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
    write, joined = await _fresh(connection, scope.tenant_id, definition, written, now)
    job = await jobs.insert_job(connection, scope.tenant_id, definition.name, write)
    if job is None:
        raise await _name_taken(connection, scope, definition.name)
    await jobs.insert_event(connection, scope.tenant_id, job.id, "JOB_CREATED", {"name": job.name})
    if definition.refresh is not None:
        return job, await _add_ticks(connection, job, now), []
    return job, joined, await _first_instances(connection, job, definition, now)


async def _fresh(
    connection: Connection, tenant_id: int, definition: Definition, written: Written, now: datetime
) -> tuple[JobWrite, Joined]:
    """What a new job is written as, with the schedule that it follows itself."""
    _require_a_slot(definition.timing, now)
    joined = await _join(connection, definition.own_timing, now)
    write = JobWrite(
        definition.status,
        joined.schedule_id,
        await jobs.lane_of(connection, tenant_id, definition),
        document_of(definition, written.document),
        written.payload,
        definition.tags,
        now,
        definition.own_timing,
    )
    return write, joined


async def _add_ticks(connection: Connection, job: JobRow, now: datetime) -> Joined:
    """The job beside a refresh job that follows its schedule: its instances are the ticks."""
    document = ticks_document({**job.document, "status": job.status.name})
    definition = jobs.definition_of(document)
    write, joined = await _fresh(connection, job.tenant_id, definition, Written(document, None), now)
    await jobs.insert_ticks(connection, job, write)
    return joined


async def _first_instances(connection: Connection, job: JobRow, definition: Definition, now: datetime) -> list[Woken]:
    """The one instance of `at` and `delay`, and the first of a job that counts from the end of its runs."""
    if definition.timing.after_finish is not None:
        return (await gates.open_gates(connection, [job.id])).woken
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


async def _join(connection: Connection, timing: Timing, now: datetime) -> Joined:
    next_fire = None if timing.rhythm is None else next_after(timing.rhythm.schedule, now)
    if timing.rhythm is None or next_fire is None:
        return Joined()
    return Joined(await schedules.join_schedule(connection, timing.rhythm, next_fire, now))


def _require_a_slot(timing: Timing, now: datetime) -> None:
    """A schedule that is written has something before it; one that is there may have come to its end."""
    if timing.schedule is None or timing.next_after(now) is not None:
        return
    if next_after(timing.schedule, now) is None:
        raise Invalid.field("cron", NO_NEXT_FIRE)
    raise Invalid.field("endAt", NONE_BETWEEN if timing.start_at else "leaves no slot from now on")


def announce(scope: Scope, joined: Joined, woken: list[Woken]) -> None:
    """Wakes whoever waits for the new instances, for the schedule's coming fire, and for late slots."""
    scope.wakeups.announce(woken)
    if joined.cursor is not None:
        scope.wakeups.wake_schedule(joined.cursor.schedule_id, joined.cursor.fire_time)
    if joined.is_behind:
        scope.wakeups.relane_asked()


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
        refuse_house(job.document)
        document = amended(job.document, job.status, change.fields)
        refuse_house(document)
        ticks = await jobs.ticks_of(connection, job.id)
        changed, joined = await rewrite_job(connection, job, document, payload)
        fields = sorted([*change.fields, *(["payload"] if change.sets_payload else [])])
        await jobs.insert_event(connection, scope.tenant_id, job.id, "JOB_CHANGED", {"fields": fields})
    announce(scope, joined, [])
    await _relane(scope, job, ticks)
    return changed


async def rewrite_job(
    connection: Connection, job: JobRow, document: Mapping[str, Any], payload: str | None
) -> tuple[JobRow, Joined]:
    """Writes another definition for a job that the caller holds; `document` is whole, its status included.

    Under the same calendar its slots go on where they were; under another one they begin now.
    """
    changed, joined = await _rewrite(connection, job, document, payload)
    ticks = await jobs.lock_ticks(connection, job.id)
    if changed.document.get("refresh") is None:
        if ticks is not None:
            await _withdraw(connection, ticks, "JOB_CHANGED")
        return changed, joined
    if ticks is None:
        return changed, await _add_ticks(connection, changed, await nodes.database_time(connection))
    told = ticks_document({**changed.document, "status": changed.status.name})
    return changed, (await _rewrite(connection, ticks, told, None))[1]


async def _rewrite(
    connection: Connection, job: JobRow, document: Mapping[str, Any], payload: str | None
) -> tuple[JobRow, Joined]:
    definition = jobs.definition_of(document)
    now = await nodes.database_time(connection)
    joined, active_from = await _rejoin(connection, job, definition, now)
    write = JobWrite(
        definition.status,
        joined.schedule_id,
        await jobs.lane_of(connection, job.tenant_id, definition),
        document_of(definition, document),
        payload,
        definition.tags,
        active_from,
        definition.own_timing,
        _missed_from(job, joined.cursor) if definition.status is JobStatus.PAUSED else None,
        job.note,
    )
    return await jobs.update_job(connection, job.id, write), joined


async def _rejoin(
    connection: Connection, job: JobRow, definition: Definition, now: datetime
) -> tuple[Joined, datetime]:
    """The schedule of a job that is written anew, and from when on its slots count; each of them is accounted for."""
    before, timing = jobs.definition_of(job.document).own_timing, definition.own_timing
    if before != timing:
        _require_a_slot(timing, now)
    left = None if job.schedule_id is None else await schedules.share_schedule_of(connection, job.schedule_id)
    joined = await _join(connection, timing, now)
    if joined.cursor is None or before.schedule != timing.schedule:
        await deferred.give_up_catchups(connection, job.id, "JOB_CHANGED")
        return joined, now if before.schedule != timing.schedule else job.active_from
    if _resumes(job, definition):
        return await _make_up_for_pause(connection, job, timing, joined, now), _decided_until(job, joined)
    if left is None or job.status is JobStatus.PAUSED or joined.schedule_id == job.schedule_id:
        return joined, job.active_from
    return await _change_over(connection, job, timing, left, joined, now)


async def _change_over(
    connection: Connection, job: JobRow, timing: Timing, left: Cursor, joined: Joined, now: datetime
) -> tuple[Joined, datetime]:
    """From one schedule to another of the same calendar, whose cursors may differ: no slot twice, and none lost."""
    assert joined.cursor is not None  # noqa: S101 — the caller asked
    assert timing.rhythm is not None  # noqa: S101
    since = _not_made(job, left)
    passed = Passed(job.id, timing.rhythm, max(since, job.active_from + _MOMENT), joined.cursor)
    is_behind = await catchups.make_up_for(connection, passed, now, "MISFIRE")
    return Joined(joined.cursor, is_behind), max(job.active_from, since - _MOMENT)


async def _make_up_for_pause(
    connection: Connection, job: JobRow, timing: Timing, joined: Joined, now: datetime
) -> Joined:
    """The slots of a pause that ends: by the misfire policy, as after a downtime."""
    if joined.cursor is None or timing.rhythm is None:
        return joined
    since = max(job.missed_from or job.active_from, job.active_from + _MOMENT)
    passed = Passed(job.id, timing.rhythm, since, joined.cursor)
    return Joined(joined.cursor, await catchups.make_up_for(connection, passed, now, "PAUSED"))


def _decided_until(job: JobRow, joined: Joined) -> datetime:
    """From when on its slots count: a schedule that it went over to during a pause may be behind the one that it left."""
    if job.missed_from is None or joined.cursor is None or joined.cursor.fire_time >= job.missed_from:
        return job.active_from
    return max(job.active_from, job.missed_from - _MOMENT)


def _resumes(job: JobRow, definition: Definition) -> bool:
    return job.status is JobStatus.PAUSED and definition.status is JobStatus.ACTIVE


async def pause_job(scope: Scope, reference: str, note: str | None) -> JobRow:
    """No more slots, and what waits is held; what runs is left to finish. Pausing twice changes only the note."""
    async with transaction(scope.pool) as connection:
        job = await _lock(connection, scope, reference)
        paused = await _pause(connection, job, note)
        if (ticks := await jobs.lock_ticks(connection, job.id)) is not None:
            await _pause(connection, ticks, note)
        await jobs.insert_event(connection, scope.tenant_id, job.id, "JOB_PAUSED", {"note": note})
    await _relane(scope, job, ticks)
    return paused


async def _pause(connection: Connection, job: JobRow, note: str | None) -> JobRow:
    cursor = None if job.schedule_id is None else await schedules.share_schedule_of(connection, job.schedule_id)
    write = replace(_as_is(job), status=JobStatus.PAUSED, note=note, missed_from=_missed_from(job, cursor))
    return await jobs.update_job(connection, job.id, write)


async def _relane(scope: Scope, job: JobRow, ticks: JobRow | None) -> None:
    for each in (job, ticks):
        if each is not None:
            await relanes.relane_now(scope, each.id)


def _missed_from(job: JobRow, cursor: Cursor | None) -> datetime | None:
    """From when on a job that is paused misses slots: its schedule, held until commit, may itself be behind."""
    if job.status is JobStatus.PAUSED:
        return job.missed_from
    return None if cursor is None else _not_made(job, cursor)


def _not_made(job: JobRow, cursor: Cursor) -> datetime:
    """The first instant whose slot a schedule has not made for the job; a slot half made has passed it or not."""
    return cursor.fire_time + _MOMENT if 0 < job.id <= cursor.last_job else cursor.fire_time


async def resume_job(scope: Scope, reference: str, note: str | None) -> JobRow:
    """What was held goes on; the slots of the pause follow the misfire policy, as after a downtime."""
    async with transaction(scope.pool) as connection:
        job = await _lock(connection, scope, reference)
        resumed, joined = await _resume(connection, job, note)
        if (ticks := await jobs.lock_ticks(connection, job.id)) is not None:
            _, joined = await _resume(connection, ticks, note)
        await jobs.insert_event(connection, scope.tenant_id, job.id, "JOB_RESUMED", {"note": note})
    announce(scope, joined, [])
    await _relane(scope, job, ticks)
    return resumed


async def _resume(connection: Connection, job: JobRow, note: str | None) -> tuple[JobRow, Joined]:
    joined = Joined()
    if job.status is JobStatus.PAUSED:
        now = await nodes.database_time(connection)
        timing = jobs.definition_of(job.document).own_timing
        joined = await _make_up_for_pause(connection, job, timing, await _join(connection, timing, now), now)
    write = replace(_as_is(job), status=JobStatus.ACTIVE, note=note, active_from=_decided_until(job, joined))
    return await jobs.update_job(connection, job.id, write), joined


async def delete_job(scope: Scope, reference: str, if_version: int | None = None) -> None:
    """Takes the job away: what waits is cancelled, what runs finishes, history stays."""
    async with transaction(scope.pool) as connection:
        job = await _lock(connection, scope, reference, if_version)
        await _require_unused(connection, job)
        await remove_job(connection, job)
        if (ticks := await jobs.lock_ticks(connection, job.id)) is not None:
            await _withdraw(connection, ticks, "JOB_DELETED")
    await _relane(scope, job, ticks)
    async with acquire(scope.pool) as connection:
        while await entities.clear_entities(connection, job.id, CLEARED_AT_ONCE):
            pass


async def _withdraw(connection: Connection, job: JobRow, reason: str) -> None:
    await jobs.delete_job(connection, job.id)
    await deferred.give_up_catchups(connection, job.id, reason)


async def remove_job(connection: Connection, job: JobRow) -> None:
    """The same for a job that the caller holds, in its transaction: what waits is to be moved after the commit."""
    await _withdraw(connection, job, "JOB_DELETED")
    await jobs.insert_event(connection, job.tenant_id, job.id, "JOB_DELETED", {"name": job.name})


async def _require_unused(connection: Connection, job: JobRow) -> None:
    """Whoever makes it part of a workflow holds it meanwhile, so that this look comes before or after."""
    if is_house(job.document):
        raise Conflict(
            f"The job {job.name!r} belongs to Horai itself.", "Delete what it belongs to: its workflow, for example."
        )
    if names := await workflows.workflows_with(connection, job.id):
        raise Conflict(
            f"The job {job.name!r} is a node of the workflow {names[0]!r}.",
            "Take it out of its workflows first: PATCH or DELETE /api/v1/workflows/{workflow}.",
            extra={"workflow": names[0]},
        )


def _as_is(job: JobRow) -> JobWrite:
    return JobWrite(
        job.status,
        job.schedule_id,
        job.lane_id,
        job.document,
        job.payload,
        job.tags,
        job.active_from,
        jobs.definition_of(job.document).own_timing,
        note=job.note,
    )


async def _lock(connection: Connection, scope: Scope, reference: str, if_version: int | None = None) -> JobRow:
    found = await require_job(connection, scope, reference)
    job = await jobs.lock_job(connection, found.id)
    if job is None:
        raise job_not_found(reference)
    if job.ticks_for is not None:
        raise Invalid(
            f"The job {job.name!r} makes the ticks of another one.", "Change the refresh job that it is named after."
        )
    if if_version is not None and job.version != if_version:
        raise PreconditionFailed(
            f"The job {job.name!r} has version {job.version}, not {if_version}.",
            "Read it again, look at what changed, and send the new ETag in If-Match.",
        )
    return job
