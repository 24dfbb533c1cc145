"""The route of the what-if: the forecast with jobs that do not exist yet."""

import asyncio
from datetime import datetime, timedelta
from typing import Annotated, Literal

import msgspec
from fastapi import APIRouter, Query, Request, Response
from pydantic import ConfigDict, Field

from horai.api.answer import answer
from horai.api.context import ScopeDep
from horai.api.replica_reads import may_lag, read_header
from horai.api.route import RoleRoute, needs
from horai.core.roles import AccessRole
from horai.core.timing import require_timing
from horai.features.forecast import Crowd, ForecastWindow
from horai.features.forecast.minutes import MINUTE
from horai.features.forecast.routes import LONGEST, Forecasts, compute, encode_peak, encode_schedule
from horai.features.forecast.what_if import MOST_JOBS, WhatIf, minutes_above, what_if
from horai.features.forecast.wire import HighestMeasured, WhatIfOut
from horai.time.schedule import EPOCH
from horai.wire.encode import Encoded
from horai.wire.fields import Instant, Model, Text

router = APIRouter(prefix="/api/v1/forecast", tags=["forecast"], route_class=RoleRoute)


class WhatIfQuery(Model):
    """The schedule of the hypothetical jobs, their number, and the hours to forecast."""

    model_config = ConfigDict(strict=False, populate_by_name=False)

    cron: Annotated[Text, Field(max_length=1_000)] | None = None
    dialect: Literal["vixie", "quartz"] | None = None
    every: Text | None = None
    anchor: Instant | None = None
    timezone: Text | None = None
    jitter: Text | None = None
    jobs: Annotated[int, Field(ge=1, le=MOST_JOBS)] = 1
    hours: Annotated[int, Field(ge=1, le=LONGEST)] = 24


class _Measured(msgspec.Struct):
    """The highest measured number of starts per minute."""

    starts: int
    at: datetime
    days: int


class _Base(msgspec.Struct):
    """The part of a cached forecast that hypothetical jobs are added to."""

    begin: datetime = msgspec.field(name="from")
    fires: list[int] = msgspec.field(name="perMinute")
    computed_at: datetime = msgspec.field(name="computedAt")
    measured: _Measured | None = msgspec.field(name="highestMeasured")


@router.get("/what-if", responses={200: {"model": WhatIfOut}})
@needs(AccessRole.VIEWER)
@may_lag
async def get_forecast_what_if(request: Request, scope: ScopeDep, query: Annotated[WhatIfQuery, Query()]) -> Response:
    """Add the fires of jobs that do not exist yet to the forecast. Nothing is saved.

    The schedule is checked as that of a job. The fires of the existing jobs are those of the cached forecast, so a
    request costs the work for one schedule; requests are computed one at a time.
    """
    forecasts: Forecasts = request.app.state.forecasts
    about = (scope.tenant_id, query.hours)
    async with forecasts.one_what_if:
        crowd = await asyncio.to_thread(_crowd_of, query)
        cached = await forecasts.get(about, lambda: compute(scope, query.hours), scope.reader)
        body = await asyncio.to_thread(_compute, cached.body, crowd)
    shown = answer(body)
    shown.headers.update(read_header(cached.lag))
    return shown


def _crowd_of(query: WhatIfQuery) -> Crowd:
    """Return the hypothetical jobs. Raise `Invalid` for a schedule that no job may have."""
    timing = require_timing(query.model_dump(by_alias=True, exclude_unset=True, exclude={"jobs", "hours"}))
    assert timing.schedule is not None  # noqa: S101 — `require_timing` refuses a document without one
    jitter = (timing.jitter + timedelta(seconds=30)) // MINUTE
    return Crowd(timing.schedule, query.jobs, jitter)


def _compute(cached: bytes, crowd: Crowd) -> Encoded:
    base = msgspec.json.decode(cached, type=_Base)
    start = (base.begin - EPOCH) // MINUTE
    found = what_if(ForecastWindow(start, start + len(base.fires)), base.fires, crowd)
    return _encode(found, crowd, base)


def _encode(found: WhatIf, crowd: Crowd, base: _Base) -> Encoded:
    measured = base.measured
    return WhatIfOut.encode(
        schedule=encode_schedule(crowd.schedule),
        jobs=crowd.jobs,
        from_=found.window.at(0),
        minutes=found.window.minutes,
        total=sum(found.added),
        per_minute=found.before,
        added_per_minute=found.added,
        peak_before=encode_peak(found.window, found.before),
        peak_after=encode_peak(found.window, found.after),
        highest_measured=measured and HighestMeasured.encode(measured),
        minutes_above_before=measured and minutes_above(found.before, measured.starts),
        minutes_above_after=measured and minutes_above(found.after, measured.starts),
        computed_at=base.computed_at,
    )
