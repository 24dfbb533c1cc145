"""Health: for the console, for load balancers and for operators."""

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from functools import reduce
from typing import Any

import asyncpg
from fastapi import APIRouter, Response

from horai import __version__
from horai.api.answer import answer
from horai.api.authentication import Caller
from horai.api.context import CallerDep, Context, ContextDep
from horai.api.route import ANY_KEY, RoleRoute, needs
from horai.api.sentence_json import sentence_fields
from horai.core.controls import GovernorMode
from horai.core.health import HeldHost, Reading, merged, reading_from
from horai.core.minute_stats import NOTHING, MinuteCounts, minute_of
from horai.core.roles import AccessRole
from horai.core.shards import Duty, lease_name
from horai.core.states import State
from horai.db import backups, controls, instance_queries, minute_stats, nodes, shards
from horai.db.nodes import NodeHealth, NodeInfo
from horai.db.pool import Platform, acquire, unavailable
from horai.db.shards import ShardInfo
from horai.text.phrase import Phrase
from horai.wire.encode import Encoded
from horai.wire.health import HealthOut, NodeList, NodeOut, Reason, ShardCounts, ShardList, ShardOut

router = APIRouter(tags=["health"], route_class=RoleRoute)

KEYLESS = "No key has been created: everyone on this machine may use this server as the tenant `default`."
SINGLE_ROLE = "The database has a single role: no row-level security stands behind the conditions of the statements."
LOST_SINCE = timedelta(hours=24)
LOST_SHOWN = 20
OUTCOMES_SINCE = timedelta(minutes=10)
DELAYS_SINCE = timedelta(minutes=5)


@router.get("/api/v1/scheduler/health", responses={200: {"model": HealthOut}})
@needs(*ANY_KEY)
async def scheduler_health(context: ContextDep, caller: CallerDep) -> Response:
    """Show the health of the scheduler.

    The status is that of all nodes. The figures are those of the caller's tenant; a caller of the platform, and every
    caller of a server without keys, sees those of all tenants.
    """
    async with acquire(context.pool) as connection:
        live = await nodes.live_nodes(connection)
        others = await nodes.health_of_nodes(connection, context.health.incarnation)
        leases = await shards.shard_leases(connection)
        letters = await _letters_per_minute(connection, caller)
        own = await _tenant_figures(connection, caller)
        limits = await controls.current_controls(connection)
        backup = await backups.backup_status(connection) if caller.is_platform else None
    replicas = await context.replicas.statuses() if context.replicas is not None and caller.is_platform else []
    now = time.monotonic()
    told = _merge_readings(context, others, now)
    shown = told if own is None else own
    holds_lease = context.health.holds_lease(now)
    reasons = [_encode_sentence(reason) for reason in (*told.reasons(), *limits.reasons())]
    is_complete = all(any(duty.role in node.roles for node in live) for duty in Duty)
    return answer(
        HealthOut.encode(
            shown,
            status="UP" if is_complete and holds_lease and not told.overdue and not reasons else "DEGRADED",
            reasons=reasons,
            modes=[mode.value for mode in limits.modes or (GovernorMode.NORMAL,)],
            trigger_delay_p50_ms=round(shown.delay_quantile(0.50) * 1000, 3),
            trigger_delay_p95_ms=round(shown.delay_quantile(0.95) * 1000, 3),
            trigger_delay_p99_ms=round(shown.delay_quantile(0.99) * 1000, 3),
            run_success_rate_10m=round(shown.success_rate(), 6),
            unsettled=told.unsettled if own is None else None,
            late_results=told.late_results if own is None else None,
            released_claims=told.released_claims if own is None else None,
            actions=[_encode_sentence(action) for action in limits.actions(caller.tenant_id)],
            thresholds=limits.thresholds,
            holds_lease=holds_lease,
            dlq_growth_per_min=letters,
            nodes=_encode_nodes(live, leases) if caller.is_platform else [],
            held_hosts=_name_nodes(told, live, context.health.incarnation, caller),
            version=__version__,
            notices=_notices(context, caller),
            last_backup=backup,
            read_replicas=replicas,
        )
    )


def _encode_sentence(phrase: Phrase) -> Encoded:
    return Reason.encode(**sentence_fields("text", phrase))


def _notices(context: Context, caller: Caller) -> list[str]:
    """Return the notices for operators: a server without keys, and for the platform a database with a single role."""
    single = caller.is_platform and not context.is_isolated
    return [*([KEYLESS] if caller.is_keyless else []), *([SINGLE_ROLE] if single else [])]


async def _tenant_figures(connection: Platform, caller: Caller) -> Reading | None:
    """Return the figures of the caller's tenant by its statistics per minute; None for a caller of the platform."""
    if caller.is_platform or caller.tenant_id is None:
        return None
    now = await nodes.database_time(connection)
    found = await minute_stats.minutes_since(connection, caller.tenant_id, minute_of(now - OUTCOMES_SINCE))
    counts = reduce(MinuteCounts.and_, (each for _, each in found), NOTHING)
    late = reduce(MinuteCounts.and_, (each for at, each in found if at >= minute_of(now - DELAYS_SINCE)), NOTHING)
    live = await minute_stats.count_states(connection, caller.tenant_id)
    return Reading(
        delays=late.delays,
        failed=counts.failed,
        succeeded=counts.succeeded,
        in_flight=live.instances.get(State.RUNNING, 0),
        retry_backlog=live.instances.get(State.FAIL, 0),
    )


async def _letters_per_minute(connection: Platform, caller: Caller) -> int:
    """Return the tenant's new dead letters of the last minute; none for a caller without a tenant."""
    if caller.tenant_id is None:
        return 0
    return await instance_queries.dead_letters_since(connection, caller.tenant_id, timedelta(minutes=1))


def _merge_readings(context: Context, others: list[NodeHealth], now: float) -> Reading:
    """Merge the current health of this node with those of the other nodes as of their last heartbeat."""
    return merged([context.health.reading(now), *(reading_from(other.health, other.name) for other in others)])


def _name_nodes(told: Reading, live: Sequence[NodeInfo], own: int, caller: Caller) -> list[HeldHost]:
    """Return the held hosts of the caller's tenant, or of all, also those of this process with the name of its node."""
    shown = [held for held in told.held_hosts if caller.is_platform or held.tenant == caller.tenant]
    name = next((node.name for node in live if node.incarnation == own), "")
    return [replace(held, node=held.node or name) for held in shown]


def _encode_nodes(live: Sequence[NodeInfo], leases: Sequence[ShardInfo]) -> list[Encoded]:
    """Return the live nodes, each with its last reading and the number of its shards."""
    held = Counter((lease.node, lease.duty) for lease in leases)
    return [_encode_node(node, {duty: held[node.incarnation, duty] for duty in Duty}) for node in live]


def _encode_node(node: NodeInfo, shards: dict[Duty, int]) -> Encoded:
    told = Reading() if node.health is None else reading_from(node.health, node.name)
    return NodeOut.encode(
        node,
        in_flight=told.in_flight,
        slots=told.slots,
        handlers=told.handlers,
        shards=ShardCounts.encode(**shards),
    )


@router.get("/api/v1/scheduler/nodes", responses={200: {"model": NodeList}})
@needs(AccessRole.PLATFORM_ADMIN)
async def scheduler_nodes(context: ContextDep) -> Response:
    """List every node whose lease is valid, and at most 20 that missed theirs in the last 24 hours."""
    async with acquire(context.pool) as connection:
        live = await nodes.live_nodes(connection)
        leases = await shards.shard_leases(connection)
        since = await nodes.database_time(connection) - LOST_SINCE
        lost = await nodes.lost_nodes(connection, since, LOST_SHOWN)
    return answer(NodeList.encode(items=_encode_nodes(live, leases), lost=lost, next_cursor=None))


@router.get("/api/v1/scheduler/shards", responses={200: {"model": ShardList}})
@needs(AccessRole.PLATFORM_ADMIN)
async def scheduler_shards(context: ContextDep) -> Response:
    """List every shard of every duty, and the node that holds it."""
    async with acquire(context.pool) as connection:
        leases = await shards.shard_leases(connection)
    items = [ShardOut.encode(lease, name=lease_name(lease.duty, lease.shard)) for lease in leases]
    return answer(ShardList.encode(items=items, next_cursor=None))


@router.get("/livez", include_in_schema=False)
@router.get("/healthz", include_in_schema=False)
@needs()
async def healthz() -> Response:
    """Answer while the process is alive."""
    return answer({"status": "ok"})


@router.get("/readyz", include_in_schema=False)
@needs()
async def readyz(context: ContextDep) -> Response:
    """Answer 200 if the node is ready, otherwise 503.

    A node is ready if the database answers, its clock was not set back, the lease is valid, and every loop has
    succeeded recently. A database that is newer than this version is a reason to upgrade, not to take the node out of
    service.
    """
    try:
        async with acquire(context.pool) as connection:
            await nodes.database_time(connection)
    except asyncpg.PostgresError as error:  # any result other than the time means not ready
        raise unavailable(error) from error
    health, now = context.health, time.monotonic()
    told: dict[str, Any] = {"overdueLoops": health.overdue(now), "holdsLease": health.holds_lease(now)}
    reasons = health.reading(now).reasons()
    told["reasons"] = [str(reason) for reason in reasons]
    if not health.is_well(now):
        return answer({"status": "degraded", **told}, 503)
    return answer({"status": "degraded" if reasons else "ready", **told})
