"""Queries of runs use an index, however many runs and instances there are."""

import asyncio
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import asyncpg
import pytest
from databases import fresh_database

from horai.db.catalog import sql
from horai.db.instance_queries import FIRST, LAST
from horai.db.pool import Dedicated
from horai.embedded import EmbeddedPostgres

RUNS, OPEN = 20_000, 300
"""So many runs of two nodes each; the last ones are not over, and every third of those is BLOCKED by its first node."""
MAPPED, ITEMS = RUNS, 400
"""The last run has a map of so many items too, each with a live instance, and so have 50 runs that are over."""
FILL = f"""
insert into horai.lane (tenant_id, queue, priority, handler) values (1, 'q', 2, '');
insert into horai.job (tenant_id, name, lane_id, definition) select 1, 'j' || n, 1, '{{}}' from generate_series(1, 60) n;
insert into horai.workflow (tenant_id, name, job_id, nodes) select 1, 'w' || n, n, '[]' from generate_series(1, 50) n;
insert into horai.workflow_run (tenant_id, id, workflow_id, fire_time, phase, version, created_at, finished_at)
select 1, n, 1 + n % 50, at, case when n <= {RUNS - OPEN} then 2 when n % 3 = 0 then 1 else 0 end, 1, at,
    case when n <= {RUNS - OPEN} then at end
from (select n, timestamptz '2026-03-01Z' + n * interval '1 second' as at from generate_series(1, {RUNS}) n) r;
insert into horai.workflow_node (tenant_id, run_id, name, job_id, instance_id, after, ended)
select 1, run.id, name, 51, 1000000 + 2 * run.id + (name = 'b')::integer, case when name = 'b' then array['a'] else '{{}}' end,
    case when phase = 2 then 2 when phase = 1 and name = 'a' then 4 end
from horai.workflow_run run cross join (values ('a'), ('b')) as node(name);
insert into horai.instance_live (id, job_id, due, fire_time, execute_time, born_for, slot, tenant_id, lane, shard, state)
select instance_id, 51, now(), now(), now(), now(), -instance_id, 1, case when name = 'a' then 1 else 0 end, instance_id % 32,
    case when name = 'a' then 0 else 6 end
from horai.workflow_node where ended is null;
insert into horai.instance_live (id, job_id, due, fire_time, execute_time, born_for, slot, tenant_id, lane, shard)
select 5000000 + n, 52, now(), now(), now(), now(), -5000000 - n, 1, 1, n % 32 from generate_series(1, 30000) n;
insert into horai.instance_history (id, job_id, fire_time, execute_time, born_for, slot, created_at, claimed_at, finished_at, fence,
    tenant_id, lane, attempt, retry_count, events, state)
select instance_id, 51, at, at, at, -instance_id, at, at, at, 1, 1, 1, 1, 0, 0, ended
from (select *, timestamptz '2026-03-01Z' + run_id * interval '1 second' as at from horai.workflow_node where ended is not null) r;
"""
MAPS = f"""
insert into horai.workflow_node (tenant_id, run_id, name, job_id, instance_id, after, ended, map, map_total, map_made, map_ended)
select 1, run, 'm', 51, 2000000 + run - {RUNS}, '{{}}', case when run <> {RUNS} then 2 end, '{{"overPayload": ""}}', {ITEMS}, {ITEMS},
    case when run <> {RUNS} then {ITEMS} else 0 end
from generate_series({RUNS} - 50 * {OPEN}, {RUNS}, {OPEN}) run;
insert into horai.workflow_item (tenant_id, run_id, name, generation, position, instance_id, ended)
select 1, node.run_id, 'm', 0, n, 7000000 + ({RUNS} - node.run_id) * 1000 + n, node.ended
from horai.workflow_node node cross join generate_series(0, {ITEMS} - 1) n where node.map is not null;
insert into horai.instance_live (id, job_id, due, fire_time, execute_time, born_for, slot, tenant_id, lane, shard)
select instance_id, 51, now(), now(), now(), now(), -instance_id, 1, 1, instance_id % 32 from horai.workflow_item where ended is null;
"""
BEGAN = datetime(2026, 3, 1, tzinfo=UTC)
SOME = list(range(RUNS - 20, RUNS))
NODES = [1_000_000 + 2 * run for run in SOME]
SHARDS = list(range(32))

EVER = (FIRST[0], LAST[0])

ASKED: dict[str, tuple[tuple[Any, ...], int]] = {
    "lock_runs": ((SOME,), 100),
    "open_runs": ((SOME,), 100),
    "nodes_of_runs": ((SOME,), 100),
    "live_states": ((NODES,), 100),
    "final_states": ((NODES, BEGAN, NODES[:1]), 100),
    "replays_of": ((NODES,), 100),
    "follow_replays": ((NODES, [node + 10**8 for node in NODES], [None] * len(NODES)), 100),
    "note_ends": ((NODES, [2] * len(NODES), [None] * len(NODES), [None] * len(NODES)), 100),
    "results_of": ((NODES, BEGAN, 65_536), 100),
    "blocked_payloads": ((NODES,), 100),
    "unblock": (([node + 1 for node in NODES], SOME, [None] * len(NODES), [None] * len(NODES)), 100),
    "set_phases": ((SOME, [0] * len(SOME), [True] * len(SOME), [False] * len(SOME)), 100),
    "waiting_starters": ((SOME,), 100),
    "dead_nodes_of": ((SOME,), 100),
    "runs_of": ((NODES,), 100),
    "runs_of_replays": ((NODES,), 100),
    "has_open_runs": ((), OPEN),
    "lock_run": ((7, 8), 10),
    "retire_nodes": ((7, ["a"]), 10),
    "reopen_run": ((RUNS,), 10),
    "find_run": ((7, 8), 10),
    "list_runs": ((1, *LAST, 50, *EVER), 100),
    "list_runs_upwards": ((1, *FIRST, 50, *EVER), 100),
    "list_runs_in": ((1, *LAST, 50, *EVER, 1), 100),
    "list_runs_in_upwards": ((1, *FIRST, 50, *EVER, 1), 100),
    "count_runs": ((1, [0, 1, 2, 3], *EVER, 1_001), 1_100),
    "last_runs": ((list(range(1, 51)),), 100),
    "run_nodes_now": ((7, BEGAN), 100),
    "open_runs_of": ((1, 0, 50), 100),
    "payload_of_run": ((7,), 10),
    "result_to_map": ((1_000_015, BEGAN), 10),
    "note_item_ends": ((MAPPED, "m", 0, BEGAN), 2 * ITEMS),
    "follow_item_replays": ((MAPPED, "m", 0), 2 * ITEMS),
    "open_items": ((MAPPED, "m", 0), 2 * ITEMS),
    "set_map": ((MAPPED, "m", 0, ITEMS, ITEMS, 0, 0, None, None, False, False), 10),
    "map_results": (([2_000_000],), 10),
    "item_results": ((MAPPED, "m", 0, BEGAN, 100, 200), 200),
    "items_page": ((MAPPED, "m", 0, BEGAN, 100, 100, False), 200),
    "dead_items_of": ((MAPPED, ["m"]), 2 * ITEMS),
}
"""Each statement, and how many rows its busiest scan may meet in all its turns."""
ALWAYS_SMALL = frozenset({"job", "workflow", "tenant", "lane"})


@pytest.fixture(scope="module")
def grown(postgres: EmbeddedPostgres) -> Iterator[str]:
    """A database with 20,000 runs, of which 300 are open, among 70,000 instances."""

    async def fill(url: str) -> None:
        connection = await asyncpg.connect(url)
        await connection.execute(FILL)
        await connection.execute(MAPS)
        await connection.execute("vacuum analyze")
        await connection.close()

    with fresh_database(postgres) as url:
        asyncio.run(fill(url))
        yield url


def literal(value: Any) -> str:
    match value:
        case None:
            return "null"
        case list():
            return "array[" + ",".join(map(literal, value)) + "]" if any(v is not None for v in value) else "'{}'"
        case int():
            return str(value)
        case _:
            return f"'{value}'"


async def met(connection: Dedicated, statement: str, arguments: tuple[Any, ...], mode: str) -> float:
    """Return the rows that the busiest scan met, by a plan for these arguments or for any; nothing stays written."""
    async with connection.transaction():
        await connection.execute(f"set local plan_cache_mode = force_{mode}_plan")
        await connection.execute(f"prepare asked as {sql(statement)}")
        given = f"({', '.join(map(literal, arguments))})" if arguments else ""
        told = await connection.fetchval(f"explain (analyze, timing off, format json) execute asked{given}")
        await connection.execute("deallocate asked")
        await connection.execute("set local plan_cache_mode = auto")
    scans = [scan for scan in _scans(json.loads(told)[0]["Plan"]) if scan["Relation Name"] not in ALWAYS_SMALL]
    assert scans
    return max((scan["Actual Rows"] + scan.get("Rows Removed by Filter", 0)) * scan["Actual Loops"] for scan in scans)


def _scans(node: Any) -> Iterator[Any]:
    if "Relation Name" in node and "Scan" in node["Node Type"]:
        yield node
    for below in node.get("Plans", ()):
        yield from _scans(below)


@pytest.mark.parametrize("mode", ["custom", "generic"])
@pytest.mark.parametrize("statement", ASKED)
async def test_C18_statements_on_runs_read_a_bounded_number_of_rows(grown: str, statement: str, mode: str) -> None:
    arguments, bound = ASKED[statement]
    connection: Dedicated = await asyncpg.connect(grown)
    try:
        assert await met(connection, statement, arguments, mode) <= bound
    finally:
        await connection.close()


@pytest.mark.parametrize("mode", ["custom", "generic"])
@pytest.mark.parametrize("only", [None, SOME], ids=["sweep", "known"])
async def test_C18_a_sweep_looks_at_the_runs_that_are_open_and_at_no_others(
    grown: str, only: list[int] | None, mode: str
) -> None:
    connection: Dedicated = await asyncpg.connect(grown)
    try:
        assert await met(connection, "stuck_runs", (0, 200, SHARDS, 32, only), mode) <= 3 * OPEN
    finally:
        await connection.close()
