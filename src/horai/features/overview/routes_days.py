"""RoleRoute for the outcomes of a job by day."""

from typing import Annotated

from fastapi import APIRouter, Query, Response
from pydantic import ConfigDict, Field

from horai.api.answer import answer
from horai.api.context import ScopeDep
from horai.api.replica_reads import may_lag
from horai.api.route import RoleRoute, needs
from horai.core.errors import Invalid
from horai.core.roles import AccessRole
from horai.db import nodes
from horai.features.overview.days import Day, days_until
from horai.features.overview.days_store import DayCounts, days_of_job
from horai.features.overview.wire_days import DayOut, DaysOut
from horai.operations.scope import require_job
from horai.text import Hint, told_by
from horai.time import zones
from horai.wire.encode import Encoded
from horai.wire.fields import Model, Text

router = APIRouter(prefix="/api/v1/jobs", tags=["jobs"], route_class=RoleRoute)

NOTHING = DayCounts(0, 0, 0, 0)


class DaysQuery(Model):
    """The number of weeks, and the zone of the days: the job's own, unless another zone is named."""

    model_config = ConfigDict(strict=False, populate_by_name=False)

    weeks: Annotated[int, Field(ge=1, le=13)] = 13
    timezone: Text | None = None


@router.get("/{job}/days", responses={200: {"model": DaysOut}})
@needs(AccessRole.VIEWER)
@may_lag
async def get_days(scope: ScopeDep, job: str, query: Annotated[DaysQuery, Query()]) -> Response:
    """Count the outcomes of the finished instances of a job on each of the last days."""
    async with scope.read() as connection:
        found = await require_job(connection, scope, job)
        zone = query.timezone or found.document.get("timezone") or "UTC"
        try:
            days = days_until(await nodes.database_time(connection), zones.zone(zone), 7 * query.weeks)
        except ValueError as error:
            raise Invalid.field("timezone", told_by(error), Hint.TAKE_ZONE()) from None
        counts = await days_of_job(connection, found.id, days)
    return answer(DaysOut.encode(timezone=zone, days=[_encode_day(day, counts.get(day, NOTHING)) for day in days]))


def _encode_day(day: Day, counts: DayCounts) -> Encoded:
    return DayOut.encode(counts, date=day.date, from_=day.since, to=day.until, more=counts.is_full)
