"""The route of metrics."""

import time

import structlog
from fastapi import APIRouter, Response
from prometheus_client import CONTENT_TYPE_LATEST

from horai import __version__
from horai.api.context import ContextDep
from horai.api.route import RoleRoute, needs
from horai.core.errors import DatabaseUnavailable
from horai.core.roles import AccessRole
from horai.db.pool import GONE, acquire
from horai.features.metrics.exposition import ReplicaFigures, Snapshot, text_of
from horai.features.metrics.store import cluster_figures

log = structlog.get_logger(__name__)

router = APIRouter(tags=["metrics"], route_class=RoleRoute)


@router.get("/metrics", include_in_schema=False)
@needs(AccessRole.PLATFORM_ADMIN)
async def metrics(context: ContextDep) -> Response:
    """Show the metrics of this process and of the cluster. While the database is away, those of this process remain."""
    now, health = time.monotonic(), context.health
    try:
        async with acquire(context.pool) as connection:
            cluster = await cluster_figures(connection, health.reading(now), health.incarnation)
    except (*GONE, DatabaseUnavailable) as error:
        log.warning("metrics of the cluster cannot be read", error=repr(error))
        cluster = None
    queue = None if context.traces is None else context.traces.queue
    spans = (0, 0) if queue is None else (queue.exported, queue.dropped)
    replicas = context.replicas
    reads = None if replicas is None else ReplicaFigures(replicas.answered, replicas.lag)
    return Response(text_of(Snapshot(health, cluster, now, __version__, spans, reads)), media_type=CONTENT_TYPE_LATEST)
