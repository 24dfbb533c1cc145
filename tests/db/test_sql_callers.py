"""The SQL functions: who may call them, and which moves they declare."""

import asyncio
import re
from importlib import resources
from itertools import pairwise

import asyncpg
import make
import pytest
import rows

from horai.core.states import MOVES, State
from horai.db.pool import Platform

MIGRATION = resources.files("horai.db").joinpath("migrations/0005_sql_functions.sql").read_text("utf-8")
CLIENT = {"put_instance", "enqueue", "enqueue_many", "cancel_instance"}
"""Those of the first migration; CALLS has the later ones, too."""
DEFINERS = {"put_json", "enqueue_json", "enqueue_many_json", "cancel_instance"}
OF_CALLS = {"enqueue_calls_json", "set_concurrency_keys", "set_call_options"}
OF_STEPS = {"signal_json", "record_step", "put_keeping_steps_json"}
"""Those of durable steps, which have tests of their own."""
OF_PARTITIONS = {
    "make_partitions",
    "make_audit_months",
    "drop_audit_month",
    "watch_history_day",
    "lock_history_day",
    "drop_history_day",
    "adopt_strays",
}
"""They create, change and drop tables of the owner, named after a date. Only nodes may call them."""
OF_ENTITIES = {"add_entity", "add_entities", "remove_entity", "follow_entity", "follow_call"}
"""Those of refresh jobs, which have tests of their own."""
OF_ASSETS = {"update_asset_json", "deliver_assets"}
"""A client records an update of an asset, and the trigger on updates gives it to the jobs that wait for the asset."""
OF_COMPOSITIONS = {"start_composition"}
"""A client starts a composition, once for each key; tests/sdk/test_composition_keys.py."""
OF_OUTBOX = {"open_outbox", "summarize_events"}
"""They write the cursor of the outbox for a request, and maintain indexes as their owner."""
OF_RETENTION = {"follow_definition"}
"""A request that writes a job sets its times to keep rows, and has no right to write those of its tenant."""
OF_QUOTAS = {"charge", "is_keyed", "is_dispatch_held"}
"""Requests charge the quotas of their tenant without a right to write them, engines know of keys without reading any, and a new
queue knows of a hold of the platform."""


@pytest.fixture(autouse=True)
def publish(url: str, runner: asyncio.Runner) -> None:
    """A job to add instances to."""

    async def made() -> None:
        async with make.scope(url) as scope:
            await make.job(scope, payload={"of": "the job"})

    runner.run(made())


# Who may call them


async def become(connection: Platform, *, granted: bool) -> str:
    """A role of its own, to the end of the transaction that the caller holds open."""
    role = f"client_{await connection.fetchval('select pg_backend_pid()')}"
    await connection.execute(f"create role {role}")
    if granted:
        await connection.execute("select horai.grant_client($1)", role)
    await connection.execute(f"set local role {role}")
    return role


CALLS = [
    "select * from horai.put_instance('publish', 'k', now() + interval '1 hour', '{\"n\": 1}', 3)",
    "select * from horai.put_instance('publish', 'k')",
    "select * from horai.enqueue('publish', '{}')",
    "select * from horai.enqueue_many('publish', array['1', '2']::json[])",
    "select * from horai.cancel_instance('publish', 'k')",
    "select * from horai.enqueue_unique('publish', '{\"n\": 1}', interval '1 h')",
    "select * from horai.enqueue_keyed('publish', '{}', 'customer-7')",
]


async def test_a_granted_role_may_call_them_and_read_nothing(connection: Platform):
    transaction = connection.transaction()
    await transaction.start()
    role = await become(connection, granted=True)
    for call in CALLS:
        assert await connection.fetch(call)

    await connection.execute("reset role")
    readable = await connection.fetch(
        "select relname from pg_class where relnamespace = 'horai'::regnamespace and relkind in ('r', 'p', 'v', 'S')"
        " and case relkind when 'S' then has_sequence_privilege($1, oid, 'usage, select, update')"
        " else has_table_privilege($1, oid, 'select, insert, update, delete, truncate, references, trigger') end",
        role,
    )
    assert readable == []
    ours = re.findall(r"create function horai\.(\w+)", MIGRATION)
    callable_ = await connection.fetch(
        "select proname from pg_proc where pronamespace = 'horai'::regnamespace and proname = any ($1)"
        " and has_function_privilege($2, oid, 'execute')",
        ours,
        role,
    )
    assert {row["proname"] for row in callable_} == CLIENT
    await transaction.rollback()


async def test_a_role_that_was_granted_nothing_may_call_nothing(connection: Platform):
    for call in [*CALLS, "select horai.grant_client('public')"]:
        transaction = connection.transaction()
        await transaction.start()
        await become(connection, granted=False)
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await connection.fetch(call)
        await transaction.rollback()


async def test_only_they_have_the_rights_of_their_owner_and_all_of_them_a_pinned_path(connection: Platform):
    definers = await connection.fetch(
        "select proname, proconfig from pg_proc where pronamespace = 'horai'::regnamespace and prosecdef"
    )

    assert (
        {row["proname"] for row in definers}
        == DEFINERS
        | OF_ENTITIES
        | OF_PARTITIONS
        | OF_QUOTAS
        | OF_CALLS
        | OF_STEPS
        | OF_OUTBOX
        | OF_ASSETS
        | OF_RETENTION
        | OF_COMPOSITIONS
    )
    assert all("search_path=pg_catalog, pg_temp" in row["proconfig"] for row in definers)


HOSTILE = """
create function pg_temp.spy(value pg_catalog.text) returns boolean language plpgsql as
    $$ begin raise exception 'ran as %', current_user; end $$;
create domain pg_temp.text as pg_catalog.text check (pg_temp.spy(value));
create domain pg_temp.json as pg_catalog.json check (pg_temp.spy(value::pg_catalog.text));
create domain pg_temp.timestamptz as pg_catalog.timestamptz check (pg_temp.spy('x'));
create domain pg_temp.record as pg_catalog.text check (pg_temp.spy('x'));
create temporary table job (id bigint, tenant_id integer);
create temporary table instance_live (id bigint);
create function pg_temp.format(pg_catalog.text, variadic pg_catalog.text[]) returns pg_catalog.text language sql as $$ select 'evil' $$;
set local search_path = pg_temp, pg_catalog;
set local timezone = 'Asia/Shanghai';
set local datestyle = 'SQL, DMY';
"""


async def test_nothing_of_the_callers_changes_what_they_mean(url: str, connection: Platform):
    """A role that may only call them has made types, tables and functions of the names they use, in its own session."""
    async with rows.connections(url, 1) as (hostile,):
        transaction = hostile.transaction()
        await transaction.start()
        await become(hostile, granted=True)
        await hostile.execute(HOSTILE)
        if int(await connection.fetchval("show server_version_num")) < 190000:  # later ones know no other
            await hostile.execute("set local standard_conforming_strings = off; set local escape_string_warning = off")
        for call in CALLS:
            assert await hostile.fetch(call)
        await hostile.execute("select horai.enqueue('publish', '[1e100, \"e999 [[\", \"u\"]')")
        await hostile.execute("reset role; set local search_path = pg_catalog")
        told = await hostile.fetch(
            "select kind, data ->> 'executeTime' as at from horai.event where seq > 0 order by id"
        )
        await transaction.rollback()

    assert [row["kind"] for row in told] == ["INSTANCE_RESCHEDULED", "INSTANCE_CANCELLED"]
    assert told[0]["at"].endswith("+00:00"), "what stays is said in UTC"


async def test_a_plan_that_was_made_while_the_tables_were_small_still_serves_when_they_are_not(connection: Platform):
    """A caller's session keeps the plans of its first calls: none may read a whole table."""
    await connection.execute("set enable_seqscan = on")  # as callers have it
    await connection.fetch("select horai.enqueue('publish')")
    await connection.execute("vacuum analyze")  # now the planner knows how small they are
    async with connection.transaction():
        for _ in range(8):  # from the sixth on, one plan serves all
            for call in CALLS:
                await connection.fetch(call)
        scanned = await connection.fetch(
            "select relname from pg_class where relnamespace = 'horai'::regnamespace and relkind = 'r'"
            " and pg_stat_get_xact_numscans(oid) > 0"
        )

    assert scanned == []


# What they declare


def test_C56_they_make_no_move_that_the_table_does_not_have():
    declared = re.findall(r"^-- moves: (.+)$", MIGRATION, re.MULTILINE)
    moves = {
        (State[old.strip()], State[new.strip()])
        for line in declared
        for part in line.split(",")
        for before, after in [part.split("->")]
        for old in before.split("|")
        for new in after.split("|")
        if old.strip()
    }

    assert moves
    assert moves <= MOVES


def test_each_function_that_writes_instances_says_which_moves_it_makes():
    bodies = re.split(r"(?=^create function )", MIGRATION, flags=re.MULTILINE)
    for comment, body in pairwise(bodies):
        writes = re.search(
            r"insert into horai\.instance_|update horai\.instance_live waiting", body.partition("\n$$;")[0]
        )
        said = "-- moves:" in comment.rpartition("$$;\n")[2]
        assert bool(writes) == said, body.splitlines()[0]
