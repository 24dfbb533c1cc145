"""Health: for the console, for load balancers and for operators."""

import time
from datetime import timedelta
from typing import Any

import asyncpg
from fastapi import APIRouter, Response

from horai import __version__
from horai.api.context import Context, ContextDep
from horai.api.json import answer, lost_node_json, nodes_json, shard_json
from horai.api.sentence_json import sentence_fields
from horai.core.health import merged, reading_from
from horai.core.shards import Duty
from horai.db import instance_queries, nodes, shards
from horai.db.nodes import NodeInfo, NodeVitals
from horai.db.pool import acquire, unavailable
from horai.wire.health import HealthOut, NodeList, ShardList

router = APIRouter(tags=["health"])

LOST_SINCE = timedelta(hours=24)
LOST_SHOWN = 20


@router.get("/api/v1/scheduler/health", responses={200: {"model": HealthOut}})
async def scheduler_health(context: ContextDep) -> Response:
    """Show the health of the scheduler, as the loops of all nodes have measured it."""
    async with acquire(context.pool) as connection:
        live = await nodes.live_nodes(connection)
        others = await nodes.vitals_of_nodes(connection, context.vitals.incarnation)
        leases = await shards.shard_leases(connection)
        letters = await instance_queries.dead_letters_since(connection, context.tenant_id, timedelta(minutes=1))
    return answer(
        {
            **_health(context, live, others),
            "dlqGrowthPerMin": letters,
            "nodes": nodes_json(live, leases),
            "version": __version__,
            "notices": list(context.notices),
        }
    )


def _health(context: Context, live: list[NodeInfo], others: list[NodeVitals]) -> dict[str, Any]:
    """Merge the current vitals of this node with those of the other nodes as of their last heartbeat."""
    now = time.monotonic()
    told = merged([context.vitals.reading(now), *(reading_from(other.vitals, other.name) for other in others)])
    holds_lease = context.vitals.holds_lease(now)
    reasons = [sentence_fields("text", reason) for reason in told.reasons()]
    is_complete = all(any(duty.role in node.roles for node in live) for duty in Duty)
    return {
        "status": "UP" if is_complete and holds_lease and not told.overdue and not reasons else "DEGRADED",
        "reasons": reasons,
        "modes": ["NORMAL"],
        "triggerDelayP50Ms": round(told.delay_quantile(0.50) * 1000, 3),
        "triggerDelayP95Ms": round(told.delay_quantile(0.95) * 1000, 3),
        "triggerDelayP99Ms": round(told.delay_quantile(0.99) * 1000, 3),
        "runSuccessRate10m": round(told.success_rate(), 6),
        "retryBacklog": told.retry_backlog,
        "inFlight": told.in_flight,
        "unsettled": told.unsettled,
        "lateResults": told.late_results,
        "releasedClaims": told.released_claims,
        "actions": [],
        "overdueLoops": told.overdue,
        "holdsLease": holds_lease,
    }


@router.get("/api/v1/scheduler/nodes", responses={200: {"model": NodeList}})
async def scheduler_nodes(context: ContextDep) -> Response:
    """List every node whose lease is valid, and at most 20 that missed theirs in the last 24 hours."""
    async with acquire(context.pool) as connection:
        live = await nodes.live_nodes(connection)
        leases = await shards.shard_leases(connection)
        since = await nodes.database_time(connection) - LOST_SINCE
        lost = await nodes.lost_nodes(connection, since, LOST_SHOWN)
    shown = {"items": nodes_json(live, leases), "lost": [lost_node_json(node) for node in lost]}
    return answer({**shown, "nextCursor": None})


@router.get("/api/v1/scheduler/shards", responses={200: {"model": ShardList}})
async def scheduler_shards(context: ContextDep) -> Response:
    """List every shard of every duty, and the node that holds it."""
    async with acquire(context.pool) as connection:
        leases = await shards.shard_leases(connection)
    return answer({"items": [shard_json(lease) for lease in leases], "nextCursor": None})


@router.get("/livez", include_in_schema=False)
@router.get("/healthz", include_in_schema=False)
async def healthz() -> Response:
    """Answer while the process is alive."""
    return answer({"status": "ok"})


@router.get("/readyz", include_in_schema=False)
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
    vitals, now = context.vitals, time.monotonic()
    told: dict[str, Any] = {"overdueLoops": vitals.overdue(now), "holdsLease": vitals.holds_lease(now)}
    reasons = vitals.reading(now).reasons()
    told["reasons"] = [str(reason) for reason in reasons]
    if not vitals.is_well(now):
        return answer({"status": "degraded", **told}, 503)
    return answer({"status": "degraded" if reasons else "ready", **told})
