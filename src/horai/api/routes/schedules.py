"""Upcoming fires of a job, and of a schedule that is not saved."""

import asyncio
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Response
from pydantic import ConfigDict, Field

from horai.api.answer import answer
from horai.api.body import Body, body_of
from horai.api.context import ScopeDep, takes
from horai.api.route import RoleRoute, needs
from horai.api.sentence_json import sentence_fields
from horai.core.job import JobStatus
from horai.core.roles import AccessRole
from horai.core.timing import Timing, calendar_named, require_timing
from horai.core.upcoming import Fire, FireNotes, after_each_run, upcoming_fire, upcoming_fires
from horai.db import nodes
from horai.db.calendars import definition_of
from horai.db.jobs import JobRow, ticks_of
from horai.db.pool import TenantRead
from horai.db.upcoming import waiting_slot
from horai.operations.calendars import require_calendar
from horai.operations.scope import require_job
from horai.text.phrase import Joined, Phrase
from horai.time.jitter import offset
from horai.time.work_calendar import WorkCalendar
from horai.wire.encode import Encoded
from horai.wire.fields import Instant, Model
from horai.wire.schedules import FEW, Count, FireOut, FiresOut, PreviewIn

router = APIRouter(prefix="/api/v1", tags=["schedules"], route_class=RoleRoute)

_MOMENT = timedelta(microseconds=1)


class NextQuery(Model):
    """The number of fires, and the instant to start from."""

    model_config = ConfigDict(strict=False, populate_by_name=False)

    count: Count = FEW
    from_: Annotated[Instant | None, Field(alias="from")] = None


@router.post("/schedules/preview", responses={200: {"model": FiresOut}}, openapi_extra=takes(PreviewIn))
@needs(AccessRole.VIEWER)
async def preview(scope: ScopeDep, body: Annotated[Body[PreviewIn], Depends(body_of(PreviewIn))]) -> Response:
    """Show when a job would fire, before anything is saved."""
    document = body.given()
    since, days = body.shape.from_, None
    async with scope.read() as connection:
        since = since or await nodes.database_time(connection)
        if (name := calendar_named(document)) is not None:
            days = (await require_calendar(connection, scope.tenant_id, name)).days
    asked = _Asked(document, days, since, body.shape.count)
    fires = await asyncio.to_thread(_previewed, asked)  # a rare date takes long to find
    return answer(FiresOut.encode(fires=[_encode_fire(fire, timedelta(0)) for fire in fires]))


@dataclass(frozen=True, slots=True)
class _Asked:
    """A schedule to preview, with the calendar that it names."""

    document: dict[str, Any]
    days: WorkCalendar | None
    since: datetime
    count: int


def _previewed(asked: _Asked) -> list[Fire]:
    timing = require_timing(asked.document, asked.days)
    return upcoming_fires(timing, asked.since - _MOMENT, asked.count)


@router.get("/jobs/{job}/next", responses={200: {"model": FiresOut}})
@needs(AccessRole.VIEWER)
async def get_next(scope: ScopeDep, job: str, query: Annotated[NextQuery, Query()]) -> Response:
    """Show the upcoming fires of a job; for a paused job, those that it would have."""
    async with scope.read() as connection:
        row = await require_job(connection, scope, job)
        timing = (await definition_of(connection, row)).timing
        waiting = await _waiting(connection, row, timing, query)
        since = query.from_ or await nodes.database_time(connection)
        ticks = await ticks_of(connection, row.id)
    fires = (
        waiting
        if waiting is not None
        else await asyncio.to_thread(upcoming_fires, timing, since - _MOMENT, query.count)
    )
    put_off = offset(row.id if ticks is None else ticks.id, timing.jitter)
    note = sentence_fields("note", _about(row, timing))
    return answer(FiresOut.encode(fires=[_encode_fire(fire, put_off) for fire in fires], **note))


async def _waiting(connection: TenantRead, job: JobRow, timing: Timing, query: NextQuery) -> list[Fire] | None:
    """Return the waiting slot of a job that fires after each run: the only fire known. Return None for other jobs."""
    if timing.after_finish is None:
        return None
    slot = await waiting_slot(connection, job.id)
    is_wanted = slot is not None and (query.from_ is None or slot >= query.from_)
    return [upcoming_fire(timing, slot)] if slot is not None and is_wanted else []


def _about(job: JobRow, timing: Timing) -> Phrase | None:
    words = [FireNotes.JOB_PAUSED()] if job.status is JobStatus.PAUSED else []
    if timing.schedule is None:
        words.append(FireNotes.UNSCHEDULED())
    elif (rule := after_each_run(timing)) is not None:
        words.append(rule)
    return Joined.BESIDES.all(words) if words else None


def _encode_fire(fire: Fire, put_off: timedelta) -> Encoded:
    delayed = {"execute_time": fire.fire_time + put_off} if put_off else {}
    return FireOut.encode(fire, **sentence_fields("note", fire.note), **delayed)
