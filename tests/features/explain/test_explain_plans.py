"""The reads of an explanation are bounded, however much the job and its neighbours have behind them."""

import asyncio
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import pytest
from databases import fresh_database

from horai.db.catalog import sql
from horai.db.pool import Dedicated
from horai.embedded import EmbeddedPostgres
from horai.features.explain.store import OTHERS_LOOKED_AT

AT = datetime(2026, 3, 2, 9, tzinfo=UTC)

FILL = """
create index if not exists skip_of_all on horai.skip (schedule_id, from_time) where job_id is null;
insert into horai.lane (tenant_id, queue, priority, handler) values (1, 'q', 2, '');
insert into horai.schedule (identity, spec, fire_time) select 's' || n, '{}', '2026-03-03' from generate_series(1, 2000) n;
insert into horai.job (tenant_id, name, lane_id, definition, schedule_id)
select 1, 'j' || n, 1, '{}', 1 from generate_series(1, 2000) n;
insert into horai.instance_live (id, job_id, due, fire_time, execute_time, born_for, slot, tenant_id, lane, shard, key)
select n, 1, at, at, at, at, -n, 1, 1, n % 32, 'k' || n
from (select n, timestamptz '2026-03-02 09:00Z' - n * interval '1 second' as at from generate_series(1, 50000) n) r;
insert into horai.instance_history (id, job_id, fire_time, execute_time, born_for, slot, created_at, claimed_at, finished_at, fence,
    tenant_id, lane, attempt, retry_count, events, state)
select 1000000 + n, 1, at, at, at, 0, at, at, at + interval '100 ms', 1, 1, 1, 1, 0, 0, 2
from (select n, timestamptz '2026-03-02 09:00Z' - n * interval '1 second' as at from generate_series(0, 100000) n) r;
insert into horai.skip (tenant_id, schedule_id, job_id, from_time, to_time, slots, reason)
select 1, 1, 2 + n % 1999, at, at, 1, 'PAUSED_SKIP'
from (select n, timestamptz '2026-03-02 09:00Z' - n * interval '1 second' as at from generate_series(1, 50000) n) r;
insert into horai.skip (schedule_id, job_id, from_time, to_time, slots, reason)
select 1, null, at, at + interval '1 minute', 1, 'MISFIRE_SKIP'
from (select n, timestamptz '2026-03-01 09:00Z' - n * interval '1 hour' as at from generate_series(1, 2000) n) r;
insert into horai.catchup (tenant_id, job_id, schedule_id, next_time, until_time)
select 1, 1 + n % 2000, 1, '2026-03-01', '2026-03-03' from generate_series(1, 20000) n;
"""

ASKED: dict[str, tuple[tuple[Any, ...], int]] = {
    "instance_at": ((1, AT, AT - timedelta(days=1)), 2),
    "others_under_way": ((1, AT, 7, OTHERS_LOOKED_AT), OTHERS_LOOKED_AT),
    "skip_of_job": ((1, AT), 10),
    "skip_of_schedule": ((1, AT), 10),
    "catchup_of_job": ((1, AT), 20),
    "cursor_of_schedule": ((1,), 1),
}
"""Each statement with its arguments, and how many rows one scan of it may meet."""


@pytest.fixture(scope="module")
def grown(postgres: EmbeddedPostgres) -> Iterator[str]:
    """A job with 50,000 keyed instances and 100,000 past slots, whose neighbours have been paused 50,000 times."""

    async def fill(url: str) -> None:
        connection = await asyncpg.connect(url)
        await connection.execute(FILL)
        await connection.execute("vacuum analyze")
        await connection.close()

    with fresh_database(postgres) as url:
        asyncio.run(fill(url))
        yield url


@pytest.mark.parametrize("statement", ASKED)
async def test_a_question_about_one_slot_reads_a_bounded_number_of_rows(grown: str, statement: str):
    arguments, most = ASKED[statement]
    connection: Dedicated = await asyncpg.connect(grown)
    await connection.execute("set plan_cache_mode = force_custom_plan")
    answer = await connection.fetchval(f"explain (analyze, timing off, format json) {sql(statement)}", *arguments)
    await connection.close()

    scans = [node for node in _nodes(json.loads(answer)[0]["Plan"]) if "Relation Name" in node]
    assert scans
    assert max(_met(scan) for scan in scans) <= most, scans


def _met(scan: dict[str, Any]) -> float:
    return scan["Actual Rows"] + scan.get("Rows Removed by Filter", 0) + scan.get("Rows Removed by Index Recheck", 0)


def _nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", ()):
        yield from _nodes(child)
