"""Routes of calendars."""

from datetime import date
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response
from pydantic import ConfigDict, Field

from horai.api.answer import answer
from horai.api.body import Body, body_of
from horai.api.context import ScopeDep, VersionDep, takes
from horai.api.cursors import decode_cursor, page_cursor, without_nul
from horai.api.paging import PageQuery
from horai.api.replica_reads import may_lag
from horai.api.route import RoleRoute, needs
from horai.core.calendars import calendar_document
from horai.core.roles import AccessRole
from horai.db import nodes
from horai.db.calendars import CalendarRow
from horai.features.calendars import service
from horai.features.calendars.rules import MOST_DAYS, described
from horai.features.calendars.wire import CalendarDays, CalendarIn, CalendarList, CalendarOut
from horai.wire.encode import Encoded
from horai.wire.fields import Model

router = APIRouter(prefix="/api/v1/calendars", tags=["calendars"], route_class=RoleRoute)


class CalendarDaysQuery(Model):
    """The first day, today in UTC if absent, and the number of days."""

    model_config = ConfigDict(strict=False, populate_by_name=False)

    from_: Annotated[date | None, Field(alias="from")] = None
    days: Annotated[int, Field(ge=1, le=MOST_DAYS)] = 31


def _encoded(row: CalendarRow, jobs: int | None = None) -> Encoded:
    fields = calendar_document(row.days) if jobs is None else {**calendar_document(row.days), "jobs": jobs}
    return CalendarOut.encode(row, **fields)


@router.get("", responses={200: {"model": CalendarList}})
@needs(AccessRole.VIEWER)
@may_lag
async def get_calendars(scope: ScopeDep, query: Annotated[PageQuery, Query()]) -> Response:
    """List the calendars of the tenant by name."""
    after = "" if query.cursor is None else without_nul(decode_cursor(query.cursor))
    rows = await service.list_calendars(scope, after, query.limit)
    following = page_cursor(rows[-1].name) if len(rows) == query.limit else None
    return answer(CalendarList.encode(items=[_encoded(row) for row in rows], next_cursor=following))


@router.get("/{name}", responses={200: {"model": CalendarOut}})
@needs(AccessRole.VIEWER)
async def get_calendar(scope: ScopeDep, name: str) -> Response:
    """Read a calendar."""
    row, jobs = await service.read_calendar(scope, name)
    return answer(_encoded(row, jobs), headers={"ETag": f'"{row.version}"'})


@router.get("/{name}/days", responses={200: {"model": CalendarDays}})
@needs(AccessRole.VIEWER)
async def get_calendar_days(scope: ScopeDep, name: str, query: Annotated[CalendarDaysQuery, Query()]) -> Response:
    """Show the days of a calendar one by one: whether each is a working day, and why."""
    row, _ = await service.read_calendar(scope, name)
    async with scope.read() as connection:
        first = query.from_ or (await nodes.database_time(connection)).date()
    return answer(CalendarDays.encode(days=described(row.days, first, query.days)))


@router.put(
    "/{name}",
    responses={200: {"model": CalendarOut}, 201: {"model": CalendarOut}},
    openapi_extra=takes(CalendarIn),
)
@needs(AccessRole.ADMIN)
async def put_calendar(
    scope: ScopeDep, name: str, body: Annotated[Body[CalendarIn], Depends(body_of(CalendarIn))], if_version: VersionDep
) -> Response:
    """Create a calendar or replace its days. All jobs that follow it have the slots of the new days at once."""
    put = await service.put_calendar(scope, name, body.given(), if_version)
    status = 201 if put.is_new else 200
    return answer(_encoded(put.row), status, {"ETag": f'"{put.row.version}"'})


@router.delete("/{name}", status_code=204)
@needs(AccessRole.ADMIN)
async def delete_calendar(scope: ScopeDep, name: str, if_version: VersionDep) -> Response:
    """Delete a calendar. It is refused while a job follows the calendar."""
    await service.delete_calendar(scope, name, if_version)
    return Response(status_code=204)
