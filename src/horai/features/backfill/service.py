"""Requests on backfills: count, start, read, pause, resume, cancel. `stage.py` creates their slots."""

import asyncio
from dataclasses import dataclass
from datetime import datetime
from itertools import islice

from horai.core.audit import AuditVerb
from horai.core.errors import AlreadyFinal, NotFound, RetryLimited
from horai.core.states import CancelReason
from horai.core.timing import Timing
from horai.core.wakes import MoveWaitingWake
from horai.db import controls, instances, jobs, nodes, quotas
from horai.db.calendars import definition_of
from horai.db.idempotency import RequestKey
from horai.db.jobs import JobRow
from horai.db.pool import TenantRead
from horai.features.backfill import store as backfills
from horai.features.backfill.rules import (
    MOST_SLOTS,
    OPEN,
    BackfillRequest,
    BackfillStatus,
    bounds,
    check_history,
    check_range,
    choose,
    is_too_many,
    too_many,
)
from horai.features.backfill.store import BackfillRow, BackfillWrite
from horai.operations import audit, request_keys
from horai.operations.request_keys import Once
from horai.operations.scope import Scope, job_not_found, require_job
from horai.text import Hint, Refused
from horai.time.fires_between import are_more_than, slots_from
from horai.time.schedule import Schedule

PAGE = 5_000
RETRY_AFTER = "60"
"""Seconds after which a backfill that was refused may be tried again."""

_EVENTS = {
    BackfillStatus.RUNNING: "BACKFILL_RESUMED",
    BackfillStatus.PAUSED: "BACKFILL_PAUSED",
    BackfillStatus.CANCELLED: "BACKFILL_CANCELLED",
}
_VERBS = {
    BackfillStatus.RUNNING: AuditVerb.BACKFILL_RESUME,
    BackfillStatus.PAUSED: AuditVerb.BACKFILL_PAUSE,
    BackfillStatus.CANCELLED: AuditVerb.BACKFILL_CANCEL,
}


@dataclass(frozen=True, slots=True)
class Survey:
    """The size of a backfill as of now: the slots of the range, how many would run, and the first and last of these."""

    job: JobRow
    timing: Timing
    schedule: Schedule
    wish: BackfillRequest
    until: datetime
    slots: int = 0
    total: int = 0
    first: datetime | None = None
    last: datetime | None = None


async def survey_backfill(scope: Scope, reference: str, wish: BackfillRequest) -> Survey:
    """Count exactly the slots that would run, without writing."""
    async with scope.read() as connection:
        job = await require_job(connection, scope, reference)
        now = await nodes.database_time(connection)
    return await _survey(scope, job, wish, now)


async def _survey(scope: Scope, job: JobRow, wish: BackfillRequest, now: datetime) -> Survey:
    async with scope.read() as connection:
        timing = (await definition_of(connection, job)).own_timing
        coming = await backfills.coming_slots(connection, job.id)
    schedule = check_range(wish, timing, now)
    until = wish.until or now
    first_instant, end = bounds(timing, wish.since, until)
    check_history(wish.mode, coming, first_instant, end)
    if is_too_many(schedule, first_instant, end) or are_more_than(MOST_SLOTS, schedule, first_instant, end):
        raise too_many()
    walk = slots_from(schedule, first_instant, end)
    slots = total = 0
    first = last = None
    while page := await asyncio.to_thread(lambda: [*islice(walk, PAGE)]):  # a search for rare days takes long
        slots += len(page)
        if slots > MOST_SLOTS:
            raise too_many()
        async with scope.read() as connection:
            coming = await backfills.coming_slots(connection, job.id)
            known = await backfills.known_slots(connection, job.id, page[0], page[-1])
        if chosen := choose(wish.mode, page, known, coming, len(page)).chosen:
            total += len(chosen)
            first, last = first or chosen[0][0], chosen[-1][0]
    return Survey(job, timing, schedule, wish, until, slots, total, first, last)


async def start_backfill(
    scope: Scope, reference: str, wish: BackfillRequest, once: Once | None = None, note: str | None = None
) -> BackfillRow:
    """Create a backfill for the stage to process; a repeated request gets the first one. Durable when it returns."""
    async with scope.read() as connection:
        job = await require_job(connection, scope, reference)
        request = request_keys.request_key(scope, f"backfill:{job.id}", once) if once else None
        made = await _made_by(connection, job, request) if request else None
        if made is None and await controls.is_backfill_closed(connection, scope.tenant_id):
            raise RetryLimited(Refused.BACKFILL_CLOSED(), Hint.WAIT_FOR_MODE(), extra={"retryAfter": RETRY_AFTER})
        now = await nodes.database_time(connection)
    if made is None:
        made = await _insert(scope, await _survey(scope, job, wish, now), request, note)
        scope.wakeups.publish(MoveWaitingWake())
    return await read_backfill(scope, made)


async def _made_by(connection: TenantRead, job: JobRow, request: RequestKey) -> int | None:
    """Return the backfill that the first request with this key created. Raise if that request had another body."""
    found = await backfills.backfill_of_request(connection, job.tenant_id, job.id, request.key)
    if found is not None and found[1] != request.digest:
        raise request_keys.another_body(request)
    return None if found is None else found[0]


async def _insert(scope: Scope, survey: Survey, request: RequestKey | None, note: str | None) -> int:
    wish, job = survey.wish, survey.job
    first, end = bounds(survey.timing, wish.since, survey.until)
    write = BackfillWrite(
        survey.schedule,
        wish.since,
        survey.until,
        first if survey.slots else None,
        end,
        wish.mode,
        wish.concurrency_of(survey.timing),
        wish.rate,
        survey.slots,
        survey.total,
        note,
        request.key if request else None,
        request.digest if request else None,
    )
    async with scope.write() as connection:
        if await jobs.share_job(connection, job.id) is None:
            raise job_not_found(job.name)
        await quotas.charge_jobs(connection, [job.id])  # its slots are made later, while the quota has room for them
        made = await backfills.insert_backfill(connection, scope.tenant_id, job.id, write)
        if made is not None:
            await jobs.insert_event(connection, scope.tenant_id, job.id, "BACKFILL_STARTED", _told(made, survey, write))
            told = _told(made, survey, write)
            await audit.record_write(connection, scope, AuditVerb.BACKFILL_CREATE, made, job.name, told)
            return made
    assert request is not None  # noqa: S101 — only a request key can exist already
    async with scope.read() as connection:
        first_made = await _made_by(connection, job, request)
    assert first_made is not None  # noqa: S101 — backfills are never deleted
    return first_made


def _told(backfill_id: int, survey: Survey, write: BackfillWrite) -> dict[str, object]:
    return {
        "backfillId": str(backfill_id),
        "from": write.since.isoformat(),
        "to": write.until.isoformat(),
        "mode": write.mode.name,
        "slots": survey.slots,
        "total": survey.total,
        "rate": str(write.rate) if write.rate else None,
        "maxConcurrency": write.max_concurrency,
    }


async def read_backfill(scope: Scope, backfill_id: int) -> BackfillRow:
    """Return a backfill of this tenant with its progress."""
    async with scope.read() as connection:
        found = await backfills.find_backfill(connection, scope.tenant_id, backfill_id)
    if found is None:
        raise backfill_not_found(str(backfill_id))
    return found


def backfill_not_found(reference: str) -> NotFound:
    """Build the error for a backfill that does not exist or belongs to another tenant."""
    return NotFound(Refused.NO_BACKFILL(backfill=reference[:40]), Hint.LISTED_AT(path="/api/v1/backfills"))


async def pause_backfill(scope: Scope, backfill_id: int, note: str | None = None) -> BackfillRow:
    """Stop creating slots; slots that were created continue."""
    return await _change(scope, backfill_id, BackfillStatus.PAUSED, note)


async def resume_backfill(scope: Scope, backfill_id: int, note: str | None = None) -> BackfillRow:
    """Continue creating slots where the backfill stopped."""
    return await _change(scope, backfill_id, BackfillStatus.RUNNING, note)


async def cancel_backfill(scope: Scope, backfill_id: int, note: str | None = None) -> BackfillRow:
    """Stop creating slots and cancel its instances that are not running; running ones finish."""
    return await _change(scope, backfill_id, BackfillStatus.CANCELLED, note)


async def _change(scope: Scope, backfill_id: int, status: BackfillStatus, note: str | None) -> BackfillRow:
    """Set the status. If it is set already, change only the note; a finished backfill cannot be changed."""
    async with scope.write() as connection:
        backfill = await backfills.lock_backfill(connection, scope.tenant_id, backfill_id)
        if backfill is None:
            raise backfill_not_found(str(backfill_id))
        if backfill.status is not status:
            _require_open(backfill)
            data = {"backfillId": str(backfill.id), "note": note}
            await jobs.insert_event(connection, scope.tenant_id, backfill.job_id, _EVENTS[status], data)
            both = {"status": backfill.status.name}, {"status": status.name, "note": note}
            await audit.record_change(connection, scope, _VERBS[status], backfill.id, backfill.job, *both)
        if backfill.status is not status or note is not None:
            await backfills.set_backfill_status(connection, backfill.id, status, note)
        if status is BackfillStatus.CANCELLED:
            waiting = await backfills.waiting_of_backfill(connection, backfill.id)
            await instances.cancel_live(connection, waiting, CancelReason.USER, running=False)
    scope.wakeups.publish(MoveWaitingWake())
    return await read_backfill(scope, backfill_id)


def _require_open(backfill: BackfillRow) -> None:
    if backfill.status not in OPEN:
        raise AlreadyFinal(
            Refused.BACKFILL_FINAL(backfill=backfill.id, status=backfill.status.name),
            Hint.START_ANOTHER(),
            extra={"backfillId": str(backfill.id), "state": backfill.status.name},
        )
