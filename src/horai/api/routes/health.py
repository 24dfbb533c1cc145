"""Health: for the console, for load balancers, and for people."""

import time
from datetime import timedelta
from typing import Any

from fastapi import APIRouter, Response

from horai import __version__
from horai.api.context import Context, ContextDep
from horai.api.present import answer, node_json
from horai.db import nodes, reads
from horai.db.nodes import NodeInfo
from horai.db.pool import acquire
from horai.wire.health import HealthOut, NodeList

router = APIRouter(tags=["health"])


@router.get("/api/v1/scheduler/health", responses={200: {"model": HealthOut}})
async def scheduler_health(context: ContextDep) -> Response:
    """How the scheduler is doing, by what its loops have measured."""
    async with acquire(context.pool) as connection:
        live = await nodes.live_nodes(connection)
        letters = await reads.dead_letters_since(connection, context.tenant_id, timedelta(minutes=1))
    return answer(_health(context, live, letters))


def _health(context: Context, live: list[NodeInfo], letters: int) -> dict[str, Any]:
    vitals, now = context.vitals, time.monotonic()
    return {
        "status": "UP" if live and vitals.is_well(now) else "DEGRADED",
        "modes": ["NORMAL"],
        "triggerDelayP50Ms": round(vitals.delay_quantile(now, 0.50) * 1000, 3),
        "triggerDelayP95Ms": round(vitals.delay_quantile(now, 0.95) * 1000, 3),
        "triggerDelayP99Ms": round(vitals.delay_quantile(now, 0.99) * 1000, 3),
        "runSuccessRate10m": round(vitals.success_rate(now), 6),
        "retryBacklog": vitals.retry_backlog,
        "dlqGrowthPerMin": letters,
        "inFlight": vitals.in_flight,
        "unsettled": vitals.unsettled,
        "lateResults": vitals.late_results,
        "releasedClaims": vitals.released_claims,
        "actions": [],
        "overdueLoops": vitals.overdue(now),
        "holdsLease": vitals.holds_lease(now),
        "nodes": [node_json(node) for node in live],
        "version": __version__,
        "notices": list(context.notices),
    }


@router.get("/api/v1/scheduler/nodes", responses={200: {"model": NodeList}})
async def scheduler_nodes(context: ContextDep) -> Response:
    """Every node whose lease holds."""
    async with acquire(context.pool) as connection:
        live = await nodes.live_nodes(connection)
    return answer({"items": [node_json(node) for node in live], "nextCursor": None})


@router.get("/livez", include_in_schema=False)
@router.get("/healthz", include_in_schema=False)
async def healthz() -> Response:
    """The process answers."""
    return answer({"status": "ok"})


@router.get("/readyz", include_in_schema=False)
async def readyz(context: ContextDep) -> Response:
    """The database answers, the lease holds, and every loop has lately succeeded: 503 while blind."""
    async with acquire(context.pool) as connection:
        await nodes.database_time(connection)
    vitals, now = context.vitals, time.monotonic()
    told = {"overdueLoops": vitals.overdue(now), "holdsLease": vitals.holds_lease(now)}
    if not vitals.is_well(now):
        return answer({"status": "degraded", **told}, 503)
    return answer({"status": "ready", **told})
