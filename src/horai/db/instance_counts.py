"""Bounded counts of instances: one function per statement of sql/instance_counts.sql."""

from horai.core.bounded_count import COUNTED, BoundedCount
from horai.core.states import FINAL, LIVE, State
from horai.db.catalog import sql
from horai.db.instance_lists import InstanceFilter, has_only_rare, is_begun
from horai.db.pool import TenantRead

PAYLOADS_COUNTED = 2_000
"""The limit of each table with a payload filter: each payload is read from TOAST storage and parsed."""


async def count_instances(connection: TenantRead, tenant_id: int, only: InstanceFilter) -> BoundedCount:
    """Count matching instances, live and finished, among the newest `COUNTED` rows of each table."""
    bound = COUNTED if only.payload is None else PAYLOADS_COUNTED
    live, past = only.states & LIVE, only.states & FINAL
    row = await connection.fetchrow(
        sql("count_instances"),
        tenant_id,
        _unless_all(live, LIVE),
        _unless_all(past, FINAL),
        only.job_id,
        only.key,
        only.from_time,
        only.to_time,
        only.queue,
        only.tag,
        only.error_code,
        *only.key_range,
        has_only_rare(only, LIVE),
        has_only_rare(only, FINAL),
        *only.payload_member,
        only.ids,
        is_begun(live),
        bound + 1 if live else 0,
        bound + 1 if past else 0,
    )
    assert row is not None  # noqa: S101 — an aggregate always has a row
    more = max(row["live_rows"], row["past_rows"]) > bound
    return BoundedCount(min(row["matched"], COUNTED) if more else row["matched"], more)


def _unless_all(states: frozenset[State], every: frozenset[State]) -> list[int] | None:
    return None if states == every else [int(state) for state in states]
