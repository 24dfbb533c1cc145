"""A role with nothing but `grant_client` gains no right from the functions that have the rights of their owner."""

import asyncio
import re
from typing import Any

import asyncpg
import clients
import entities as given
import make
import pytest

from horai.db.pool import Dedicated, Platform

SECRET = "select secret from horai.signing_secret"

TAKE = """
create function pg_temp.take(value {kind}) returns {result} language plpgsql as $$
begin
    begin
        execute 'alter role {role} superuser';
    exception when others then null;
    end;
    begin
        perform secret from horai.signing_secret;
        create table horai.taken (by text);
    exception when others then null;
    end;
    return {answer};
end $$;
"""
"""Uses every right it is run with, and hides that it failed."""

ENUM = "create type pg_temp.lure as enum ('x');"
LURES = {
    "cast to json": ENUM
    + TAKE.replace("{kind}", "pg_temp.lure").replace("{result}", "json").replace("{answer}", "'1'::json")
    + "create cast (pg_temp.lure as json) with function pg_temp.take(pg_temp.lure);",
    "implicit cast to json": ENUM
    + TAKE.replace("{kind}", "pg_temp.lure").replace("{result}", "json").replace("{answer}", "'1'::json")
    + "create cast (pg_temp.lure as json) with function pg_temp.take(pg_temp.lure) as implicit;",
    "cast to jsonb": ENUM
    + TAKE.replace("{kind}", "pg_temp.lure").replace("{result}", "jsonb").replace("{answer}", "'1'::jsonb")
    + "create cast (pg_temp.lure as jsonb) with function pg_temp.take(pg_temp.lure) as implicit;",
    "cast to text": ENUM
    + TAKE.replace("{kind}", "pg_temp.lure").replace("{result}", "text").replace("{answer}", "'x'")
    + "create cast (pg_temp.lure as text) with function pg_temp.take(pg_temp.lure) as implicit;",
    "domain check": TAKE.replace("{kind}", "text").replace("{result}", "boolean").replace("{answer}", "true")
    + "create domain pg_temp.lure as text check (pg_temp.take(value));",
    "composite type": "create type pg_temp.inner_lure as enum ('x');"
    + TAKE.replace("{kind}", "pg_temp.inner_lure").replace("{result}", "json").replace("{answer}", "'1'::json")
    + "create cast (pg_temp.inner_lure as json) with function pg_temp.take(pg_temp.inner_lure);"
    + "create type pg_temp.lure as (field pg_temp.inner_lure);",
    "array": "create type pg_temp.inner_lure as enum ('x');"
    + TAKE.replace("{kind}", "pg_temp.inner_lure").replace("{result}", "json").replace("{answer}", "'1'::json")
    + "create cast (pg_temp.inner_lure as json) with function pg_temp.take(pg_temp.inner_lure);"
    + "create domain pg_temp.lure as pg_temp.inner_lure[];",
    "range": "create type pg_temp.lure as range (subtype = integer);"
    + TAKE.replace("{kind}", "pg_temp.lure").replace("{result}", "json").replace("{answer}", "'1'::json")
    + "create cast (pg_temp.lure as json) with function pg_temp.take(pg_temp.lure);",
    "operators": ENUM
    + TAKE.replace("(value {kind})", "(one pg_temp.lure, other pg_temp.lure)")
    .replace("{result}", "boolean")
    .replace("{answer}", "true")
    + "create operator pg_temp.= (leftarg = pg_temp.lure, rightarg = pg_temp.lure, function = pg_temp.take);"
    + "create operator pg_temp.<> (leftarg = pg_temp.lure, rightarg = pg_temp.lure, function = pg_temp.take);",
}
VALUES = {"composite type": "row('x')", "array": "'{x}'", "range": "'[1,2)'"}

FOLLOWED = """
create temporary table bait (code text, lure pg_temp.lure);
select horai.follow_table('pg_temp.bait', 'refresh_stock', '{key}', '{{{payload}}}');
insert into bait values ('a', {value});
update bait set code = 'b';
update bait set lure = null;
update bait set lure = {value};
delete from bait;
"""
SHADOWS = """
create function pg_temp.to_jsonb(value anyelement) returns jsonb language sql as $$ select '"shadow"'::jsonb $$;
create function pg_temp.num_nulls(variadic value text[]) returns integer language sql as $$ select 0 $$;
create function pg_temp.format(pattern text, value anyelement) returns text language sql as $$ select 'shadow' $$;
create domain pg_temp.int4 as pg_catalog.text;
create temporary table job (id bigint, tenant_id integer, name text);
create temporary table tenant (id bigint, name text);
create temporary table entity (job_id bigint, key text);
"""


async def code_of(session: Dedicated, statement: str) -> str | None:
    """The SQLSTATE that a statement is refused with; None when it is not."""
    try:
        await session.execute(statement)
    except asyncpg.PostgresError as refused:
        return refused.sqlstate
    return None


async def assert_nothing_gained(owner: Platform, name: str, session: Dedicated) -> None:
    """The role is no superuser, has no right on any table of Horai, and has written none."""
    assert await owner.fetchval("select rolsuper or rolcreaterole from pg_roles where rolname = $1", name) is False
    assert await owner.fetchval("select to_regclass('horai.taken')") is None
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await session.fetch(SECRET)
    for table in ("signing_secret", "tenant", "job", "instance_live", "entity", "migration"):
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await session.execute(f"delete from horai.{table}")


@pytest.fixture(autouse=True)
def jobs_to_call(url: str, runner: asyncio.Runner) -> None:
    """A job to add instances to, and one whose entities a table holds."""

    async def made() -> None:
        async with make.scope(url) as scope:
            await make.job(scope)
            await given.refresh_job(scope)

    runner.run(made())


@pytest.mark.parametrize("lure", LURES)
@pytest.mark.parametrize("used_as", ["key", "payload", "other column"])
async def test_code_of_a_client_in_a_followed_table_gains_no_right(
    url: str, connection: Platform, lure: str, used_as: str
):
    columns = {"key": ("lure", ""), "payload": ("code", "lure"), "other column": ("code", "")}
    key, payload = columns[used_as]
    async with clients.role(connection, url) as (name, session):
        await session.execute(LURES[lure].replace("{role}", name))
        await session.execute("set search_path = pg_temp, public, pg_catalog")

        await session.execute(FOLLOWED.format(key=key, payload=payload, value=VALUES.get(lure, "'x'")))

        await assert_nothing_gained(connection, name, session)


@pytest.mark.parametrize("lure", LURES)
async def test_code_of_a_client_in_an_argument_gains_no_right(url: str, connection: Platform, lure: str):
    value = f"{VALUES.get(lure, chr(39) + 'x' + chr(39))}::pg_temp.lure"
    calls = [
        f"put_instance('publish', 'k', payload => {value})",
        f"put_instance('publish', {value})",
        f"put_json('publish', 'k', null, {value})",
        f"enqueue('publish', {value})",
        f"enqueue_many('publish', array[{value}])",
        f"add_entity('refresh_stock', 'a', {value})",
        f"follow_entity('default', 'refresh_stock', null, {value}, null)",
        f"follow_entity('default', 'refresh_stock', null, 'a', {value})",
        f"json_of({value})",
    ]
    async with clients.role(connection, url) as (name, session):
        await session.execute(LURES[lure].replace("{role}", name))
        codes = {call: await code_of(session, f"select horai.{call}") for call in calls}

        assert set(codes.values()) <= {None, "HR422", "42883", "42846", "22P02", "42501"}, codes
        assert {code for call, code in codes.items() if call.startswith("follow_entity")} <= {"42501", "42883", "42846"}
        await assert_nothing_gained(connection, name, session)


async def test_names_of_a_client_do_not_change_what_a_followed_row_means(url: str, connection: Platform):
    async with clients.role(connection, url) as (name, session):
        await session.execute(SHADOWS)
        await session.execute("create temporary table bait (code integer, lure text)")
        await session.execute("set search_path = pg_temp, public, pg_catalog")
        await session.execute("select horai.follow_table('pg_temp.bait', 'refresh_stock', 'code', array['lure'])")
        await session.execute("insert into bait values (7, 'x')")

        assert await connection.fetch("select key, payload::text from horai.entity") == [("7", '{"lure": "x"}')]
        await assert_nothing_gained(connection, name, session)


async def test_a_client_cannot_use_the_trigger_function_of_another_role(url: str, connection: Platform):
    await connection.execute("create table public.product (code text)")
    await connection.execute("select horai.follow_table('public.product', 'refresh_stock', 'code')")
    follower = await connection.fetchval(
        "select tgfoid::regproc::text from pg_trigger where tgrelid = 'public.product'::regclass"
    )
    async with clients.role(connection, url) as (name, session):
        await session.execute("create temporary table bait (code text)")
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await session.execute(f"create trigger t after insert on bait for each row execute function {follower}()")

        await assert_nothing_gained(connection, name, session)


async def test_a_superuser_that_follows_the_table_of_a_client_runs_none_of_its_code(url: str, connection: Platform):
    """Neither the import nor the trigger function, which belongs to the superuser, evaluates a cast of the client."""
    lure = LURES["cast to json"].replace("pg_temp", "mine")
    async with clients.role(connection, url) as (name, session):
        await connection.execute(f"create schema mine authorization {name}")
        await session.execute(lure.replace("{role}", name))
        await session.execute("create table mine.bait (code text, lure mine.lure)")
        await session.execute("insert into mine.bait values ('a', 'x')")

        added = await connection.fetchval(
            "select horai.follow_table('mine.bait', 'refresh_stock', 'code', array['lure'])"
        )
        await session.execute("insert into mine.bait values ('b', 'x')")

        assert added == 1
        assert await connection.fetch("select key, payload::text from horai.entity order by key") == [
            ("a", '{"lure": "x"}'),
            ("b", '{"lure": "x"}'),
        ]
        await assert_nothing_gained(connection, name, session)


async def test_a_new_owner_of_a_followed_table_does_not_get_the_rights_of_the_old_one(url: str, connection: Platform):
    lure = LURES["cast to json"].replace("pg_temp", "mine")
    await connection.execute("create table public.product (code text, warehouse integer)")
    await connection.execute("select horai.follow_table('public.product', 'refresh_stock', 'code', array['warehouse'])")
    async with clients.role(connection, url) as (name, session):
        await connection.execute(f"create schema mine authorization {name}; alter table product owner to {name}")
        await session.execute(lure.replace("{role}", name))
        await session.execute("alter table product alter warehouse type mine.lure using 'x'::mine.lure")

        with pytest.raises(asyncpg.InvalidTextRepresentationError, match='type integer: "x"'):
            await session.execute("insert into product values ('a', 'x')")

        await assert_nothing_gained(connection, name, session)


# The catalogue

TABLE_AFTER = r"from|join|insert into|(?<!do )(?<!for )update"
"""Words of SQL that a relation follows."""


async def faults(connection: Platform) -> list[str]:
    """Return the faults that open a function of schema horai, with the rights of its owner, to code of its caller."""
    found: list[str] = []
    inner = {
        row["proname"]: row["prosrc"]
        for row in await connection.fetch(
            "select proname, prosrc from pg_proc where pronamespace = 'horai'::regnamespace"
        )
    }
    definers = await connection.fetch(
        "select oid, proname, proconfig, prorettype::regtype::text as result,"
        " has_function_privilege('public', oid, 'execute') as is_public, coalesce(proallargtypes, proargtypes::oid[]) as types"
        " from pg_proc where pronamespace = 'horai'::regnamespace and prosecdef order by oid"
    )
    for row in definers:
        name = row["proname"]
        kinds = await connection.fetch(
            "with recursive kind(oid) as (select unnest($1::oid[])"
            " union select unnest(array[typbasetype, typelem]) from kind join pg_type using (oid))"
            " select oid::regtype::text as name from kind join pg_type using (oid)"
            " where typnamespace not in ('pg_catalog'::regnamespace, 'horai'::regnamespace) or typtype = 'p'",
            [*row["types"], await connection.fetchval("select prorettype from pg_proc where oid = $1", row["oid"])],
        )
        found += [f"{name} takes or returns {kind['name']}" for kind in kinds if kind["name"] != "void"]
        if row["is_public"]:
            found.append(f"{name} is granted to public")
        if "search_path=pg_catalog, pg_temp" not in (row["proconfig"] or []):
            found.append(f"{name} has no pinned search_path")
        for called in closure(name, inner):
            found += [
                f"{called}, called by {name}, {fault}" for fault in await faults_of_text(connection, inner[called])
            ]
    return found


def closure(name: str, texts: dict[str, str]) -> set[str]:
    """The function and all functions of schema horai that it calls, at any depth."""
    reached, waiting = set[str](), {name}
    while waiting:
        reached.add(called := waiting.pop())
        waiting |= {each for each in re.findall(r"horai\.(\w+)\s*\(", texts[called]) if each in texts} - reached
    return reached


async def faults_of_text(connection: Platform, text: str) -> list[str]:
    """Dynamic SQL, relations outside schema horai, and casts to or variables of a type that is neither built in nor ours."""
    text = re.sub(r"--[^\n]*", "", text)
    found = ["runs dynamic SQL"] if re.search(r"\bexecute\b", text) else []
    found += ["reads the row of a trigger"] if re.search(r"\b(new|old)\.|to_jsonb?\((new|old)\b", text) else []
    named = {"given", "kept", "fresh", "born", "bound", "set", "lateral"}  # of `with` clauses, and keywords
    plain = re.sub(r"extract\([^)]*\)|\bdistinct from\b", "", text)
    relations = re.findall(rf"\b(?:{TABLE_AFTER})\s+([a-z_]+(?:\.[a-z_]+)?)(?![a-z_.(])", plain)
    found += [f"names the relation {each}" for each in relations if not each.startswith("horai.") and each not in named]
    declared = "".join(re.findall(r"\bdeclare\b(.*?)\bbegin\b", text, re.DOTALL))
    kinds = {kind for _, kind in re.findall(r"^\s*(\w+) ([a-z_.]+(?:\[\])?)", declared, re.MULTILINE)}
    kinds |= set(re.findall(r"::([a-z_.]+(?:\[\])?)", text))
    for kind in sorted(kinds - {"record"}):
        home: Any = await connection.fetchval(
            "select typnamespace::regnamespace::text from pg_type where oid = to_regtype($1)", kind
        )
        if home not in ("pg_catalog", "horai"):
            found.append(f"uses the type {kind}")
    return found


async def test_no_function_with_the_rights_of_its_owner_can_touch_a_value_of_a_type_of_the_caller(
    connection: Platform,
):
    await connection.execute("set search_path = pg_catalog")

    assert [fault for fault in await faults(connection) if fault not in OF_PARTITIONS] == []


OF_PARTITIONS = {
    f"{name}, called by {name}, {fault}"
    for name, fault in (
        ("make_partitions", "runs dynamic SQL"),
        ("make_audit_months", "runs dynamic SQL"),
        ("drop_audit_month", "runs dynamic SQL"),
        ("watch_history_day", "runs dynamic SQL"),
        ("drop_history_day", "runs dynamic SQL"),
        ("lock_history_day", "runs dynamic SQL"),
        ("adopt_strays", "runs dynamic SQL"),
    )
} | {
    "deliver_assets takes or returns trigger",  # it reads the new rows of our table, and no role may call it
    "refuse_audit_change, called by make_audit_months, reads the row of a trigger",
    "lock_history_day, called by drop_history_day, runs dynamic SQL",
    "fold_late_instance, called by watch_history_day, reads the row of a trigger",
    "fold_late_instance, called by drop_history_day, reads the row of a trigger",
    "fold_late_instance, called by adopt_strays, reads the row of a trigger",
}
"""The functions that create and drop partitions build their names from a date; some of them create a trigger."""


async def test_only_nodes_may_call_the_functions_that_create_and_drop_tables_of_the_owner(connection: Platform):
    rows = await connection.fetch(
        "select proname, proargtypes::regtype[]::text[] as types, array(select grantee::regrole::text from aclexplode(proacl)"
        " where grantee <> proowner) as granted from pg_proc where pronamespace = 'horai'::regnamespace"
        " and proname in ('make_partitions', 'make_audit_months', 'drop_audit_month')"
    )

    assert len(rows) == 3
    for row in rows:
        assert set(row["types"]) <= {"date", "integer"}, row["proname"]
        assert row["granted"] == ["horai_engine"], row["proname"]


PINNED = "security definer set search_path = pg_catalog, pg_temp"


@pytest.mark.parametrize(
    ("arguments", "rest", "fault"),
    [
        ("value anyelement", f"returns text language sql {PINNED} as $$ select 'x' $$", "takes or returns anyelement"),
        ("value anycompatiblearray", f"returns text language sql {PINNED} as $$ select 'x' $$", "anycompatiblearray"),
        ("value record", f"returns void language plpgsql {PINNED} as $$ begin end $$", "takes or returns record"),
        ("value public.product", f"returns void language plpgsql {PINNED} as $$ begin end $$", "public.product"),
        ("value public.code[]", f"returns void language plpgsql {PINNED} as $$ begin end $$", "public.code"),
        ("", f"returns trigger language plpgsql {PINNED} as $$ begin return new; end $$", "takes or returns trigger"),
        ("", f"returns void language plpgsql {PINNED} as $$ begin execute 'select 1'; end $$", "runs dynamic SQL"),
        ("", f"returns void language plpgsql {PINNED} as $$ begin perform 1 from public.product; end $$", "public.product"),
        ("", f"returns void language plpgsql {PINNED} as $$ declare\n a public.code; begin end $$", "uses the type public.code"),
        ("a text", f"returns void language plpgsql {PINNED} as $$ begin perform a::public.code; end $$", "uses the type"),
        ("", f"returns void language plpgsql {PINNED} as $$ begin perform horai.deeper(); end $$", "deeper, called by open"),
        ("", "returns void language plpgsql security definer as $$ begin end $$", "has no pinned search_path"),
        ("", f"returns void language plpgsql {PINNED} as $$ begin end $$", "is granted to public"),
    ],
)  # fmt: skip
async def test_the_catalogue_test_notices_a_function_that_is_open(
    connection: Platform, arguments: str, rest: str, fault: str
):
    await connection.execute("create table public.product (code text); create domain public.code as text")
    await connection.execute(
        "create function horai.deeper() returns void language plpgsql as $$ begin execute 'select 1'; end $$"
    )
    await connection.execute(f"create function horai.open({arguments}) {rest}")
    await connection.execute("set search_path = pg_catalog")

    assert fault in "\n".join(await faults(connection))
