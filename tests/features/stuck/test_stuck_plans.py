"""The reads behind stuck runs, clogged queues and blocked runs are bounded, however much there is beside them."""

import asyncio
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import pytest
from databases import fresh_database

from horai.core.limits import SHARDS
from horai.core.stuck import LAST_RUNS, samples_from
from horai.db.catalog import sql
from horai.db.instance_queries import LAST
from horai.db.pool import Dedicated
from horai.db.stuck import FULL_QUEUES, LANES, LONG_RUNS, ROWS_BEFORE_A_WAITING_ONE, ROWS_OF_A_SCAN
from horai.embedded import EmbeddedPostgres

FILL = """
select horai.make_partitions(current_date - 30, 30);
insert into horai.node (name, host, pid, version, lease_until) values ('n', 'h', 1, 'v', 'infinity');
insert into horai.lane (tenant_id, queue, priority, handler) select 1, 'q' || n, 2, '' from generate_series(1, 4) n;
insert into horai.job (tenant_id, name, lane_id, definition) select 1, 'j' || n, 1, '{}' from generate_series(1, 500) n;
insert into horai.instance_live (id, job_id, due, fire_time, execute_time, born_for, slot, tenant_id, lane, shard, state, node, claim, claimed_at,
    attempt, fence)
select n, 1 + n % 500, at, at, at, at, -n, 1, 1 + n % 4, n % 32, case when n <= 200 then 1 else 0 end,
    case when n <= 200 then 1 end, case when n <= 200 then 1 end, case when n <= 200 then at end, 1, 1
from (select n, now() - interval '1 day' + n * interval '100 ms' as at from generate_series(1, 100000) n) r;
insert into horai.instance_history (id, job_id, fire_time, execute_time, born_for, slot, created_at, claimed_at, finished_at, fence,
    tenant_id, lane, attempt, retry_count, events, state)
select 1000000 + n, case when n % 10 = 0 then 2 else 1 end, at, at, at, -1000000 - n, at, at, at + interval '100 ms', 1, 1, 1, 1, 0, 0, 2
from (select n, now() - n * interval '10 seconds' as at from generate_series(1, 200000) n) r;
update horai.queue set max_concurrency = 50 where name in ('q1', 'q2');
insert into horai.queue_slot (tenant_id, queue_id, n, version, instance_id, fence, node, taken_at)
select 1, queue.id, n, 0, n, 1, 1, now() - interval '1 day' from horai.queue cross join generate_series(1, 50) n where name in ('q1', 'q2');
insert into horai.workflow (tenant_id, name, job_id, nodes) select 1, 'w' || n, n, '[]' from generate_series(1, 20) n;
insert into horai.workflow_run (tenant_id, id, workflow_id, fire_time, phase, version, finished_at)
select 1, n, 1 + n % 20, now() - n * interval '1 minute', case when n % 100 = 0 then 1 else 2 end, 1,
    case when n % 100 = 0 then null else now() end from generate_series(1, 20000) n;
insert into horai.workflow_node (tenant_id, run_id, name, job_id, instance_id, after, ended)
select 1, n, 'a', 1, 5000000 + n, '{}', case when n % 100 = 0 then 4 else 2 end from generate_series(1, 20000) n;
insert into horai.workflow_node (tenant_id, run_id, name, job_id, instance_id, after)
select 1, n, letter, 1, place * 1000000 + n, before from generate_series(100, 20000, 100) n
cross join (values (6, 'b', array[]::text[]), (7, 'c', array['b']), (8, 'd', array['c'])) next (place, letter, before);
insert into horai.workflow_item (tenant_id, run_id, name, generation, position, instance_id, ended)
select 1, n, 'm', 0, 0, 9000000 + n, 2 from generate_series(1, 20000) n;
insert into horai.dead_letter (tenant_id, job_id, instance_id, error_code) select 1, 1, 5000000 + n, 'X' from generate_series(1, 20000) n;
"""
NOW = datetime.now(UTC)
BEFORE = NOW - timedelta(minutes=1)
BLOCKED = [100 * n for n in range(1, 11)]
NODES = [6_000_000 + run for run in BLOCKED]
"""Instances of nodes that have not ended."""

ASKED: dict[str, tuple[tuple[Any, ...], int]] = {
    "long_runs": ((1, BEFORE, SHARDS, ROWS_OF_A_SCAN, LANES, LONG_RUNS), 4 * SHARDS * ROWS_OF_A_SCAN),
    "running_instance": ((1, 100, BEFORE), 10),
    "usual_durations": (([1, 2], samples_from(NOW), LAST_RUNS), 2 * LAST_RUNS + 100),
    "long_holders": ((1, BEFORE, None, FULL_QUEUES), 400),
    "full_queues": ((1, BEFORE, FULL_QUEUES, SHARDS, ROWS_BEFORE_A_WAITING_ONE), 600),
    "longest_holders": (([1, 2, 3, 4, 5], 5), 600),
    "full_among": ((1, ["q1", "q2", "q3"]), 600),
    "nodes_behind": ((NODES,), 100),
    "blocked_runs": ((1, *LAST, 10), 20 * 10),
    "nodes_of_blocked": ((BLOCKED,), 50),
    "open_letters": (([5_000_000 + run for run in BLOCKED],), 20),
    "run_of_blocked": ((5_000_100,), 2),
}
"""Each statement with its arguments, and how many rows all turns of one scan may meet."""
ALWAYS_SMALL = frozenset({"job", "workflow", "lane", "queue", "node"})


@pytest.fixture(scope="module")
def grown(postgres: EmbeddedPostgres) -> Iterator[str]:
    """A tenant with 100,000 due instances and 200,000 ended ones of two jobs, over a month."""

    async def fill(url: str) -> None:
        connection = await asyncpg.connect(url)
        await connection.execute(FILL)
        await connection.execute("vacuum analyze")
        await connection.close()

    with fresh_database(postgres) as url:
        asyncio.run(fill(url))
        yield url


@pytest.mark.parametrize("plans", ["force_custom_plan", "force_generic_plan"])
@pytest.mark.parametrize("statement", ASKED)
async def test_a_question_about_stuck_work_reads_a_bounded_number_of_rows(
    grown: str, statement: str, plans: str
) -> None:
    arguments, most = ASKED[statement]
    connection: Dedicated = await asyncpg.connect(grown)
    await connection.execute(f"set plan_cache_mode = {plans}")
    answer = await connection.fetchval(f"explain (analyze, timing off, format json) {sql(statement)}", *arguments)
    await connection.close()

    scans = [node for node in _nodes(json.loads(answer)[0]["Plan"]) if "Relation Name" in node]
    busy = [scan for scan in scans if scan["Relation Name"] not in ALWAYS_SMALL]
    assert busy
    assert sum(_met(scan) for scan in busy if "history" in scan["Relation Name"]) <= most
    assert max(_met(scan) for scan in busy) <= most, busy
    whole = {scan["Relation Name"] for scan in busy if scan["Node Type"].endswith("Seq Scan") and scan["Actual Loops"]}
    assert not whole - {"instance_history_default", "queue_slot"}


async def test_the_fill_has_stuck_work_for_the_statements_to_find(grown: str) -> None:
    connection: Dedicated = await asyncpg.connect(grown)
    found = {name: len(await connection.fetch(sql(name), *arguments)) for name, (arguments, _) in ASKED.items()}
    await connection.close()

    assert found["long_runs"] == 200
    assert found["usual_durations"] == 2
    assert found["long_holders"] == 100
    assert (found["full_queues"], found["longest_holders"], found["full_among"], found["nodes_behind"]) == (
        2,
        10,
        2,
        10,
    )
    assert (found["blocked_runs"], found["nodes_of_blocked"], found["open_letters"]) == (10, 40, 10)


def _met(scan: dict[str, Any]) -> float:
    of_one = scan["Actual Rows"] + scan.get("Rows Removed by Filter", 0) + scan.get("Rows Removed by Index Recheck", 0)
    return of_one * scan["Actual Loops"]


def _nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", ()):
        yield from _nodes(child)
