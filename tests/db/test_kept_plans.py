"""A kept plan goes from the keys to the rows, with any statistics at the time of its making (C18, decision 0024).

A loop's connection makes one plan per statement and keeps it while its tables grow a thousandfold. So no statistics may
lead to a plan that reads a large table from end to end: neither those of empty tables, nor none at all, nor stale ones.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import make
import pytest
from databases import fresh_database

from horai.core.outcome import Complete
from horai.db import claims
from horai.db.catalog import sql
from horai.db.pool import Plans, Platform, Pool, acquire, connect, transaction
from horai.embedded import EmbeddedPostgres

ONCE = """
insert into horai.node (name, host, pid, version, lease_until) values ('n', 'h', 1, 'v', 'infinity');
insert into horai.lane (tenant_id, queue, priority, handler) select 1, 'q' || n, 2, '' from generate_series(1, 20) n;
"""
FILL = """
insert into horai.schedule (identity, spec, fire_time) select 's' || n, '{{}}', now() from generate_series({first}, {last}) n;
insert into horai.job (tenant_id, name, lane_id, definition) select 1, 'j' || n, 1, '{{}}' from generate_series({first}, {last}) n;
insert into horai.instance_live (id, job_id, due, fire_time, execute_time, born_for, slot, tenant_id, lane, shard, key)
select n, 1 + n % 3, now(), now(), now(), now(), -n, 1, 1 + n % 20, n % 32, 'k' || n from generate_series({first}, {last}) n;
insert into horai.instance_history (id, job_id, fire_time, execute_time, born_for, slot, created_at, finished_at, fence,
    tenant_id, lane, attempt, retry_count, events, state, key)
select 1000000 + n, 1 + n % 3, now(), now(), now(), -1000000 - n, now(), now() + (n % 3) * interval '1 day', 1, 1, 1, 1, 0, 0, 2, 'h' || n
from generate_series({first}, {last}) n;
insert into horai.attempt (instance_id, job_id, tenant_id, attempt, fence, started_at, finished_at, outcome)
select 1000000 + n, 1 + n % 3, 1, 1, 1, now(), now(), 'SUCCESS' from generate_series({first}, {last}) n;
"""
ROWS = 20_000
A_FEW, MANY = FILL.format(first=1, last=3), FILL.format(first=4, last=ROWS)
RUN = f"""
update horai.instance_live
set state = 1, attempt = 1, fence = 1, node = 1, claim = 1, claimed_at = now() where id between 1 and {ROWS * 3 // 4};
"""
DRAIN = "delete from horai.instance_live where id > 5"
TAKE = "vacuum analyze"

STATISTICS: dict[str, tuple[str, ...]] = {
    "none, of empty tables": (),
    "of empty tables": (TAKE,),
    "none, of full tables": (ONCE, A_FEW, MANY),
    "of a few rows": (ONCE, A_FEW, TAKE),
    "of a few rows, with many since": (ONCE, A_FEW, TAKE, MANY),
    "of a backlog": (ONCE, A_FEW, MANY, TAKE),
    "of a backlog that runs since": (ONCE, A_FEW, MANY, TAKE, RUN),
    "of a backlog that runs": (ONCE, A_FEW, MANY, RUN, TAKE),
    "of a backlog that is drained since": (ONCE, A_FEW, MANY, RUN, TAKE, DRAIN),
    "of a drained backlog": (ONCE, A_FEW, MANY, RUN, DRAIN, TAKE),
}


def ids(count: int) -> str:
    return "'{" + ",".join(map(str, range(1, count + 1))) + "}'::bigint[]"


def filled(value: str, count: int) -> str:
    return f"array_fill({value}, array[{count}])"


def text(value: str) -> str:
    return f"({value})::text"


POSITIONS = ("array[3]::smallint[]", "array[3]", "array['1970-01-01'::timestamptz]", "array[-1]::bigint[]")


def arguments(count: int) -> dict[str, list[str]]:
    """The arguments of every statement of the hot path, for a batch of `count`."""
    guards = [ids(count), filled("1", count), filled("1::bigint", count), filled("1::bigint", count)]
    times, words = filled("null::timestamptz", count), filled("null::text", count)
    flags = filled("true", count)
    documents, numbers = filled("null::json", count), filled("null::bigint", count)
    keys = "'{" + ",".join(f"k{n}" for n in range(count)) + "}'::text[]"
    return {
        "claim_due": ["1", "1", *POSITIONS, "array[500]"],
        "claim_keyed": ["1", "1", *POSITIONS, "array[500]"],
        "claim_limited": ["1", "1", "20", *POSITIONS, "500", "array[2]::smallint[]"],
        "next_due": [*POSITIONS, "8"],
        "left_behind": [*POSITIONS, "1", "100"],
        "shut_rows_ahead": [*POSITIONS, ids(3), "array[500]"],
        "payload_of": ["1", "1", "1"],
        "finish_if_running": [*map(text, guards[:3]), "1", documents],
        "finish_if_free": [*guards, documents],
        "fail_if_running": [*guards, filled("null::interval", count), words, words, flags],
        "bury_if_running": [*guards, words, words, words, words, flags],
        "release_if_running": [*guards, filled("null::interval", count), flags, flags],
        "park_if_running": guards,
        "cancel_if_running": [*guards, "5::smallint", "'JOB_DELETED'"],
        "still_running": guards,
        "ended_claims": guards,
        "is_awaited": ["1", "1", "1", "1"],
        "lock_instance": ["1"],
        "keep_late": [guards[0], filled("1::bigint", count), *guards[1:], times, words, words, words],
        "running_by_fence": ["1", "1", "1"],
        "renew_node": ["1", "interval '1 s'", "'{}'::json", "false"],
        "coming_schedules": ["now()", "1000", "array[3]::bigint[]", "32"],
        "enqueue": ["'j1'", "1", "32", times, documents, "false", "'{}'"],
        "enqueue_one": ["'j1'", "1", "32", "now()", "null", "false"],
        "enqueue_many": ["'j1'", "1", "32", "now()", documents, "false", "'{}'"],
        "live_of_keys": ["2", keys],
        "past_of_keys": ["2", keys],
        "move_planned": [guards[0], times, documents, numbers, times],
        "supersede_running": [guards[0], times],
        "cancel_live": [guards[0], "5::smallint", "true", "'USER'"],
        "take_back": [guards[0]],
        "inherit": [guards[0], numbers, numbers],
        "instance_by_id": ["1", "1"],
        "ended": ["1", guards[0]],
    }


LARGE = ("instance_live", "instance_history", "attempt", "event", "job", "schedule", "payload_digest")


def faults(plan: dict[str, Any]) -> Iterator[str]:
    """Yield the parts of a plan that grow with a table: scans of a large one without a condition on its index."""
    relation = plan.get("Relation Name", "")
    is_large = relation.rsplit("_2", 1)[0] in LARGE or relation in LARGE
    if is_large and plan["Node Type"].endswith("Scan") and not {"Index Cond", "Recheck Cond"} & plan.keys():
        yield f"{plan['Node Type']} of {relation}"
    for child in plan.get("Plans", ()):
        yield from faults(child)


async def plan_of(connection: Platform, statement: str, given: list[str]) -> dict[str, Any]:
    """Return the plan by which the connection would execute the prepared statement now."""
    await connection.execute(f"prepare asked as {sql(statement)}")
    try:
        return json.loads(await connection.fetchval(f"explain (format json) execute asked({', '.join(given)})"))[0][
            "Plan"
        ]
    finally:
        await connection.execute("deallocate asked")


@asynccontextmanager
async def line(url: str) -> AsyncGenerator[Platform]:
    """A connection as the loops have it."""
    connection = await connect(url, "test")
    try:
        yield connection
    finally:
        await connection.close()


@pytest.fixture(scope="module", params=STATISTICS)
def measured(postgres: EmbeddedPostgres, request: pytest.FixtureRequest) -> Iterator[str]:
    """A database in which the statistics were taken at some time, or never. Tests change nothing in it."""

    async def prepare(url: str) -> None:
        async with line(url) as connection:
            await connection.execute("set enable_seqscan = on")
            for step in STATISTICS[request.param]:
                await connection.execute(step)

    with fresh_database(postgres) as url:
        asyncio.run(prepare(url))
        yield url


async def test_C18_the_statements_of_the_loops_find_their_rows_by_an_index_under_any_statistics(measured: str):
    found: dict[str, list[str]] = {}
    async with line(measured) as connection:
        for mode in (None, Plans.FRESH, Plans.CHOSEN):
            if mode is not None:
                await connection.execute(f"set plan_cache_mode = {mode}")
            for count in (1, 2_000):
                for statement, given in arguments(count).items():
                    if grave := list(faults(await plan_of(connection, statement, given))):
                        found[f"{statement} of {count}, {mode or 'as it is'}"] = grave
    assert found == {}


async def test_C18_settling_statements_join_their_rows_by_primary_key_under_any_statistics(measured: str):
    """By a nested loop whose inner side is one look-up: neither a hash nor a filter over the pairs."""
    async with line(measured) as connection:
        for statement in ("finish_if_running", "finish_if_free", "fail_if_running", "release_if_running"):
            plan = list(nodes_of(await plan_of(connection, statement, arguments(2_000)[statement])))
            assert not {"Hash Join", "Merge Join"} & {node["Node Type"] for node in plan}
            assert [node for node in plan if node["Node Type"] == "Nested Loop"]
            assert not [node["Join Filter"] for node in plan if "Join Filter" in node]


def nodes_of(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", ()):
        yield from nodes_of(child)


async def planned(connection: Any) -> dict[str, tuple[int, int]]:
    """Count the executions of each prepared statement of the connection: `(generic, custom)`.

    A generic plan is kept; a custom one is made for the call.
    """
    found = await connection.fetch("select statement, generic_plans, custom_plans from pg_prepared_statements")
    return {row[0].split(" ")[1]: (row[1], row[2]) for row in found if row[0].startswith("/* ")}


async def test_C18_a_loops_connection_keeps_the_plans_of_claims_and_settlements_from_the_first_call_on(url: str):
    async with line(url) as connection, make.scope(url) as scope:
        await make.job(scope)
        await make.many(scope, 3)
        node = await make.node(connection)
        claimed = await make.claim(connection, node)
        done = await claims.finish_if_running(connection, node, [(one.held, Complete()) for one in claimed])

        told = await planned(connection)
    assert len(done) == 3
    assert told["claim_due"] == (1, 0)
    assert told["finish_if_running"] == (1, 0)


async def mode_of(pool: Pool, plans: Plans) -> tuple[str, str]:
    async with acquire(pool, plans) as connection:
        return await connection.fetchval("show plan_cache_mode"), await connection.fetchval("show enable_seqscan")


async def test_C18_a_pooled_connection_plans_as_its_user_asks_and_not_as_the_one_before(url: str):
    async with make.scope(url, 1) as scope:
        pool = make.platform(scope)
        assert await mode_of(pool, Plans.FRESH) == ("force_custom_plan", "on")
        assert await mode_of(pool, Plans.KEPT) == ("force_generic_plan", "off")
        assert await mode_of(pool, Plans.FRESH) == ("force_custom_plan", "on")
        async with transaction(pool) as connection:
            assert await connection.fetchval("show plan_cache_mode") == Plans.KEPT
        assert await mode_of(pool, Plans.KEPT) == ("force_generic_plan", "off")


async def test_C18_a_connection_that_was_cut_off_in_a_transaction_plans_as_it_is_asked(url: str):
    async with make.scope(url, 1) as scope:
        pool = make.platform(scope)
        async with acquire(pool, Plans.KEPT) as connection:
            await connection.execute("begin")
        assert await mode_of(pool, Plans.KEPT) == ("force_generic_plan", "off")
        assert await mode_of(pool, Plans.FRESH) == ("force_custom_plan", "on")


async def test_C18_puts_keep_their_plans_between_requests_and_lists_do_not(url: str):
    async with make.scope(url, 1) as scope:
        await make.job(scope)
        for number in range(3):
            await make.put(scope, f"k{number}")
        async with scope.read() as connection:
            told = await planned(connection)
    for statement in ("live_of_keys", "insert_keyed", "past_of_keys", "live_by_ids"):
        assert told[statement] == (3, 0), statement
