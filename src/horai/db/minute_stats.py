"""Statistics by minute, and counts of instances: one function per statement of sql/minute_stats.sql."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import asyncpg
import msgspec

from horai.core.minute_stats import Gauges, MinuteCounts
from horai.core.states import State
from horai.db.catalog import sql
from horai.db.pool import AnyRead, Platform, TenantRead

COUNTED = 10_000
"""The largest number of live instances that is counted exactly. Of more, a sample of about this size is read."""
GAUGED = 100_000
"""The largest value of a gauge."""


async def tenants_of(connection: Platform, job_ids: Sequence[int]) -> dict[int, int]:
    """Return the tenants of these jobs. A job without a row is absent."""
    return {row["id"]: row["tenant_id"] for row in await connection.fetch(sql("tenants_of"), job_ids)}


async def write_minutes(connection: Platform, at: datetime, node: int, counts: Mapping[int, MinuteCounts]) -> None:
    """Write the counts of a node for a minute, as far as it has passed, by their tenants."""
    rows = [
        (tenant, each.started, each.succeeded, each.failed, each.dead, json.dumps(each.delays))
        for tenant, each in sorted(counts.items())
    ]
    await connection.execute(sql("write_minutes"), at, node, *map(list, zip(*rows, strict=True)))


async def minutes_since(connection: AnyRead, tenant_id: int, since: datetime) -> list[tuple[datetime, MinuteCounts]]:
    """Return the tenant's counts of every process for each minute since `since`."""
    found: list[tuple[datetime, MinuteCounts]] = []
    for at, started, succeeded, failed, dead, delays in await connection.fetch(sql("minutes_since"), tenant_id, since):
        pairs = msgspec.json.decode(delays, type=tuple[tuple[int, int], ...])
        found.append((at, MinuteCounts(started, succeeded, failed, dead, pairs)))
    return found


async def take_gauges(connection: Platform, at: datetime) -> None:
    """Store the present gauges of every tenant for the minute `at`, unless another process has stored them."""
    await connection.execute(sql("take_gauges"), at, GAUGED)


async def gauges_since(connection: TenantRead, tenant_id: int, since: datetime) -> dict[datetime, Gauges]:
    """Return the tenant's gauges since `since` by minute; a minute in which no process stored them is absent."""
    return {at: Gauges(*counts) for at, *counts in await connection.fetch(sql("gauges_since"), tenant_id, since)}


async def forget_minutes(connection: Platform, after: timedelta) -> None:
    """Delete the counts and gauges that are older than `after`."""
    await connection.execute(sql("forget_minutes"), after)


@dataclass(frozen=True, slots=True)
class StateCounts:
    """The number of live instances by state, and of due instances in INIT; estimated unless `is_exact`."""

    instances: dict[State, int]
    overdue: int
    is_exact: bool


def _counted(rows: Sequence[asyncpg.Record], factor: float, *, is_exact: bool) -> StateCounts:
    instances = {State(row["state"]): round(row["instances"] * factor) for row in rows}
    return StateCounts(instances, round(sum(row["overdue"] for row in rows) * factor), is_exact)


async def count_states(connection: AnyRead, tenant_id: int) -> StateCounts:
    """Count the live instances by state.

    Above `COUNTED` a sample is used, so the cost is about the same for any number.
    """
    rows = await connection.fetch(sql("count_states"), tenant_id, COUNTED + 1)
    if sum(row["instances"] for row in rows) <= COUNTED:
        return _counted(rows, 1.0, is_exact=True)
    estimate: int = await connection.fetchval(sql("live_estimate"))
    percent = min(max(100.0 * COUNTED / max(estimate, COUNTED), 0.001), 100.0)
    rows = await connection.fetch(sql("sample_states"), tenant_id, percent)
    return _counted(rows, 100 / percent, is_exact=False)
