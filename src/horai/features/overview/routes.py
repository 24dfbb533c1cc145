"""Routes of the overview: statistics of the last hours, and conditions that need attention.

All requests within five seconds share one answer.
"""

from collections.abc import Awaitable, Callable, Hashable, Sequence
from datetime import datetime, timedelta
from typing import Annotated

import msgspec
from fastapi import APIRouter, FastAPI, Query, Request, Response
from pydantic import ConfigDict, Field

from horai.api.authentication import Caller
from horai.api.cache import AnswerCache
from horai.api.context import CallerDep, Context, ContextDep, ScopeDep
from horai.api.replica_reads import may_lag, read_header
from horai.api.route import RoleRoute, needs
from horai.api.stuck_json import encode_blocked_run, encode_clogged_queue, encode_stuck_cause
from horai.core.minute_stats import MINUTE, Gauges, MinuteCounts, minute_of, series
from horai.core.roles import AccessRole
from horai.core.states import LIVE
from horai.db import backups, controls, minute_stats, nodes
from horai.db.backups import BackupStatus
from horai.db.controls import HoldInForce
from horai.db.pool import acquire
from horai.features.overview import needs_attention
from horai.features.overview.needs_attention import LateInstance, PausedJob, StaleRefresh
from horai.features.overview.wire import (
    AttentionOut,
    HoldInForceOut,
    LateInstances,
    LiveCounts,
    MinuteOut,
    PausedJobs,
    StaleRefreshOut,
    StatsOut,
)
from horai.operations import full_queues, stuck
from horai.operations.scope import Scope
from horai.time.durations import format_duration
from horai.wire.encode import Encoded
from horai.wire.fields import Model

router = APIRouter(prefix="/api/v1/scheduler", tags=["overview"], route_class=RoleRoute)

KEPT = 5.0
LONGEST = 24 * 60
SHOWN = 10
EXAMPLES = 5
LATE_AFTER = timedelta(minutes=1)
FAILING_AFTER = timedelta(minutes=5)
OF_LATE = timedelta(hours=1)
LOOKED_AT = 10_000


class StatsQuery(Model):
    """The number of minutes to look back."""

    model_config = ConfigDict(strict=False, populate_by_name=False)

    minutes: Annotated[int, Field(ge=1, le=LONGEST)] = 60


def prepare(app: FastAPI) -> None:
    """Create the cache that all requests share."""
    app.state.overviews = AnswerCache(KEPT)


@router.get("/stats", responses={200: {"model": StatsOut}})
@needs(AccessRole.VIEWER)
@may_lag
async def get_stats(request: Request, scope: ScopeDep, query: Annotated[StatsQuery, Query()]) -> Response:
    """Return the tenant's work in each of the last minutes, on all nodes and workers, and its live instances."""
    about = ("stats", scope.tenant_id, query.minutes)
    return await _kept(request, scope, about, lambda: _stats(scope, query.minutes))


@router.get("/attention", responses={200: {"model": AttentionOut}})
@needs(AccessRole.VIEWER)
@may_lag
async def get_attention(request: Request, scope: ScopeDep, caller: CallerDep, context: ContextDep) -> Response:
    """List what needs attention.

    This includes failing jobs, late instances, stuck runs, clogged and full queues, blocked workflow runs, failing alert channels, parked
    sinks, paused jobs and queues, modes of the governor, pauses and freezes, backfills, drift, stale entities, and on a server without keys lost nodes and failed backups.
    """
    about = ("attention", scope.tenant_id, caller.is_platform)
    return await _kept(request, scope, about, lambda: _attention(scope, caller, context))


async def _kept(request: Request, scope: Scope, about: Hashable, make: Callable[[], Awaitable[bytes]]) -> Response:
    kept: AnswerCache = request.app.state.overviews
    found = await kept.get(about, make, scope.reader)
    headers = {"Cache-Control": f"private, max-age={KEPT:.0f}", "Age": str(int(kept.monotonic() - found.made))}
    return Response(found.body, headers=headers | read_header(found.lag), media_type="application/json")


async def _stats(scope: Scope, count: int) -> bytes:
    async with scope.read() as connection:
        now = await nodes.database_time(connection)
        first = minute_of(now) - (count - 1) * MINUTE
        found = await minute_stats.minutes_since(connection, scope.tenant_id, first)
        gauges = await minute_stats.gauges_since(connection, scope.tenant_id, first)
        live = await minute_stats.count_states(connection, scope.tenant_id)
    done = series(found, first, count)
    times = [first + number * MINUTE for number in range(count)]
    return msgspec.json.encode(
        StatsOut.encode(
            live,
            from_=first,
            minutes=[_encode_minute(at, tally, gauges.get(at)) for at, tally in zip(times, done, strict=True)],
            live=LiveCounts.encode(**{state.name.lower(): live.instances.get(state, 0) for state in LIVE}),
            live_exact=live.is_exact,
            computed_at=now,
        )
    )


def _encode_minute(at: datetime, tally: MinuteCounts, gauges: Gauges | None) -> Encoded:
    return MinuteOut.encode(
        tally,
        at=at,
        delay_p50_ms=round(tally.delay_quantile(0.50) * 1000, 3),
        delay_p95_ms=round(tally.delay_quantile(0.95) * 1000, 3),
        delay_p99_ms=round(tally.delay_quantile(0.99) * 1000, 3),
        retrying=None if gauges is None else gauges.retrying,
        dead_letters=None if gauges is None else gauges.dead_letters,
        parked_events=None if gauges is None else gauges.parked_events,
    )


async def _attention(scope: Scope, caller: Caller, context: Context) -> bytes:
    tenant = scope.tenant_id
    failing_backups = await _failing_backups(context) if caller.is_platform else []
    async with scope.read() as connection:
        now = await nodes.database_time(connection)
        late = now - LATE_AFTER
        jammed = await full_queues.jammed_queues(connection, tenant, now, late, SHOWN)
        stuck_runs = await stuck.stuck_runs(connection, tenant, now, SHOWN)
        told = AttentionOut.encode(
            dying=await needs_attention.dying_jobs(connection, tenant, now - OF_LATE, SHOWN),
            failing=await needs_attention.failing_jobs(connection, tenant, SHOWN),
            late=_encode_late(await needs_attention.late_instances(connection, tenant, late, jammed.ids, EXAMPLES)),
            lost_nodes=await nodes.lost_nodes(connection, now - OF_LATE, SHOWN) if caller.is_platform else [],
            paused_jobs=_encode_paused(await needs_attention.paused_jobs(connection, tenant, EXAMPLES)),
            paused_queues=await needs_attention.paused_queues(connection, tenant, SHOWN),
            backfills=await needs_attention.backfills_under_way(connection, tenant, SHOWN),
            drifts=await needs_attention.drifting_reconcilers(connection, tenant, SHOWN),
            stale_refreshes=_encode_stale(await needs_attention.refreshes(connection, tenant), now),
            modes=await controls.modes_in_force(connection),
            holds=[_encode_hold(hold, caller) for hold in await controls.holds_in_force(connection, tenant)],
            stuck=[encode_stuck_cause(one) for one in await full_queues.with_followers(connection, tenant, stuck_runs)],
            clogged=[encode_clogged_queue(one) for one in jammed.clogged],
            full=jammed.full,
            blocked=[encode_blocked_run(one) for one in await stuck.blocked_runs(connection, tenant, SHOWN)],
            failing_channels=await needs_attention.failing_channels(connection, tenant, now - FAILING_AFTER, SHOWN),
            parked_sinks=await needs_attention.parked_sinks(connection, tenant, SHOWN),
            failing_backups=failing_backups,
            computed_at=now,
        )
    return msgspec.json.encode(told)


async def _failing_backups(context: Context) -> list[BackupStatus]:
    async with acquire(context.pool) as connection:
        status = await backups.backup_status(connection)
    return [status] if status is not None and (status.failed_at is not None or status.is_overdue) else []


def _encode_hold(hold: HoldInForce, caller: Caller) -> Encoded:
    """Return a hold as the caller may see it: only the platform sees who holds all tenants, and why."""
    if hold.is_of_platform and not caller.is_platform:
        return HoldInForceOut.encode(hold, scope="platform", note=None, actor=None)
    return HoldInForceOut.encode(hold, scope="platform" if hold.is_of_platform else "tenant")


def _encode_late(found: Sequence[LateInstance]) -> Encoded:
    count = found[0].instances if found else 0
    return LateInstances.encode(count=count, more=count >= LOOKED_AT, examples=found)


def _encode_paused(found: Sequence[PausedJob]) -> Encoded:
    count = found[0].jobs if found else 0
    return PausedJobs.encode(count=count, more=count >= needs_attention.JOBS_LOOKED_AT, examples=found)


def _encode_stale(found: Sequence[StaleRefresh], now: datetime) -> list[Encoded]:
    """Return those a tenth beyond their window: a tick may come a while after an entity is due, and take a while."""
    stale = [one for one in found if one.oldest is not None and now - one.oldest > one.window * 1.1]
    stale.sort(key=lambda one: one.oldest or now)
    return [StaleRefreshOut.encode(one, window=format_duration(one.window)) for one in stale[:SHOWN]]
