"""Routes of the archive. Archived instances themselves are read at `GET /api/v1/instances?archived=true`."""

import datetime as dt
import re
from typing import Annotated

from fastapi import APIRouter, Query, Response

from horai.api.answer import answer
from horai.api.archived_instances import require_archive
from horai.api.context import ContextDep, ScopeDep
from horai.api.cursors import decode_cursor, page_cursor
from horai.api.paging import PageQuery
from horai.api.replica_reads import may_lag
from horai.api.route import RoleRoute, needs
from horai.core.errors import Invalid
from horai.core.roles import AccessRole
from horai.features.archive import service
from horai.features.archive.service import RestoredDay
from horai.features.archive.wire import ArchiveFileList, RestoredOut, TableName
from horai.text import Hint, Wrong

router = APIRouter(prefix="/api/v1/archive", tags=["archive"], route_class=RoleRoute)

_CURSOR = re.compile(r"(\d{4}-\d{2}-\d{2})\.(\d{1,18})")


class ArchiveQuery(PageQuery):
    """The page of a list of archive files, and the table that they belong to."""

    table: TableName | None = None


def _before(cursor: str | None) -> tuple[dt.date, int] | None:
    if cursor is None:
        return None
    match = _CURSOR.fullmatch(decode_cursor(cursor))
    day = None if match is None else _day(match[1])
    if match is None or day is None:
        raise Invalid.field("cursor", Wrong.NOT_OUR_CURSOR(), Hint.USE_NEXT_CURSOR())
    return day, int(match[2])


def _day(text: str) -> dt.date | None:
    try:
        return dt.datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=dt.UTC).date()
    except ValueError:
        return None


def _shown(made: RestoredDay) -> Response:
    return answer(RestoredOut.encode(made, complete=made.restored == made.rows))


def _required_day(text: str) -> dt.date:
    day = _day(text) if re.fullmatch(r"\d{4}-\d{2}-\d{2}", text) else None
    if day is None:
        raise Invalid.field("day", Wrong.NOT_A_DAY(text=text[:40]))
    return day


@router.get("", responses={200: {"model": ArchiveFileList}})
@needs(AccessRole.VIEWER)
@may_lag
async def get_archive(scope: ScopeDep, query: Annotated[ArchiveQuery, Query()]) -> Response:
    """List the archive files of the tenant, the newest day first."""
    rows = await service.list_files(scope, _before(query.cursor), query.limit, query.table)
    cursor = page_cursor(f"{rows[-1].day:%Y-%m-%d}.{rows[-1].id}") if len(rows) == query.limit else None
    return answer(ArchiveFileList.encode(items=rows, next_cursor=cursor))


@router.post("/restored/{day}", responses={200: {"model": RestoredOut}})
@needs(AccessRole.ADMIN)
async def restore_archived_day(context: ContextDep, scope: ScopeDep, day: str) -> Response:
    """Restore the instances that finished on a day into the table `horai.restored_instance`.

    A repeat goes on where the last request ended, and changes nothing once all of them are there.
    """
    store = require_archive(context.archive, "day")
    return _shown(await service.restore_day(scope, store, _required_day(day)))


@router.delete("/restored/{day}", responses={200: {"model": RestoredOut}})
@needs(AccessRole.ADMIN)
async def remove_restored_day(scope: ScopeDep, day: str) -> Response:
    """Remove the restored instances of a day. The archive keeps them."""
    return _shown(await service.remove_day(scope, _required_day(day)))
