"""The forecast: what the schedules of all jobs will come to, minute by minute."""

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from heapq import nlargest
from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Query, Request, Response
from pydantic import ConfigDict, Field

from horai.accept.scope import Scope
from horai.api.context import ScopeDep
from horai.api.kept import Kept
from horai.core import forecast as core
from horai.core.durations import format_duration
from horai.core.forecast import Crowd, Forecast, Window, window_after
from horai.core.forecast.minutes import MINUTE
from horai.core.forecast.peaks import SCHEDULES_TOLD
from horai.core.schedule import Schedule, to_spec
from horai.db import forecast as db
from horai.db import nodes
from horai.db.forecast import BoundedFollowers, Followers
from horai.db.pool import acquire
from horai.wire.fields import Model
from horai.wire.forecast import ForecastOut

router = APIRouter(prefix="/api/v1/forecast", tags=["forecast"])

LONGEST = 7 * 24
KEPT = 60.0
"""Seconds for which an answer holds: definitions change faster than the picture they make."""
BUSIEST = 20


class ForecastQuery(Model):
    """How far to look."""

    model_config = ConfigDict(strict=False, populate_by_name=False)

    hours: Annotated[int, Field(ge=1, le=LONGEST)] = 24


class Forecasts(Kept):
    """The forecasts of the last minute, by tenant and hours."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        super().__init__(KEPT, monotonic)


@router.get("", responses={200: {"model": ForecastOut}})
async def get_forecast(request: Request, scope: ScopeDep, query: Annotated[ForecastQuery, Query()]) -> Response:
    """Expected fires per minute over the coming hours, the minutes that stand out, and the jitter that would level them.

    An answer is kept for a minute; `Age` says how old it is, `computedAt` by whose definitions it was made.
    """
    forecasts: Forecasts = request.app.state.forecasts
    answer = await forecasts.get((scope.tenant_id, query.hours), lambda: compute(scope, query.hours))
    age = int(forecasts.monotonic() - answer.made)
    headers = {"Cache-Control": f"private, max-age={KEPT:.0f}", "Age": str(age)}
    return Response(answer.body, headers=headers, media_type="application/json")


@dataclass(frozen=True, slots=True)
class _Found:
    """What one look at the database has found: all of it from the same snapshot."""

    now: datetime
    window: Window
    followers: list[Followers]
    bounded: list[BoundedFollowers]
    after_finish: int

    def crowds(self) -> list[Crowd]:
        return db.crowds_of(self.followers, self.bounded)


async def compute(scope: Scope, hours: int) -> bytes:
    """The JSON of a forecast. The reckoning is done in a thread: the loop has other requests, and leases to renew."""
    async with (
        acquire(scope.pool) as connection,
        connection.transaction(isolation="repeatable_read", readonly=True),
    ):
        now = await nodes.database_time(connection)
        window = window_after(now, hours * 60)
        followers = await db.followers(connection, scope.tenant_id)
        since = window.at(0) - max((row.jitter for row in followers), default=0) * MINUTE
        bounded = await db.bounded_followers(connection, scope.tenant_id, since, window.at(window.minutes))
        after_finish = await db.count_after_finish(connection, scope.tenant_id)
    return await asyncio.to_thread(_reckon, _Found(now, window, followers, bounded, after_finish))


def _reckon(found: _Found) -> bytes:
    outlook = core.forecast(found.crowds(), found.window)
    return msgspec.json.encode({**_json(outlook), "note": _note(found.after_finish), "computedAt": found.now})


def _json(outlook: Forecast) -> dict[str, Any]:
    fires, window = outlook.per_minute, outlook.window
    most = max(range(len(fires)), key=fires.__getitem__)
    busiest = nlargest(BUSIEST, outlook.fires.items(), key=lambda entry: entry[1])
    return {
        "from": window.at(0),
        "minutes": window.minutes,
        "total": sum(fires),
        "perMinute": fires,
        "peak": {"at": window.at(most), "fires": fires[most]} if fires[most] else None,
        "average": round(outlook.average, 3),
        "schedules": len(outlook.fires),
        "jobs": outlook.jobs,
        "busiest": [
            {"schedule": _schedule(schedule), "jobs": outlook.followers[schedule], "fires": count}
            for schedule, count in busiest
        ],
        "hotSpots": [_hot_spot(spot) for spot in core.hot_spots(outlook)],
    }


def _hot_spot(spot: core.HotSpot) -> dict[str, Any]:
    return {
        "at": spot.at,
        "fires": spot.fires,
        "times": spot.times,
        "schedules": [
            {"schedule": _schedule(one.schedule), "jobs": one.jobs, "fires": one.fires}
            for one in spot.concerned[:SCHEDULES_TOLD]
        ],
        "concerned": {
            "schedules": len(spot.concerned),
            "jobs": sum(one.jobs for one in spot.concerned),
            "fires": sum(one.fires for one in spot.concerned),
        },
        "suggestedJitter": None if spot.suggested_jitter is None else format_duration(spot.suggested_jitter),
        "peakWithJitter": spot.peak_with_jitter,
    }


def _schedule(schedule: Schedule) -> Mapping[str, Any]:
    spec = {"timezone": "UTC", **to_spec(schedule)}
    return {name: spec[name] for name in ("cron", "dialect", "every", "timezone") if name in spec}


def _note(after_finish: int) -> str | None:
    if not after_finish:
        return None
    jobs = (
        "1 job counts from the end of its" if after_finish == 1 else f"{after_finish} jobs count from the end of their"
    )
    return f"{jobs} last run (everyFrom finish): when that will be nobody knows, so it is not in here."
