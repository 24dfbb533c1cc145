"""RoleRoute for one minute of the forecast: the schedules that fire in it, and their jobs."""

import asyncio
from collections.abc import Mapping
from datetime import datetime, timedelta
from heapq import nlargest
from typing import Annotated

import msgspec
from fastapi import APIRouter, Query, Request, Response
from pydantic import ConfigDict

from horai.api.context import ScopeDep
from horai.api.replica_reads import may_lag
from horai.api.route import RoleRoute, needs
from horai.core.errors import Invalid
from horai.core.roles import AccessRole
from horai.features import forecast as core
from horai.features.forecast import Forecast, ForecastWindow, window_after
from horai.features.forecast import store as db
from horai.features.forecast.routes import LONGEST, Forecasts, FoundForecast, encode_schedule, read_forecast
from horai.features.forecast.store import Follower
from horai.features.forecast.wire import JobInMinute, MinuteForecastOut, ScheduleInMinute
from horai.operations.scope import Scope
from horai.text import Hint, Wrong
from horai.time.durations import format_duration
from horai.time.schedule import Schedule
from horai.wire.encode import Encoded
from horai.wire.fields import Instant, Model

router = APIRouter(prefix="/api/v1/forecast", tags=["forecast"], route_class=RoleRoute)

SCHEDULES = 50
NAMES = 200
IDS = 200


class MinuteQuery(Model):
    """The minute that contains `at`."""

    model_config = ConfigDict(strict=False, populate_by_name=False)

    at: Instant


@router.get("/minute", responses={200: {"model": MinuteForecastOut}})
@needs(AccessRole.VIEWER)
@may_lag
async def get_forecast_minute(request: Request, scope: ScopeDep, query: Annotated[MinuteQuery, Query()]) -> Response:
    """Name the schedules that fire in a minute of the coming week, and the jobs that follow them."""
    forecasts: Forecasts = request.app.state.forecasts
    at = query.at.replace(second=0, microsecond=0)
    return forecasts.shown(await forecasts.get((scope.tenant_id, at), lambda: compute_minute(scope, at), scope.reader))


async def compute_minute(scope: Scope, at: datetime) -> bytes:
    """Return the JSON of a minute."""
    found = await read_forecast(scope, lambda now: _window_at(at, now))
    outlook, ids = await asyncio.to_thread(_reckon, found)
    async with scope.read() as connection:
        by_id = await db.jobs_of_schedules(connection, scope.tenant_id, list(ids), NAMES)
    names: dict[Schedule, list[Follower]] = {}
    for schedule_id, schedule in ids.items():
        names[schedule] = [*names.get(schedule, ()), *by_id.get(schedule_id, ())][:NAMES]
    told = nlargest(SCHEDULES, outlook.fires.items(), key=lambda entry: entry[1])
    return msgspec.json.encode(
        MinuteForecastOut.encode(
            at=at,
            fires=sum(outlook.per_minute),
            schedules=[_encode_entry(outlook, schedule, count, names) for schedule, count in told if count],
            computed_at=found.now,
        )
    )


def _window_at(at: datetime, now: datetime) -> ForecastWindow:
    coming = window_after(now - timedelta(minutes=1), LONGEST * 60 + 1)
    if not coming.at(0) <= at < coming.at(coming.minutes):
        raise Invalid.field("at", Wrong.NOT_FORETOLD(), Hint.TAKE_A_MINUTE())
    start = coming.start + (at - coming.at(0)) // timedelta(minutes=1)
    return ForecastWindow(start, start + 1)


def _reckon(found: FoundForecast) -> tuple[Forecast, Mapping[int, Schedule]]:
    """Return the forecast of that minute, and the schedules with the most fires by id."""
    schedules = db.schedules_of(found.followers)
    outlook = core.forecast(db.crowds_of(schedules, found.followers, found.bounded), found.window)
    wanted = {schedule for schedule, count in nlargest(SCHEDULES, outlook.fires.items(), key=lambda e: e[1]) if count}
    known = [(key, schedule) for key, schedule in schedules.items() if schedule in wanted]
    return outlook, dict(known[:IDS])


def _encode_entry(
    outlook: Forecast, schedule: Schedule, fires: int, names: Mapping[Schedule, list[Follower]]
) -> Encoded:
    return ScheduleInMinute.encode(
        schedule=encode_schedule(schedule),
        jobs=outlook.followers[schedule],
        fires=fires,
        names=[
            JobInMinute.encode(one, jitter=format_duration(one.jitter) if one.jitter else None)
            for one in names.get(schedule, ())
        ],
    )
