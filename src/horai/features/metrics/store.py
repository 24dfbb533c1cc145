"""Figures of the whole cluster: one function per statement of store.sql."""

import json
import time
from collections.abc import Sequence

from horai.core.controls import controls_from
from horai.core.dispatchers import DispatcherFigures
from horai.core.health import Reading, merged, reading_from
from horai.core.job import Priority
from horai.core.limits import SHARDS
from horai.core.shards import Role
from horai.db import archives, backups
from horai.db.catalog import sql
from horai.db.pool import Platform
from horai.features.metrics.exposition import ClusterFigures, Depth, RecoveryFigures, SinkFigures

MOST_ROWS, MOST_LANES = 1_000, 500
"""The bounds of one count: rows of each lane and shard, and lanes."""
MOST_WAITING, MOST_SINKS = 100_000, 1_000


async def cluster_figures(connection: Platform, own: Reading, incarnation: int) -> ClusterFigures:
    """Read the figures of the cluster, with the current reading of this process in place of its last heartbeat."""
    began = time.monotonic()
    row = await connection.fetchrow(sql("cluster_figures"), incarnation)
    round_trip = time.monotonic() - began
    assert row is not None  # noqa: S101 — a select without a table returns a row
    told = [(reading_from(json.dumps(vitals), name), roles) for name, vitals, roles in json.loads(row["readings"])]
    readings = [(own, row["roles"]), *told]
    depths = await connection.fetch(sql("depth_by_priority"), MOST_ROWS, SHARDS, MOST_LANES)
    sinks = await connection.fetch(sql("outbox_figures"), MOST_SINKS)
    recovery = await connection.fetchrow(sql("last_recovery"))
    backup = await backups.backup_status(connection)
    return ClusterFigures(
        reading=merged([reading for reading, _ in readings]),
        controls=controls_from(row["controls"]),
        depths=tuple(
            Depth(Priority(each["priority"]), min(each["waiting"], MOST_WAITING), each["oldest"]) for each in depths
        ),
        nodes=len(readings),
        dispatchers=_dispatchers([reading for reading, roles in readings if Role.executor in roles]),
        oldest_xmin=row["oldest_xmin"],
        round_trip=round_trip,
        sinks=tuple(SinkFigures(**each) for each in sinks),
        recovery=None if recovery is None else RecoveryFigures(**recovery),
        backup=backup,
        archive=await archives.figures(connection),
    )


def _dispatchers(readings: Sequence[Reading]) -> DispatcherFigures:
    in_flight, slots = sum(each.in_flight for each in readings), sum(each.slots for each in readings)
    return DispatcherFigures(len(readings), in_flight, slots)
