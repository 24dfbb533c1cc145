"""RoleRoute of the forecast: the fires of the schedules of all jobs, minute by minute."""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from heapq import nlargest
from itertools import islice
from typing import Annotated

import msgspec
from fastapi import APIRouter, FastAPI, Query, Request, Response
from pydantic import ConfigDict, Field

from horai.api.cache import AnswerCache, CachedAnswer
from horai.api.context import ScopeDep
from horai.api.replica_reads import may_lag, read_header
from horai.api.route import RoleRoute, needs
from horai.api.sentence_json import sentence_fields
from horai.core.roles import AccessRole
from horai.core.upcoming import FireNotes
from horai.db import nodes
from horai.features import forecast as core
from horai.features.forecast import Forecast, ForecastWindow, HotSpot, window_after, wire
from horai.features.forecast import store as db
from horai.features.forecast.minutes import MINUTE
from horai.features.forecast.peaks import SCHEDULES_TOLD
from horai.features.forecast.store import BoundedFollowers, Followers, HighestMeasured
from horai.features.forecast.what_if import busiest_minute
from horai.features.forecast.wire import ForecastOut, ForecastSchedule, ScheduleFires
from horai.operations.scope import Scope
from horai.text.phrase import Phrase
from horai.time.durations import format_duration
from horai.time.schedule import Schedule, to_spec
from horai.wire.encode import Encoded
from horai.wire.fields import Model

router = APIRouter(prefix="/api/v1/forecast", tags=["forecast"], route_class=RoleRoute)

LONGEST = 7 * 24
KEPT = 60.0
"""Seconds for which an answer is cached: definitions change faster than the overall picture."""
BUSIEST = 20
EXAMPLES = 3
IDS_OF_EXAMPLES = 200
MEASURED = timedelta(days=2)
"""The period of the highest measured number of starts: statistics per minute are kept as long."""


class ForecastQuery(Model):
    """The number of hours to forecast."""

    model_config = ConfigDict(strict=False, populate_by_name=False)

    hours: Annotated[int, Field(ge=1, le=LONGEST)] = 24


class Forecasts(AnswerCache):
    """The cached forecasts of the last minute, by tenant and by hours or minute."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        super().__init__(KEPT, monotonic)
        self.one_what_if = asyncio.Lock()
        """Requests with hypothetical jobs are computed one at a time."""

    def shown(self, answer: CachedAnswer) -> Response:
        """Return a response with the answer and its age."""
        age = int(self.monotonic() - answer.made)
        headers = {"Cache-Control": f"private, max-age={KEPT:.0f}", "Age": str(age)}
        return Response(answer.body, headers=headers | read_header(answer.lag), media_type="application/json")


@router.get("", responses={200: {"model": ForecastOut}})
@needs(AccessRole.VIEWER)
@may_lag
async def get_forecast(request: Request, scope: ScopeDep, query: Annotated[ForecastQuery, Query()]) -> Response:
    """Forecast the fires per minute of the coming hours, minutes that stand out, and the jitter that would level them.

    An answer is cached for a minute; `Age` says how old it is, `computedAt` the time of the definitions it is based on.
    """
    forecasts: Forecasts = request.app.state.forecasts
    about = (scope.tenant_id, query.hours)
    return forecasts.shown(await forecasts.get(about, lambda: compute(scope, query.hours), scope.reader))


@dataclass(frozen=True, slots=True)
class FoundForecast:
    """The rows that a forecast is based on, all from the same snapshot."""

    now: datetime
    window: ForecastWindow
    followers: list[Followers]
    bounded: list[BoundedFollowers]
    after_finish: int


@dataclass(frozen=True, slots=True)
class _Told:
    """A computed forecast, and the parts of it that the answer contains."""

    outlook: Forecast
    busiest: list[tuple[Schedule, int]]
    hot_spots: list[HotSpot]
    ids: Mapping[int, Schedule]
    """The schedules in the answer by id, to find their examples."""


async def compute(scope: Scope, hours: int) -> bytes:
    """Return the JSON of a forecast. A thread computes it: the event loop has other requests, and leases to renew."""
    found = await read_forecast(scope, lambda now: window_after(now, hours * 60))
    told = await asyncio.to_thread(_reckon, found)
    async with scope.read() as connection:
        names = await db.examples(connection, scope.tenant_id, list(told.ids), EXAMPLES)
        measured = await db.highest_measured(connection, scope.tenant_id, MEASURED)
    examples: dict[Schedule, list[str]] = {}
    for schedule_id, schedule in told.ids.items():
        examples[schedule] = [*examples.get(schedule, ()), *names.get(schedule_id, ())][:EXAMPLES]
    return msgspec.json.encode(_encode_forecast(found, told, examples, measured))


async def read_forecast(scope: Scope, choose: Callable[[datetime], ForecastWindow]) -> FoundForecast:
    """Read the rows for a forecast of the window that `choose` selects by the database's clock."""
    async with (
        scope.read() as connection,
        connection.transaction(isolation="repeatable_read", readonly=True),
    ):
        now = await nodes.database_time(connection)
        window = choose(now)
        followers = await db.followers(connection, scope.tenant_id)
        since = window.at(0) - max((row.jitter for row in followers), default=0) * MINUTE
        bounded = await db.bounded_followers(connection, scope.tenant_id, since, window.at(window.minutes))
        after_finish = await db.count_after_finish(connection, scope.tenant_id)
    return FoundForecast(now, window, followers, bounded, after_finish)


def _reckon(found: FoundForecast) -> _Told:
    schedules = db.schedules_of(found.followers)
    outlook = core.forecast(db.crowds_of(schedules, found.followers, found.bounded), found.window)
    busiest = nlargest(BUSIEST, outlook.fires.items(), key=lambda entry: entry[1])
    spots = core.hot_spots(outlook)
    wanted = {schedule for schedule, _ in busiest} | {
        one.schedule for spot in spots for one in spot.concerned[:SCHEDULES_TOLD]
    }
    ids = islice(((key, schedule) for key, schedule in schedules.items() if schedule in wanted), IDS_OF_EXAMPLES)
    return _Told(outlook, busiest, spots, dict(ids))


def _encode_forecast(
    found: FoundForecast, told: _Told, examples: Mapping[Schedule, list[str]], measured: HighestMeasured | None
) -> Encoded:
    outlook = told.outlook
    fires, window = outlook.per_minute, outlook.window

    def entry(schedule: Schedule, jobs: int, count: int) -> Encoded:
        shown = encode_schedule(schedule)
        return ScheduleFires.encode(schedule=shown, jobs=jobs, fires=count, examples=examples.get(schedule, []))

    return ForecastOut.encode(
        outlook,
        from_=window.at(0),
        minutes=window.minutes,
        total=sum(fires),
        peak=encode_peak(window, fires),
        average=round(outlook.average, 3),
        schedules=len(outlook.fires),
        busiest=[entry(schedule, outlook.followers[schedule], count) for schedule, count in told.busiest],
        hot_spots=[_encode_hot_spot(spot, entry) for spot in told.hot_spots],
        highest_measured=measured and wire.HighestMeasured.encode(measured, days=MEASURED.days),
        **sentence_fields("note", _note(found.after_finish)),
        computed_at=found.now,
    )


def _encode_hot_spot(spot: HotSpot, entry: Callable[[Schedule, int, int], Encoded]) -> Encoded:
    jitter = spot.suggested_jitter
    return wire.HotSpot.encode(
        spot,
        schedules=[entry(one.schedule, one.jobs, one.fires) for one in spot.concerned[:SCHEDULES_TOLD]],
        concerned=wire.Concerned.encode(
            schedules=len(spot.concerned),
            jobs=sum(one.jobs for one in spot.concerned),
            fires=sum(one.fires for one in spot.concerned),
        ),
        suggested_jitter=None if jitter is None else format_duration(jitter),
    )


def encode_peak(window: ForecastWindow, fires: Sequence[int]) -> Encoded | None:
    """Return the busiest minute of the window; None without fires."""
    most = busiest_minute(fires)
    return None if most is None else wire.Peak.encode(at=window.at(most), fires=fires[most])


def encode_schedule(schedule: Schedule) -> Encoded:
    """Return a schedule: its cron or interval as it was written, and its zone."""
    spec = {"timezone": "UTC", **to_spec(schedule)}
    return ForecastSchedule.encode(**{name: spec[name] for name in ForecastSchedule.model_fields if name in spec})


def _note(after_finish: int) -> Phrase | None:
    if after_finish == 1:
        return FireNotes.ONE_NOT_FORECAST()
    return FireNotes.SOME_NOT_FORECAST(count=after_finish) if after_finish else None


def prepare(app: FastAPI) -> None:
    """Create the cache of forecasts that requests share."""
    app.state.forecasts = Forecasts()
