"""Hot questions are answered by the intended index, however the tables grow (C18).

The tables are filled by SQL and analysed; planner settings are PostgreSQL's own, not the ones a loop's connection has.
"""

import asyncio
import json
import os
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import pytest
from databases import superuser
from sizes import IS_LONG

from horai.core.limits import LISTED_PAYLOAD_BYTES, PAGE_BYTES
from horai.core.states import FINAL, LIVE, State
from horai.db import claims
from horai.db.catalog import sql
from horai.db.claims import ClaimedBy, Position
from horai.db.instance_lists import LOOKED_AT, PAYLOADS_LOOKED_AT
from horai.db.pool import Dedicated
from horai.embedded import EmbeddedPostgres
from horai.embedded.admin import admin_url

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
END = datetime(9999, 1, 1, tzinfo=UTC)

FUTURE, FINISHED = (950_000, 10_000_000) if IS_LONG else (100_000, 100_000)
"""Instances of the next days beside the 50,000 around now, and instances in the history."""
FIRST_FINISHED = 2_000_000 if IS_LONG else 1_000_000
FILL = f"""
insert into horai.node (name, host, pid, version, lease_until) values ('n', 'h', 1, 'v', 'infinity');
insert into horai.lane (tenant_id, queue, priority, handler) select 1, 'q' || n, 2, '' from generate_series(1, 20) n;
update horai.queue set max_concurrency = 5000 where name in ('q18', 'q19', 'q20');
insert into horai.queue_slot (tenant_id, queue_id, n, version)
select tenant_id, id, n, 0 from horai.queue cross join generate_series(1, 5000) n where max_concurrency = 5000;
insert into horai.schedule (identity, spec, fire_time)
select 's' || n, '{{}}', case when n % 10 > 0 then now() + n * interval '1 second' end from generate_series(1, 20000) n;
insert into horai.job (tenant_id, name, lane_id, definition, schedule_id)
select 1, 'j' || n, 1, '{{}}', n from generate_series(1, 1000) n;
insert into horai.instance_live (id, job_id, due, fire_time, execute_time, born_for, slot, tenant_id, lane, shard, key)
select n, 1 + n % 1000, at, at, at, at, -n, 1, 1 + n % 20, n % 32, 'k' || n
from (select n, now() + (n - 5000) * interval '1 second' as at from generate_series(1, 50000) n) r;
insert into horai.instance_live (id, job_id, due, fire_time, execute_time, born_for, slot, tenant_id, lane, shard)
select 100000 + n, 1, at, at, at, at, -100000 - n, 1, 3, 3
from (select n, now() + interval '1 hour' + n * interval '1 second' as at from generate_series(1, {FUTURE}) n) r;
insert into horai.instance_history (id, job_id, fire_time, execute_time, born_for, slot, created_at, finished_at, fence,
    tenant_id, lane, attempt, retry_count, events, state, key)
select {FIRST_FINISHED} + n, 1 + n % 1000, at, at, at, at_slot, now(), now() + (n % 3) * interval '1 day', 1, 1, 1, 1, 0, 0, 2, 'h' || n
from (select n, now() - n * interval '1 second' as at, -1000000 - n as at_slot from generate_series(1, {FINISHED}) n) r;
"""


@pytest.fixture(scope="module")
def grown(postgres: EmbeddedPostgres) -> Iterator[str]:
    """A database with 150,000 live and 100,000 finished instances; in the long form with 1 and 10 million."""
    name = f"t{os.urandom(6).hex()}"
    admin_of_server = admin_url(postgres.url)
    url = admin_of_server.replace("/horai?", f"/{name}?")

    async def fill() -> None:
        admin = await asyncpg.connect(admin_of_server)
        await admin.execute(f"create database {name} template horai_template")
        await admin.close()
        connection = await asyncpg.connect(url)
        await connection.execute(FILL, timeout=1800)
        await connection.execute("select horai.fold_history('-infinity', 'infinity', 0, 1000000)")
        await connection.execute("vacuum analyze")
        await connection.close()

    async def drop() -> None:
        admin = await asyncpg.connect(admin_of_server)
        await admin.execute(f"drop database {name} with (force)")
        await admin.close()

    asyncio.run(fill())
    yield url
    asyncio.run(drop())


@asynccontextmanager
async def plain(url: str) -> AsyncGenerator[Dedicated]:
    """A connection with PostgreSQL's own planner settings, whose changes are undone."""
    connection: Dedicated = await asyncpg.connect(url)
    transaction = connection.transaction()
    await transaction.start()
    try:
        yield connection
    finally:
        await transaction.rollback()
        await connection.close()


async def explain(connection: Dedicated, statement: str, *arguments: Any, options: str = "") -> list[dict[str, Any]]:
    """The nodes of a statement's plan, planned for these arguments."""
    answer = await connection.fetchval(f"explain (format json{options}) {sql(statement)}", *arguments)
    return list(nodes_of(json.loads(answer)[0]["Plan"]))


async def explain_generic(connection: Dedicated, statement: str, *literals: str) -> list[dict[str, Any]]:
    """Return the nodes of the plan that a prepared statement keeps for any arguments."""
    await connection.execute("set local plan_cache_mode = force_generic_plan")
    await connection.execute(f"prepare generic as {sql(statement)}")
    answer = await connection.fetchval(f"explain (format json) execute generic({', '.join(literals)})")
    await connection.execute("deallocate generic")
    return list(nodes_of(json.loads(answer)[0]["Plan"]))


def nodes_of(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", ()):
        yield from nodes_of(child)


def indexes(plan: list[dict[str, Any]]) -> set[str]:
    return {node["Index Name"] for node in plan if "Index Name" in node}


def scanned(plan: list[dict[str, Any]]) -> set[str]:
    """Tables read from end to end; those that are always tiny do not count."""
    tiny = {"node", "lane", "queue", "tenant", "idempotency_load", "instance_history_default"}
    return {node["Relation Name"] for node in plan if node["Node Type"].endswith("Seq Scan")} - tiny


POSITIONS: tuple[Any, ...] = (list(range(32)), [3] * 32, [EPOCH] * 32, [-1] * 32)
POSITION_LITERALS = ["array[3]::smallint[]", "array[3]", "array['1970-01-01'::timestamptz]", "array[-1]::bigint[]"]
GUARDS: tuple[Any, ...] = ([1, 2], [1, 1], [1, 1], [1, 1])
GUARD_LITERALS = ["array[1,2]::bigint[]", "array[1,1]", "array[1,1]::bigint[]", "array[1,1]::bigint[]"]

NOTHING_PUT = ["array[null]::timestamptz[]", "array[null]::json[]", "array[null]::bigint[]"]
NOTHING_TRIGGERED = ["array['k4']", "array[''::bytea]", "array[null]::json[]", *["array['x']"] * 7]
RESULT_LITERAL = "array[null,null]::json[]"

HOT: dict[str, tuple[tuple[Any, ...], list[str], str]] = {
    "claim_due": ((1, 1, *POSITIONS, [500] * 32), ["1", "1", *POSITION_LITERALS, "array[500]"], "instance_live_lane"),
    "claim_keyed": ((1, 1, *POSITIONS, [500] * 32), ["1", "1", *POSITION_LITERALS, "array[500]"], "instance_live_lane"),
    "parked_keys": ((0, "", 100), ["0", "''", "100"], "instance_live_key_parked"),
    "holders_of_key": ((1, "a", 10), ["1", "'a'", "10"], "instance_live_keyed"),
    "claim_limited": (
        (1, 1, 20, *POSITIONS, 500, [2] * 32),
        ["1", "1", "20", *POSITION_LITERALS, "500", "array[2]::smallint[]"],
        "instance_live_lane queue_slot_free",
    ),
    "loads_of_queues": (([3, 4], 32, 2000), ["array[3,4]", "32", "2000"], "instance_live_lane"),
    "next_due": ((*POSITIONS, 8), [*POSITION_LITERALS, "8"], "instance_live_lane"),
    "left_behind": ((*POSITIONS, 1, 100), [*POSITION_LITERALS, "1", "100"], "instance_live_lane"),
    "payload_of": ((1, 1, 1), ["1", "1", "1"], "instance_live_pkey"),
    "finish_if_free": ((*GUARDS, [None, None]), [*GUARD_LITERALS, RESULT_LITERAL], "instance_live_pkey"),
    "still_running": (GUARDS, GUARD_LITERALS, "instance_live_pkey"),
    "ended_claims": (GUARDS, GUARD_LITERALS, "instance_live_pkey"),
    "is_awaited": ((1, 1, 1, 1), ["1", "1", "1", "1"], "instance_live_pkey"),
    "coming_schedules": (
        (datetime.now(UTC), 1000, list(range(32)), 32),
        ["now()", "1000", "array[3]::bigint[]", "32"],
        "schedule_coming",
    ),
    "insert_fresh": (
        (1, None, "job-5", 32, ["k4"], [None], [None], [None], "20ms"),
        ["1", "null", "'job-5'", "32", "array['k4']", *NOTHING_PUT, "'20ms'"],
        "job_pkey job_name",
    ),
    "insert_triggered": (
        (1, None, "job-5", 32, "20ms", ["k4"], [b""], [None], *[["x"]] * 7, "x", "executor", 9, 9),
        ["1", "null", "'job-5'", "32", "'20ms'", *NOTHING_TRIGGERED, "'x'", "'executor'", "9", "9"],
        "job_pkey job_name",
    ),
    "live_of_keys": ((5, ["k4"]), ["5", "array['k4']"], "instance_live_key"),
}


@pytest.mark.parametrize("statement", HOT)
async def test_C18_a_loops_question_is_answered_by_its_index(grown: str, statement: str):
    arguments, literals, wanted = HOT[statement]
    async with plain(grown) as connection:
        for plan in (
            await explain(connection, statement, *arguments),
            await explain_generic(connection, statement, *literals),
        ):
            assert set(wanted.split()) <= indexes(plan)
            assert not scanned(plan)


@pytest.mark.parametrize("rows", [1, 1000])
async def test_C18_a_finish_deletes_by_the_primary_key_row_by_row(grown: str, rows: int):
    """The plan goes from the reports to the rows, in their order.

    A transaction that locks many rows locks them by id, and finds each by its key.
    """
    ids, ones = "{" + ",".join(map(str, range(1, rows + 1))) + "}", "{" + ",".join(["1"] * rows) + "}"
    async with plain(grown) as connection:
        for plan in (
            await explain(connection, "finish_if_running", ids, ones, ones, 1, []),
            await explain_generic(connection, "finish_if_running", f"'{ids}'", f"'{ones}'", f"'{ones}'", "1", "'{}'"),
        ):
            assert "instance_live_pkey" in indexes(plan)
            assert not scanned(plan)
            assert {node["Node Type"] for node in plan} & {"Hash Join", "Merge Join", "Sort"} == set()
            assert "Nested Loop" in {node["Node Type"] for node in plan}


READ = """
select relname, seq_scan, idx_scan, idx_tup_fetch from pg_stat_xact_user_tables
where schemaname = 'horai' and (relname ~ '^instance_history_[0-9]' or relname = 'key_past')
"""
FEW = 5
"""Rows of history that one key may have here."""


async def test_C18_the_history_of_a_key_is_found_by_an_index_on_the_key(grown: str):
    async with plain(grown) as connection:
        found = await connection.fetch(sql("past_of_keys"), 5, ["h4"])
        read = await connection.fetch(READ)

    assert [row["key"] for row in found] == ["h4"]
    assert [row["relname"] for row in read if row["seq_scan"]] == []
    assert sum(row["idx_scan"] > 0 for row in read) >= 3, "the days that are not folded, and the compact table"
    assert sum(row["idx_tup_fetch"] for row in read) <= FEW, "an index on the job alone would fetch all of its rows"


def page(job: int | None, states: frozenset[State], *, rare: bool = False, **given: Any) -> tuple[Any, ...]:
    key, queue, tag, code = (given.get(name) for name in ("key", "queue", "tag", "code"))
    prefix, looked_at, ids = given.get("prefix"), given.get("looked_at", LOOKED_AT), given.get("ids")
    behind = None if prefix is None else prefix + "\U0010ffff"
    member = (["order", "id"], "17") if "looked_at" in given else (None, None)
    wanted = ([int(state) for state in states], job, key, None, None, queue, tag, code)
    begun = (states == frozenset({State.RUNNING}),) if states <= LIVE else ()
    start = (EPOCH, 0) if given.get("upwards") else (END, 2**62)
    sizes = (LISTED_PAYLOAD_BYTES, PAGE_BYTES)
    return (1, *start, 50, *wanted, looked_at, prefix, behind, rare, *member, ids, *begun, *sizes)


LISTS: dict[tuple[str, int | None], str] = {
    ("list_live", None): "instance_live_tenant",
    ("list_live", 7): "instance_live_slot",
    ("list_history", None): "tenant_id_fire_time_id_idx",
    ("list_history", 7): "job_id_fire_time_id_idx",
    ("list_live_upwards", None): "instance_live_tenant",
    ("list_live_upwards", 7): "instance_live_slot",
    ("list_history_upwards", None): "tenant_id_fire_time_id_idx",
    ("list_history_upwards", 7): "job_id_fire_time_id_idx",
}


@pytest.mark.parametrize(("statement", "job"), LISTS)
async def test_C18_a_page_of_instances_is_read_from_an_index_and_not_further(
    grown: str, statement: str, job: int | None
):
    async with plain(grown) as connection:
        states = LIVE if "live" in statement else FINAL
        arguments = page(job, states, upwards=statement.endswith("upwards"))
        plan = await explain(connection, statement, *arguments, options=", analyze, buffers")

        assert not scanned(plan)
        assert [name for name in indexes(plan) if LISTS[statement, job] in name], indexes(plan)
        assert plan[0]["Shared Hit Blocks"] + plan[0]["Shared Read Blocks"] < 2_000


RARE: dict[str, tuple[str, tuple[Any, ...], int]] = {
    "dead": ("list_history", page(None, frozenset({State.DEAD}), rare=True), 200),
    "dead of a job": ("list_history", page(7, frozenset({State.DEAD}), rare=True), 300),
    "retried": ("list_live", page(None, frozenset({State.FAIL}), rare=True), 200),
    "key of a job": ("list_history", page(5, FINAL, key="h4"), 10),
    "prefix in a job": ("list_history", page(5, FINAL, prefix="h4000"), 400),
    "key of any job": ("list_history", page(None, FINAL, key="h4"), LOOKED_AT),
    "prefix in any job": ("list_live", page(None, LIVE, prefix="k49"), LOOKED_AT),
    "queue": ("list_history", page(None, FINAL, queue="q7"), LOOKED_AT),
    "tag": ("list_live", page(None, LIVE, tag="nobody"), LOOKED_AT),
    "error": ("list_history", page(None, FINAL, code="HTTP_400", rare=True), 200),
    "running": ("list_live", page(None, frozenset({State.RUNNING})), 6_000),
    "payload": ("list_history", page(None, FINAL, looked_at=PAYLOADS_LOOKED_AT), PAYLOADS_LOOKED_AT),
    "payload, upwards": ("list_live_upwards", page(None, LIVE, looked_at=PAYLOADS_LOOKED_AT, upwards=True), 2_000),
    "dead, upwards": ("list_history_upwards", page(None, frozenset({State.DEAD}), rare=True, upwards=True), 200),
    "ids of live ones": ("list_live", page(None, LIVE, ids=list(range(1, 501))), 500),
    "ids of past ones": ("list_history", page(None, FINAL, ids=list(range(1, 501))), 500),
}
"""Filters of a list, and the number of rows that one scan may meet for a page of fifty."""


@pytest.mark.parametrize("name", RARE)
async def test_C18_a_list_of_what_is_rare_looks_at_a_bounded_number_of_rows(grown: str, name: str):
    statement, arguments, bound = RARE[name]
    async with plain(grown) as connection:
        plan = await explain(connection, statement, *arguments, options=", analyze")

        assert not scanned(plan) - {"job"}
        instances = [node for node in plan if str(node.get("Relation Name", "")).startswith("instance_")]
        assert instances
        assert sum(_met(node) for node in instances) <= bound + 10


@pytest.mark.parametrize(
    "statement", ["end_of_live", "end_of_history", "end_of_live_upwards", "end_of_history_upwards"]
)
async def test_C18_the_end_of_what_was_looked_at_is_found_by_an_index(grown: str, statement: str):
    async with plain(grown) as connection:
        begun = (False,) if "live" in statement else ()
        start = (EPOCH, 0) if statement.endswith("upwards") else (END, 2**62)
        arguments = (1, *start, LOOKED_AT, None, None, None, False, None, None, None, *begun)
        plan = await explain(connection, statement, *arguments, options=", analyze")

        assert not scanned(plan)
        assert plan[0]["Actual Rows"] == 1


COUNTS: dict[str, dict[int, Any]] = {
    "everything": {},
    "running": {2: [1], 3: [], 18: True},
    "dead": {2: [], 3: [4], 14: True},
    "a job": {4: 7},
    "a range of time": {6: EPOCH, 7: END},
    "a tag": {9: "absent"},
    "a queue": {8: "absent"},
    "a payload": {15: ["order", "id"], 16: "17"},
}
"""Filters of a count, by the numbers of the parameters that they set."""


@pytest.mark.parametrize("name", COUNTS)
async def test_C18_a_count_reads_a_bounded_number_of_rows_by_an_index(grown: str, name: str):
    bound = 10_001
    given: dict[int, Any] = {1: 1, 13: False, 14: False, 18: False, 19: bound, 20: bound} | COUNTS[name]
    async with plain(grown) as connection:
        arguments = [given.get(number) for number in range(1, 21)]
        plan = await explain(connection, "count_instances", *arguments, options=", analyze")

        assert not scanned(plan) - {"job"}
        instances = [node for node in plan if str(node.get("Relation Name", "")).startswith("instance_")]
        assert sum(_met(node) for node in instances) <= 2 * bound + 10
        if name in {"everything", "a range of time"}:
            assert {node["Node Type"] for node in instances} == {"Index Only Scan"}


async def test_C18_the_last_instances_of_a_page_of_jobs_are_read_by_an_index(grown: str):
    async with plain(grown) as connection:
        jobs = list(range(1, 51))
        plan = await explain(connection, "recent_of_jobs", jobs, 20, options=", analyze, buffers")

        assert not scanned(plan)
        assert plan[0]["Actual Rows"] == 50 * 20
        assert plan[0]["Shared Hit Blocks"] + plan[0]["Shared Read Blocks"] < 10_000
        for name in ("next_slots", "waiting_of_jobs"):
            following = await explain(connection, name, jobs, options=", analyze, buffers")
            assert not scanned(following) - {"job"}
            assert following[0]["Shared Hit Blocks"] + following[0]["Shared Read Blocks"] < 2_000


OVERVIEW: dict[str, tuple[tuple[Any, ...], int]] = {
    "dying_jobs": ((1, EPOCH, 10), 10_000),
    "failing_jobs": ((1, 10), 10_000),
    "late_instances": ((1, END, [1, 2], 5), 10_000),
    "paused_jobs": ((1, 5, 1_001), 5 * 1_001),
    "count_states": ((1, 10_001), 10_001),
    "take_gauges": ((EPOCH, 1_000), 3_000),
    "days_of_job": ((7, [EPOCH] * 3, [END] * 3, 20), 3 * 20),
    "search_keys": ((1, "k4999", "k4999\U0010ffff", 8), 10_100),
    "recent_of_jobs": (([1, 2, 3], 20), 3 * 2 * 20 + 10),
}
"""Queries of the overview and the search, and the number of rows of a large table that they may meet."""


@pytest.mark.parametrize("statement", OVERVIEW)
async def test_C18_the_overview_looks_at_a_bounded_number_of_rows(grown: str, statement: str):
    arguments, bound = OVERVIEW[statement]
    async with plain(grown) as connection:
        plan = await explain(connection, statement, *arguments, options=", analyze")

        large = [node for node in plan if str(node.get("Relation Name", "")).startswith(("instance_", "dead_letter"))]
        assert large or statement == "paused_jobs"
        assert sum(_met(node) for node in large) <= bound + 10


@pytest.mark.parametrize("statement", ["examples", "jobs_of_schedules"])
async def test_C18_the_jobs_of_some_schedules_are_found_by_an_index(grown: str, statement: str):
    async with plain(grown) as connection:
        plan = await explain(connection, statement, 1, list(range(1, 21)), "horai:", 3, options=", analyze")

        assert not scanned(plan), plan
        assert sum(_met(node) for node in plan if node.get("Relation Name") == "job") <= 20 * 23


def _met(node: dict[str, Any]) -> float:
    return (node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"]


async def test_C18_a_claim_does_not_read_the_rows_of_the_future(grown: str):
    """100,000 of them wait in this very lane."""
    async with plain(grown) as connection:
        plan = await explain(
            connection, "claim_due", 1, 1, [3], [3], [EPOCH], [-1], [500], options=", analyze, buffers"
        )

        (scan,) = [node for node in plan if node.get("Index Name") == "instance_live_lane"]
        assert scan["Actual Rows"] < 200
        assert scan.get("Rows Removed by Filter", 0) < 200
        assert scan["Shared Hit Blocks"] + scan["Shared Read Blocks"] < 500


async def test_C18_B3_a_claim_locks_what_it_reads_and_skips_what_is_locked(grown: str):
    async with plain(grown) as connection:
        plan = await explain(connection, "claim_due", 1, 1, *POSITIONS, [500] * 32)

        assert "LockRows" in {node["Node Type"] for node in plan}
    assert "for update skip locked" in sql("claim_due")


async def test_C18_a_cursor_spares_the_dead_entries_before_it(grown: str):
    async with plain(grown) as connection:
        now = await connection.fetchval("select clock_timestamp()")
        cursor = now - timedelta(seconds=5)
        plan = await explain(
            connection, "claim_due", 1, 1, *POSITIONS[:2], [cursor] * 32, [-1] * 32, [500] * 32, options=", analyze"
        )

        (scan,) = [node for node in plan if node.get("Index Name") == "instance_live_lane"]
        assert scan["Actual Rows"] * scan["Actual Loops"] + scan.get("Rows Removed by Filter", 0) < 100


async def test_C18_claims_are_hot_updates(grown: str):
    connection = await superuser(grown)
    before = await hot_updates(connection)

    positions = [Position(shard, 5, EPOCH, -1) for shard in range(32)]
    claimed = await claims.claim_due(connection, ClaimedBy(1, 1, datetime.now(UTC)), positions, [1000] * 32)

    after = await hot_updates(connection)
    assert len(claimed) >= 200
    assert after[0] - before[0] == len(claimed)
    assert after[1] - before[1] == len(claimed), "an index names a column that a claim changes, or there was no room"
    await connection.close()


async def hot_updates(connection: Dedicated) -> tuple[int, int]:
    await connection.execute("select pg_stat_force_next_flush()")
    row = await connection.fetchrow(
        "select n_tup_upd, n_tup_hot_upd from pg_stat_user_tables where schemaname = 'horai' and relname = 'instance_live'"
    )
    assert row is not None
    return row["n_tup_upd"], row["n_tup_hot_upd"]


async def test_C18_no_index_of_the_hot_table_names_the_state(grown: str):
    async with plain(grown) as connection:
        defined = await connection.fetch("select indexdef from pg_indexes where tablename = 'instance_live'")

        assert len(defined) >= 4
        assert not [row["indexdef"] for row in defined if "state" in row["indexdef"]]


async def test_C18_a_slot_is_unique_by_job_fire_time_and_generation(grown: str):
    async with plain(grown) as connection:
        with pytest.raises(asyncpg.UniqueViolationError, match="instance_live_slot"):
            await connection.execute(
                "update horai.instance_live set slot = 0, fire_time = now() where id in (1000, 2000)"
            )
